"""The table of strictness: each row both ways, without secureDefaults and with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from trouter.config import ChangeRefused, Configuration, ConfigurationError, created, load, migration, type_named
from trouter.config.facts import router_facts
from trouter.config.findings import evaluate
from trouter.config.point import Point
from trouter.config.problems import Severity
from trouter.config.strictness import POINTS, REFUSED
from trouter.hooks import ConfigurationRefused, Plugins

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_each_point_has_its_tests_and_its_page(point: Point) -> None:
    assert point.tests
    for test in point.tests:
        file, function = test.split("::")
        assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert (ROOT / "docs" / point.page.partition("#")[0]).exists()
    assert re.fullmatch("[a-z]+(-[a-z]+)*", point.name)
    assert point.compatible
    assert bool(point.cure) or not point.warning


def test_the_page_on_migration_is_fresh_and_whole() -> None:
    page = migration.page()
    assert (ROOT / "docs" / "migration.md").read_text(encoding="utf-8") == page
    assert all(f"| {point.compatible} |" in page for point in POINTS.values())
    assert "`delivery-failed`" in page


# ------------------------------------------------------------------------------------------------ routers prove who they are
@pytest.mark.parametrize("role", ["inter-router", "edge"])
@pytest.mark.parametrize(
    ("more", "proven"),
    [
        ("authenticatePeer: no", False),
        ("authenticatePeer: yes", False),
        ("host: 127.0.0.1, authenticatePeer: no", False),
        ("host: 127.0.0.1, authenticatePeer: yes", True),
        ("authenticatePeer: yes, sslProfile: p", True),
        ("authenticatePeer: no, sslProfile: p", False),
        ("allowInsecureRole: yes, authenticatePeer: no", None),
    ],
)
def test_a_listener_for_routers_opens_unless_defaults_are_secure(role: str, more: str, proven: bool | None) -> None:
    lines = "\n".join(["role: " + role, "requireSsl: no", *filter(None, more.split(", "))])
    text = f"mode: interior\n}}\nsslProfile {{ name: p }}\nlistener {{\n{lines}\n}}"
    compatible, strict = load(text=f"router {{\n{text}"), load(text=f"router {{\nsecureDefaults: yes\n{text}")
    assert compatible.unserved(compatible.listeners[0]) == ()
    told = [finding for finding in evaluate(compatible) if finding.point == "unproven-router"]
    assert [finding.severity for finding in told] == ([] if proven else [Severity.UNSAFE])
    refused = [finding.message for finding in evaluate(strict) if finding.severity is Severity.PROBLEM]
    assert ["must authenticate" in message for message in refused] == ([True] if proven is False else [])


# ------------------------------------------------------------------------------------------------ values read in another way
GROUPS = "vhost {\n hostname: a\n groups: {\n  g: {\n   users: alice\n   maxConnections: 5\n  }\n }\n}\npolicy { enableVhostPolicy: yes }"
READ_AS: dict[str, tuple[str, str, Callable[[Configuration], object], object]] = {
    "group": ("unknown-in-group", GROUPS, lambda c: c.vhosts[0].groups["g"].users, ("alice",)),
    "version": ("unknown-tls-version", "sslProfile {\n name: p\n protocols: SSLv23\n}", lambda c: c.ssl_profiles[0].protocols, "SSLv23"),
    "uid": ("unknown-uid-letter", "sslProfile {\n name: p\n uidFormat: cnx\n}", lambda c: c.ssl_profiles[0].uid_format, None),
    "digests": ("unknown-uid-letter", "sslProfile {\n name: p\n uidFormat: 12\n}", lambda c: c.ssl_profiles[0].uid_format, None),
    "frame": ("size-clamped", "connector { maxFrameSize: 2 }", lambda c: c.connectors[0].max_frame_size, 512),
    "sessions": ("size-clamped", "connector { maxSessions: 500000 }", lambda c: c.connectors[0].max_sessions, 32768),
    "addresses": (
        "same-addresses",
        "address { prefix: a, distribution: multicast }\naddress { pattern: a/#, distribution: closest }",
        lambda c: [each.distribution for each in c.addresses],
        ["multicast"],
    ),
    "no name": ("no-such-mechanism", "listener { host: ::1, saslMechanisms: PLAIN & }", lambda c: c.listeners[0].sasl_mechanisms, ("PLAIN", "&")),
    "TLS": ("encryption-without-profile", "listener {\n host: ::1\n requireSsl: yes\n}", lambda c: c.listeners[0].require_ssl, True),
    "EXTERNAL": ("encryption-without-profile", "listener { host: ::1, saslMechanisms: EXTERNAL }", lambda c: len(c.listeners), 1),
    "EXTERNAL out": ("external-without-profile", "connector { saslMechanisms: EXTERNAL }", lambda c: len(c.connectors), 1),
    "no user": ("password-without-user", "connector {\n saslPassword: x\n}", lambda c: len(c.connectors), 1),
    "folder": ("unreadable-folder", "listener { host: ::1, httpRootDir: /no/such }", lambda c: c.listeners[0].http_root_dir, "/no/such"),
}  # fmt: skip


@pytest.mark.parametrize(("point", "text", "get", "value"), READ_AS.values(), ids=READ_AS)
def test_what_the_older_router_reads_in_its_own_way(
    point: str, text: str, get: Callable[[Configuration], object], value: object
) -> None:
    configuration = load(text=text)
    assert get(configuration) == value
    assert [finding.point for finding in configuration.warnings if finding.point] == [point]
    with pytest.raises(ConfigurationError) as refused:
        load(text=f"router {{ secureDefaults: yes }}\n{text}")
    assert [REFUSED in problem.message for problem in refused.value.problems] == [True]
    assert refused.value.problems[0].suggestion


@pytest.mark.parametrize(
    ("mechanisms", "points", "starts"),
    [
        ("ANONYMOUS PLAIN", ["unserved-mechanism"], True),
        ("ANONYMOUS X-OLD", ["unserved-mechanism"], False),
        ("X-OLD", ["no-mechanism", "unserved-mechanism"], False),
        ("PLAIN", ["no-mechanism", "unserved-mechanism"], True),
        ("ANONYMOUS", [], True),
    ],
)
def test_a_mechanism_that_nothing_serves(mechanisms: str, points: list[str], starts: bool) -> None:
    text = f"listener {{ host: ::1, authenticatePeer: no, saslMechanisms: {mechanisms} }}\n"
    compatible = load(text=text)
    plugins = Plugins.load({})
    plugins.configure(router_facts(compatible))
    found = [finding.point for finding in evaluate(compatible, plugins) if "mechanism" in finding.point]
    assert found == points
    strict = load(text=f"router {{ secureDefaults: yes }}\n{text}")
    refused = nullcontext() if starts else pytest.raises(ConfigurationRefused, match="no mechanism that anything here")
    with refused:
        plugins.configure(router_facts(strict))


UNREADABLE = {
    "certificate": "sslProfile {{\n name: p\n certFile: {0}\n privateKeyFile: {0}\n}}",
    "authorities": "sslProfile {{\n name: p\n caCertFile: {0}\n}}",
    "listener's authorities": "sslProfile {{ name: p }}\nlistener {{\n host: ::1\n requireSsl: yes\n sslProfile: p\n trustedCertsFile: {0}\n}}",
    "password of a key": "sslProfile {{\n name: p\n password: file:{0}\n}}",
    "file of the password of a key": "sslProfile {{\n name: p\n passwordFile: {0}\n}}",
    "mapping": "sslProfile {{\n name: p\n uidNameMappingFile: {0}\n}}",
    "password": "connector {{\n saslUsername: a\n saslPassword: file:{0}\n}}",
    "variable": "connector {{\n saslUsername: a\n saslPassword: env:NO_SUCH_VARIABLE_IN_ANY_TEST\n}}",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_fails_only_what_needs_it(text: str, tmp_path: Path) -> None:
    text = text.format(tmp_path / "none")
    configuration = load(text=text)
    told = {finding.point: finding.severity for finding in configuration.warnings if finding.point}
    assert told == {"unreadable-file": Severity.PROBLEM}
    for connector in configuration.connectors:
        assert "cannot be read" in (why := configuration.unserved(connector)[0]) or "not set" in why
    with pytest.raises(ConfigurationError) as refused:
        load(text=f"router {{ secureDefaults: yes }}\n{text}")
    assert all(REFUSED in problem.message for problem in refused.value.problems)


EQUALS = {
    "a section": "vhost = {\n hostname: a\n groups: {\n  g: {\n   users: a\n  }\n }\n}\n",
    "groups": "vhost {\n hostname: a\n groups = {\n  g: {\n   users: a\n  }\n }\n}\n",
    "a group": "vhost {\n hostname: a\n groups: {\n  g = {\n   users: a\n  }\n }\n}\n",
    "a policy in a vhost": "vhost {\n hostname: a\n policy = {\n  g: {\n   users: a\n  }\n }\n}\n",
}


@pytest.mark.parametrize("text", EQUALS.values(), ids=EQUALS)
def test_an_equals_sign_before_a_brace_is_one_error(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(text=text)
    (problem,) = refused.value.problems
    assert problem.suggestion.startswith("remove the `=`: write ")


# ------------------------------------------------------------------------------------------------ passwords in clear
IN_CLEAR = {
    "listener": ("passwords-in-clear", "listener { port: 0, requireSsl: no, saslMechanisms: PLAIN }", "listeners", "loopback"),
    "connector": ("password-sent-in-clear", "connector { host: a, saslUsername: u, saslPassword: p }", "connectors", "no"),
    "service": ("service-in-clear", "authServicePlugin { name: s, host: a }", "auth_services", "loopback"),
}  # fmt: skip


@pytest.mark.parametrize(("point", "text", "field", "strict"), IN_CLEAR.values(), ids=IN_CLEAR)
def test_passwords_in_clear_go_as_the_switch_says(
    point: str, text: str, field: str, strict: str, tmp_path: Path
) -> None:
    (tmp_path / "users").touch(0o600)
    for secure, value in (("no", "yes"), ("yes", strict)):
        configuration = load(text=f"router {{\n secureDefaults: {secure}\n usersFile: {tmp_path}/users\n}}\n{text}")
        assert getattr(configuration, field)[0].allow_insecure_plain == value
        found = [finding.severity for finding in evaluate(configuration) if finding.point == point]
        assert found == ([] if secure == "yes" else [Severity.UNSAFE])


@pytest.mark.parametrize("kind", ["listener", "connector"])
def test_an_error_about_the_role_comes_before_others(kind: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(text=f"{kind} {{\n port: 99999\n role: inter-router\n}}")
    first, second = refused.value.problems
    assert first.message.startswith("role='standalone' not allowed")
    assert second.message == "is not a port"
    entity, alone = type_named(kind), load(text="router { id: R }")
    assert entity is not None
    with pytest.raises(ChangeRefused) as change:
        created(alone, entity, None, {"port": "99999", "role": "inter-router"})
    assert change.value.description.startswith(f"{kind}.role: role='standalone' not allowed")

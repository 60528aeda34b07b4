"""The table of strictness: each row without secureDefaults and with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from manual import migration
from trouter.config import ChangeRefused, Configuration, ConfigurationError, created, load, type_named
from trouter.config.facts import router_facts
from trouter.config.findings import evaluate
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import EntityType, string
from trouter.config.strictness import POINTS, REFUSED, points_of
from trouter.config.types import CONFIGURED
from trouter.hooks import ConfigurationRefused, Plugins

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_each_point_has_its_page(point: Point) -> None:
    assert (ROOT / "docs" / point.page.partition("#")[0]).exists()
    assert re.fullmatch("[a-z]+(-[a-z]+)*", point.name)
    assert point.compatible
    assert bool(point.cure) or not point.warning


def test_a_point_is_declared_at_its_attribute() -> None:
    @dataclass(frozen=True)
    class Widget:
        colour: str = with_points(
            string("Its colour.", "red"), Point(name="red", compatible="red", strict="refused", warning="will be red")
        )

    none = Point(name="no-widget", compatible="none is served")
    kind = EntityType("widget", "A widget.", sections=("widget",), entity=Widget, points=(none,))
    points = {point.name: point for point in points_of([kind])}
    assert {name: point.subject for name, point in points.items()} == {"no-widget": "widget", "red": "widget.colour"}
    assert migration.row_of(points["red"]).startswith("| [`widget.colour`](configuration.md) | red | refused |")


def test_no_two_attributes_declare_a_point_of_one_name() -> None:
    names = [point.name for point in points_of(CONFIGURED)]
    assert sorted(set(names)) == sorted(names)


def test_the_page_on_migration_is_fresh_and_whole() -> None:
    page = migration.page()
    assert (ROOT / "docs" / "migration.md").read_text(encoding="utf-8") == page
    assert all(f"| {point.compatible} |" in page for point in POINTS.values())
    assert "`delivery-failed`" in page


# -------------------------------------------------------------------------------------------- authentication of routers
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
    lines = "\n".join(["role: " + role, "requireSsl: no", "allowedUsers: r", *more.split(", ")])
    text = f"mode: interior\n}}\nsslProfile {{ name: p }}\nlistener {{\n{lines}\n}}"
    compatible, strict = load(text=f"router {{\n{text}"), load(text=f"router {{\nsecureDefaults: yes\n{text}")
    assert compatible.unserved(compatible.listeners[0]) == ()
    found = [finding for finding in evaluate(compatible) if finding.point == "unproven-router"]
    assert [finding.severity for finding in found] == ([] if proven else [Severity.UNSAFE])
    refused = [finding.message for finding in evaluate(strict) if finding.severity is Severity.PROBLEM]
    assert ["must authenticate" in message for message in refused] == ([True] if proven is False else [])


# ------------------------------------------------------------------------------------- values that are read differently
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
    "cost": ("size-clamped", "connector { cost: 0 }", lambda c: c.connectors[0].cost, 1),
    "huge": ("size-clamped", "connector { idleTimeoutSeconds: 99999999999 }", lambda c: c.connectors[0].idle_timeout_seconds, 4_000_000),
    "group's frames": (
        "size-clamped",
        GROUPS.replace("maxConnections: 5", "maxFrameSize: 100"),
        lambda c: c.vhosts[0].groups["g"].max_frame_size,
        512,
    ),
    "port": ("port-too-high", "listener { host: ::1, port: 99999 }", lambda c: c.listeners[0].port, "34463"),
    "certificate alone": ("half-a-pair", "sslProfile {\n name: p\n certFile: /etc/passwd\n}", lambda c: c.ssl_profiles[0].cert_file, "/etc/passwd"),
    "key alone": ("key-alone", "sslProfile {\n name: p\n privateKeyFile: /etc/passwd\n}", lambda c: c.ssl_profiles[0].private_key_file, None),
    "no host": (
        "service-without-host",
        "authServicePlugin {\n name: s\n}\nlistener { host: ::1, saslPlugin: s }",
        lambda c: c.unserved(c.auth_services[0]),
        ("it has no host",),
    ),
    "reported": ("reported-attribute", "linkRoute {\n prefix: a\n dir: in\n operStatus: active\n}", lambda c: len(c.link_routes), 1),
    "part of a message": (
        "unknown-component",
        "listener {\n host: ::1\n messageLoggingComponents: to,size\n}",
        lambda c: c.listeners[0].message_logging_components,
        ("to",),
    ),
    "users of Cyrus": (
        "unreadable-file",
        "router { saslConfigDir: /no/such }",
        lambda c: Plugins.load(dict(c.router.plugins)).configure(router_facts(c), c.router.plugin_settings),
        None,
    ),
    "folder": ("unreadable-folder", "listener { host: ::1, httpRootDir: /no/such }", lambda c: c.listeners[0].http_root_dir, "/no/such"),
}  # fmt: skip


#: Sections that Qpid Dispatch ignores, with a line in the log or without.
LEFT_OUT: Final = {
    "phase": "address { prefix: a, ingressPhase: 12, egressPhase: 1 }",
    "priority": "address { prefix: a, priority: 10 }",
    "one phase": "address { prefix: a, ingressPhase: 1 }",
    "fallback and phases": "address { prefix: a, enableFallback: yes, waypoint: yes }",
    "neither": "address {\n}",
    "both": "address {\n prefix: a\n pattern: b\n}",
    "empty": "address { prefix: ''\n}",
    "no tokens": "address { prefix: / }",
    "profile without name": "sslProfile {\n}",
    "service without name": "authServicePlugin { host: ::1 }",
    "neither of a route": "linkRoute { dir: in }",
    "route to two": "linkRoute { prefix: a, dir: in, connection: c, containerId: d }",
    "link to two": "autoLink { address: a, dir: in, connection: c, containerId: d }",
    "link's phase": "autoLink { address: a, dir: in, connection: c, phase: -1 }",
    "exchange without name": "exchange { address: a, matchMethod: amqp }",
    "exchange without address": "exchange { name: e, address: '', matchMethod: amqp }",
    "exchange twice": "exchange { name: e, address: a }\nexchange { name: f, address: a }",
    "binding of no exchange": "binding { exchangeName: e, nextHopAddress: a }",
    "binding to nowhere": "exchange { name: e, address: a }\nbinding { exchangeName: e, nextHopAddress: '' }",
    "binding's key": "exchange { name: e, address: a, matchMethod: mqtt }\n"
    "binding {\n exchangeName: e\n nextHopAddress: b\n bindingKey: a/#/b\n}",
    "binding twice": "exchange { name: e, address: a }\n" + "binding { exchangeName: e, nextHopAddress: b }\n" * 2,
}


@pytest.mark.parametrize("text", LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_section_that_qpid_dispatch_leaves_out_is_left_out(text: str) -> None:
    configuration = load(text=text)
    found = [finding for finding in configuration.warnings if finding.point]
    assert [finding.point for finding in found] == ["left-out"]
    assert found[0].suggestion
    assert [*configuration.ssl_profiles, *configuration.auth_services] == []
    sections = [*configuration.addresses, *configuration.link_routes, *configuration.auto_links]
    assert len([*sections, *configuration.exchanges, *configuration.bindings]) == text.count("\nbinding") + text.count(
        "\nexchange"
    )
    with pytest.raises(ConfigurationError) as refused:
        load(text=f"router {{ secureDefaults: yes }}\n{text}")
    assert [REFUSED in problem.message for problem in refused.value.problems] == [True]


def test_management_refuses_values_that_a_file_load_would_leave_out() -> None:
    kind = type_named("router.config.linkRoute")
    assert kind is not None
    both = {"prefix": "a", "direction": "in", "connection": "c", "containerId": "d"}
    with pytest.raises(ChangeRefused, match=r"Specify only one: "):
        created(load(text=""), kind, None, both)
    with pytest.raises(ChangeRefused, match="cannot be set"):
        created(load(text=""), kind, None, {"prefix": "a", "direction": "in", "operStatus": "active"})


#: Configurations that Qpid Dispatch refuses, with or without the switch.
REFUSED_THERE: Final = {
    "a user in two groups": "vhost {\n hostname: a\n groups: {\n  g: { users: u }\n  h: { users: u }\n }\n}",
    "a vhost twice": "vhost { hostname: a }\nvhost { hostname: a }",
    "a number of connections": "vhost { hostname: a, maxConnections: 70000 }",
    "a number of a group": "vhost {\n hostname: a\n groups: {\n  g: { maxSenders: -1 }\n }\n}",
    "unknown users without their group": "vhost { hostname: a, allowUnknownUser: yes }",
    "an alias of itself": "vhost { hostname: a, aliases: a }",
    "two sections for a module": "log { module: AGENT, enable: info+ }\nlog { module: AGENT, enable: debug+ }",
    "a folder of policies that is not there": "policy { policyDir: /no/such }",
    "an unknown value": "listener { role: special }",
    "a word for a number": "listener { maxFrameSize: big }",
    "a role against the mode": "listener { role: inter-router }",
    "an unknown attribute": "listener { colour: red }",
    "an unknown section": "listner { port: 0 }",
    "an old and a new name": "linkRoute { prefix: a, dir: in, direction: in }",
    "a name twice": "address { name: a, prefix: b }\naddress { name: a, prefix: c }",
    "an exchange's name twice": "exchange { name: e, address: a }\nexchange { name: e, address: b }",
    "an unknown level": "log { module: AGENT, enable: loud }",
    "an unknown service": "listener { host: ::1, saslPlugin: s }",
}


@pytest.mark.parametrize("text", REFUSED_THERE.values(), ids=REFUSED_THERE)
def test_a_file_that_qpid_dispatch_refuses_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(text=text)
    assert len(refused.value.problems) == 1
    assert REFUSED not in refused.value.problems[0].message


@pytest.mark.parametrize(("point", "text", "get", "value"), READ_AS.values(), ids=READ_AS)
def test_a_value_that_qpid_dispatch_reads_in_its_own_way_is_read_alike(
    point: str, text: str, get: Callable[[Configuration], object], value: object
) -> None:
    configuration = load(text=text)
    assert get(configuration) == value
    assert [finding.point for finding in configuration.warnings if finding.point] == [point]
    secure = text.replace("router {", "router { secureDefaults: yes,", 1)
    with pytest.raises(ConfigurationError) as refused:
        load(text=secure if secure != text else f"router {{ secureDefaults: yes }}\n{text}")
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
    refused = nullcontext() if starts else pytest.raises(ConfigurationRefused, match="which no plugin serves")
    with refused:
        plugins.configure(router_facts(strict))


@pytest.mark.parametrize("text", ["listener {\n host: ::1\n sslProfile: pp\n}", "connector {\n sslProfile: pp\n}"])
def test_an_ssl_profile_that_does_not_exist_is_one_problem_with_the_nearest_name(text: str) -> None:
    text = f"sslProfile {{ name: p }}\n{text}"
    (found,) = [finding for finding in evaluate(load(text=text)) if "sslProfile" in str(finding)]
    assert (found.point, found.severity, found.key) == ("unknown-profile", Severity.PROBLEM, "sslProfile")
    assert (found.place.line, found.suggestion) == (2, "did you mean 'p'?")
    assert "there is no sslProfile 'pp'" in found.message
    with pytest.raises(ConfigurationError, match=f"{REFUSED}.*did you mean 'p'"):
        load(text=f"router {{ secureDefaults: yes }}\n{text}")


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
def test_an_unreadable_file_fails_only_the_entities_that_need_the_file(text: str, tmp_path: Path) -> None:
    text = text.format(tmp_path / "none")
    configuration = load(text=text)
    found = {finding.point: finding.severity for finding in configuration.warnings if finding.point}
    assert found == {"unreadable-file": Severity.PROBLEM}
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


# ---------------------------------------------------------------------------------------------- passwords in plain text
IN_CLEAR = {
    "listener": ("passwords-in-clear", "listener { port: 0, requireSsl: no, saslMechanisms: PLAIN }", "listeners", "loopback"),
    "connector": ("password-sent-in-clear", "connector { host: a, saslUsername: u, saslPassword: p }", "connectors", "no"),
    "service": ("service-in-clear", "authServicePlugin { name: s, host: a }", "auth_services", "loopback"),
}  # fmt: skip


@pytest.mark.parametrize(("point", "text", "field", "strict"), IN_CLEAR.values(), ids=IN_CLEAR)
def test_passwords_in_clear_are_allowed_by_the_switch(
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
        load(text=f"{kind} {{\n port: a b\n role: inter-router\n}}")
    first, second = refused.value.problems
    assert first.message.startswith("role='standalone' not allowed")
    assert second.message.startswith("is neither a port number")
    entity, alone = type_named(kind), load(text="router { id: R }")
    assert entity is not None
    with pytest.raises(ChangeRefused) as change:
        created(alone, entity, None, {"port": "a b", "role": "inter-router"})
    assert change.value.description.startswith("role='standalone' not allowed")


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("router { id: A }", ["no-connections"]),
        ("router { id: A, mode: interior }", ["no-neighbours"]),
        ("listener { host: ::1 }", []),
        ("connector { host: ::1 }", []),
    ],
)
def test_a_router_without_listeners_and_connectors_is_a_warning(text: str, points: list[str]) -> None:
    found = [each for each in evaluate(load(text=text)) if each.point in {"no-connections", "no-neighbours"}]
    assert [each.point for each in found] == points
    assert all(each.severity is Severity.NOTE for each in found)

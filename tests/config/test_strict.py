"""--strict reports each unsafe setting, and nothing for a safe configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.config import load
from trouter.config.findings import evaluate, judged, unsafe
from trouter.config.hosts import is_loopback
from trouter.config.problems import Severity

SAFE = """
router { mode: standalone, maxHandshakesPerHost: 20, authLockout: enforce }
policy { enableVhostPolicy: yes }
sslProfile { name: tls }
listener { host: 127.0.0.1, port: 1, authenticatePeer: yes }
listener { host: localhost, port: 2, authenticatePeer: yes, allowInsecurePlain: yes }
listener { host: 192.0.2.1, port: 3, authenticatePeer: yes, saslMechanisms: PLAIN, sslProfile: tls, requireSsl: yes }
connector { host: 127.0.0.1, allowInsecurePlain: yes }
"""


def found(text: str, path: Path | None = None) -> list[str]:
    return [f"{problem.section}.{problem.key}: {problem.message}" for problem in unsafe(load(path, text))]


def test_nothing_is_found_where_nothing_is_unsafe() -> None:
    assert found(SAFE) == []
    assert [finding.point for finding in unsafe(load())] == ["authenticate-peer"] * 2  # by this machine only


HOSTS = "one-address-many-clients"
LOGINS = "one-address-many-logins"
ELSEWHERE = "listener { host: 192.0.2.1, port: 1, saslMechanisms: PLAIN }"


@pytest.mark.parametrize(
    ("router", "listener", "points"),
    [
        ("", ELSEWHERE, {HOSTS, LOGINS}),
        ("", ELSEWHERE.replace("192.0.2.1", "127.0.0.1"), set()),
        ("", ELSEWHERE.replace("PLAIN", "ANONYMOUS"), {HOSTS}),
        ("maxHandshakesPerHost: 20", ELSEWHERE, {LOGINS}),
        ("acceptBurstPerHost: 100", ELSEWHERE, {LOGINS}),
        ("authLockout: enforce", ELSEWHERE, {HOSTS}),
        ("authLockoutAfter: 10", ELSEWHERE, {HOSTS}),
        ("maxHandshakesPerHost: 20\n authLockout: enforce", ELSEWHERE, set()),
    ],
)
def test_what_one_address_may_do_before_its_users_are_known_is_reported(
    router: str, listener: str, points: set[str]
) -> None:
    text = f"router {{\n usersFile: /u\n {router}\n}}\n{listener}"
    found = [finding for finding in unsafe(load(text=text)) if finding.point in {HOSTS, LOGINS}]
    assert {finding.point for finding in found} == points
    assert {finding.section for finding in found} <= {"router"}


ANY = "listener { port: 1, authenticatePeer: yes, "
UNSAFE = {
    "anybody": ("listener { port: 1 }", "listener.authenticatePeer: will let in every client from other machines, without a name"),
    "not everybody": ("listener { port: 1, saslMechanisms: PLAIN }", "listener.authenticatePeer: will let in every client from other machines, without authenticating"),
    "passwords": (f"{ANY} allowInsecurePlain: yes }}", "listener.allowInsecurePlain: will accept unencrypted passwords from other machines"),
    "for ever": (f"{ANY} initialHandshakeTimeoutSeconds: 0 }}", "listener.initialHandshakeTimeoutSeconds: will keep connections that never open"),
    "pages": (f"{ANY} http: yes, healthz: no }}", "listener.webSocketOrigins: will let the pages of every site open WebSockets"),
    "TLS if they like": (f"sslProfile {{ name: a }}\n{ANY} sslProfile: a }}", "listener.requireSsl: will accept clients without TLS too"),
    "a router": (f"router {{ mode: interior }}\n{ANY} role: inter-router }}", "listener.role: will let in every host that reaches every address at port 1 as a router"),
    "old TLS": ("sslProfile {\n name: a\n protocols: TLSv1 TLSv1.2\n}", "sslProfile.protocols: will allow TLSv1, which can be broken"),
    "a password": ("connector {\n saslUsername: a\n saslPassword: b\n}", "connector.saslPassword: the password stands in the configuration itself"),
    "a password sent": ("connector { host: a, allowInsecurePlain: yes }", "connector.allowInsecurePlain: will send the password unencrypted"),
    "any certificate": ("sslProfile { name: a }\nconnector { host: a, sslProfile: a, verifyHostname: no }", "connector.verifyHostname: will accept any host with a trusted certificate"),
    "idle rules": ("vhost { hostname: a }", "vhost.: the rules of this vhost will apply to no connection"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), UNSAFE.values(), ids=UNSAFE)
def test_an_unsafe_setting_is_found(text: str, message: str) -> None:
    assert [message in problem for problem in found(text)].count(True) == 1
    assert all(problem.suggestion for problem in unsafe(load(text=text)))


def vhost(group: str, more: str = "") -> str:
    return f"policy {{ enableVhostPolicy: yes }}\nlistener {{ host: ::1 }}\nvhost {{\n hostname: a\n {more}\n groups: {{ {group} }}\n}}"


OPEN = [
    vhost("$default: { remoteHosts: * }", "allowUnknownUser: yes"),
    vhost('g: { users: "*", remoteHosts: "*" }'),
    vhost('g: { users: "a, anonymous", remoteHosts: "*" }'),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, policyVhost: a"),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, policyVhost: not-there"),
]
CLOSED = [
    vhost("$default: { remoteHosts: * }"),
    vhost("$default: { remoteHosts: 127.0.0.1 }", "allowUnknownUser: yes"),
    vhost('g: { users: "*" }'),
    vhost('g: { users: a, remoteHosts: "*" }'),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, authenticatePeer: yes"),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, saslMechanisms: PLAIN"),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, http: yes, websockets: no"),
    vhost('g: { users: "*", remoteHosts: "*" }').replace("host: ::1", "host: ::1, policyVhost: b")
    + "\nvhost { hostname: b }",
]


@pytest.mark.parametrize("text", OPEN)
def test_a_group_for_every_user_from_everywhere_is_found(text: str) -> None:
    assert ["will let in clients without a name from every host" in problem for problem in found(text)].count(True) == 1


@pytest.mark.parametrize("text", CLOSED)
def test_a_group_for_some_is_not_found(text: str) -> None:
    assert not any("will let in clients without a name" in problem for problem in found(text))


def test_files_that_every_user_of_the_machine_can_read_or_write_are_found(tmp_path: Path) -> None:
    for name in ("cert", "key", "password", "users"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0o644)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies").chmod(0o777)
    path = tmp_path / "a.conf"
    path.write_text(f"""
router {{ usersFile: {tmp_path}/users }}
sslProfile {{
    name: a
    certFile: {tmp_path}/cert
    privateKeyFile: {tmp_path}/key
    passwordFile: {tmp_path}/password
}}
connector {{
    saslUsername: a
    saslPassword: file:{tmp_path}/password
}}
policy {{ policyDir: {tmp_path}/policies }}
""")
    path.chmod(0o666)
    problems = [problem for problem in evaluate(load(path)) if "all users of this machine" in problem.message]
    assert {f"{problem.section}.{problem.key}" for problem in problems} == {
        ".", "router.usersFile", "sslProfile.privateKeyFile", "sslProfile.passwordFile", "connector.saslPassword",
        "policy.policyDir",
    }  # fmt: skip
    for name in ("key", "password", "users", "a.conf"):
        (tmp_path / name).chmod(0o600)
    (tmp_path / "policies").chmod(0o755)
    assert [problem for problem in evaluate(load(path)) if "all users of this machine" in problem.message] == []


LOOPBACK = {"127.0.0.1": True, "127.1.2.3": True, "::1": True, "LocalHost": True, "localhost.": True, "": False, "0.0.0.0": False, "::": False, "localhost.example.com": False, "10.0.0.1": False}  # fmt: skip


@pytest.mark.parametrize(("host", "loopback"), LOOPBACK.items())
def test_only_this_machine_is_meant(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


LETS_IN = {
    "passwords": (f"{ANY} allowInsecurePlain: yes }}", "passwords-in-clear"),
    "a router": ("router { mode: interior }\nlistener { port: 1, role: inter-router }", "unproven-router"),
    "idle rules": ("vhost { hostname: a }", "idle-vhost"),
    "an idle limit": ("policy { maxMessageSize: 9 }", "idle-message-size"),
    "tenants of their own choice": (f"{ANY} multiTenant: yes }}", "unheld-tenants"),
}


@pytest.mark.parametrize(("text", "point"), LETS_IN.values(), ids=LETS_IN)
def test_a_setting_that_admits_more_peers_is_reported(text: str, point: str) -> None:
    assert point in {finding.point for finding in unsafe(load(text=text)) if finding.severity is Severity.UNSAFE}


def test_a_tenant_that_authenticates_and_stands_in_a_file_is_held(tmp_path: Path) -> None:
    (tmp_path / "tenants").write_text('{"alice": "red"}')
    text = (
        f"listener {{\n host: ::1\n multiTenant: yes\n authenticatePeer: yes\n tenantFrom: file:{tmp_path}/tenants\n}}"
    )
    assert "unheld-tenants" not in {finding.point for finding in unsafe(load(text=text))}


def test_the_gravest_comes_first() -> None:
    text = (
        "router {\n # trouter: accept no-neighbours: not yet\n area: 0\n secureDefaults: yes\n mode: interior\n}\n"
        "listener { host: ::1, role: edge, authenticatePeer: no }\n"
        "listener {\n # trouter: accept authenticate-peer: for operators\n host: ::1\n port: 1\n authenticatePeer: no\n}"
    )
    configuration = load(text=text)
    found = judged(configuration, list(evaluate(configuration)))
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=["problem", "unsafe", "warning", "accepted"].index
    )
    assert {finding.severity for finding in found} == set(Severity)
    assert "will not be opened" in found[0].message


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (0o640, None),
        (0o660, "all of its group can change"),
        (0o644, "all users of this machine can read"),
    ],
)
def test_the_mode_of_a_private_file_counts(tmp_path: Path, mode: int, message: str | None) -> None:
    users = tmp_path / "users"
    users.write_text("")
    users.chmod(mode)
    findings = unsafe(load(text=f"router {{ usersFile: {users} }}"))
    assert [finding.message.split(" /")[0] for finding in findings] == ([] if message is None else [message])

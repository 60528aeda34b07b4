"""rhea logs in within TLS: by password and by certificate, and gets an error if it is not permitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.interop.agents import agent, message
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.interop

POLICY = """
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: $default
    groups: {{
        $default: {{
            users: alice
            remoteHosts: *
            sources: "${{user}}/*"
            targets: "${{user}}/*"
            allowAnonymousSender: yes
        }}
    }}
}}
"""
ROUTER = (
    """
router {{ id: R, usersFile: {folder}/users }}
sslProfile {{
    name: tls
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
    uidFormat: n
}}
listener {{
    host: 127.0.0.1
    port: 0
    sslProfile: tls
    requireSsl: yes
    authenticatePeer: yes
    clientCert: optional
    saslMechanisms: PLAIN EXTERNAL
}}
"""
    + POLICY
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("guarded")
    for user in ("alice", "carol"):
        put_user(folder / "users", user, b"wonderland")
    server = authority.issue("CN=localhost", "localhost")
    with running(ROUTER.format(folder=folder, server=server, authority=authority), folder) as router:
        yield router


def credentials(authority: Authority, kind: str) -> dict[str, str]:
    if kind == "password":
        return {"ca": str(authority.file), "username": "alice", "password": "wonderland"}
    pair = authority.issue("CN=alice")
    return {"ca": str(authority.file), "cert": str(pair.cert), "key": str(pair.key)}


@pytest.mark.parametrize("kind", ["password", "certificate"])
def test_a_client_logs_in_and_uses_its_own_addresses(guarded: RunningRouter, authority: Authority, kind: str) -> None:
    way = credentials(authority, kind)
    address = f"alice/{kind}"
    with agent("rhea", "receive", guarded.port, address=address, count=3, **way) as receiving:
        receiving.wait_for("ready")
        with agent("rhea", "send", guarded.port, address=address, count=3, **way) as sending:
            sending.wait_for("ready")
            assert receiving.result()["messages"] == [message(number, 100) for number in range(3)]
            assert sending.result()["outcomes"] == [["accepted", None, None]] * 3


def test_a_client_with_a_wrong_password_is_refused(guarded: RunningRouter, authority: Authority) -> None:
    way = credentials(authority, "password") | {"password": "looking-glass"}
    with agent("rhea", "send", guarded.port, address="alice/x", **way) as sending:
        guarded.wait_for_line(r"Authentication failed \[mech=PLAIN\] user='alice' ")
        assert sending.process.wait(20) != 0


UNAUTHORIZED = "amqp:unauthorized-access"
LINK = "link disallowed by local policy"
MINE: dict[str, Any] = {"address": "alice/x"}
DENIED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a target": ({"terminus": {"address": "bob/x"}}, ["sender", UNAUTHORIZED, LINK]),
    "a source": ({"terminus": {"address": "bob/x"}, "receives": True}, ["receiver", UNAUTHORIZED, LINK]),
    "a dynamic source": ({"terminus": {"dynamic": True}, "receives": True}, ["receiver", UNAUTHORIZED, LINK]),
    "a message to another's address": (
        {"terminus": {}, "message": {"to": "bob/x"}}, ["message", UNAUTHORIZED, "policy violation on target"]),
    "a message to nowhere": (
        {"terminus": {}, "message": {}},
        ["message", "amqp:precondition-failed", "Routing failure: no address present"]),
    "a message in another's name": (
        {"terminus": MINE, "message": {"user_id": "bob"}}, ["message", UNAUTHORIZED, "user_id proxy violation"]),
}  # fmt: skip


@pytest.mark.parametrize(("tries", "said"), DENIED.values(), ids=DENIED)
def test_a_client_gets_the_reason_of_each_denial(
    guarded: RunningRouter, authority: Authority, tries: dict[str, Any], said: list[str]
) -> None:
    way = credentials(authority, "password")
    with ExitStack() as stack:
        if tries["terminus"] is MINE:  # else there would be no credit
            receiving = agent("rhea", "receive", guarded.port, address=MINE["address"], **way)
            stack.enter_context(receiving).wait_for("ready")
        trying = stack.enter_context(agent("rhea", "denied", guarded.port, **way, **tries))
        assert trying.result()["heard"] == said


def test_a_client_gets_the_reason_of_a_refused_open(guarded: RunningRouter, authority: Authority) -> None:
    way = credentials(authority, "password") | {"username": "carol"}
    with agent("rhea", "denied", guarded.port, terminus=MINE, **way) as trying:
        said = trying.wait_for("failed")
        assert said["condition"] == "amqp:resource-limit-exceeded"
        assert said["description"] == "connection disallowed by local policy"

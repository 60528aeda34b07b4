"""Management with large answers, unusual bodies, and secrets in the configuration (security.md 7.1, 7.2, 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.advisories.test_decoding import arrays, descriptions, descriptors, lists, maps
from tests.e2e.peer import Peer
from tests.management.node import NODE, Node, node_of
from tests.management.still import serve
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority
from trouter.management.requests import read_request
from trouter.testing.conformance import forms
from trouter.wire.codec import encode
from trouter.wire.types import Described, ULong
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

MARKERS = {
    "of a user": "marker-of-a-user",
    "of a connector": "marker/of+a connector",
    "of a key": "marker-of-a-key",
    "of a service": "marker-of-a-service",
}


async def test_dispatch_2308_a_hundred_thousand_rows_in_one_answer(nursery: trio.Nursery) -> None:
    asker = await serve(nursery)
    for number in range(100_000):
        asker.memory.core.table.obtain_entry(f"a{number}", True)
    body = {"attributeNames": ["identity"]}
    asker.send("QUERY", body, entityType="router.address")
    while not asker.agent.idle or not asker.receiver.received:
        await trio.lowlevel.checkpoint()
        asker.memory.pump()
    status, text, answer = asker.next_answer()
    assert status == 200, text
    assert len(answer["results"]) >= 100_000


@pytest.mark.parametrize("nested", [lists, maps, arrays, descriptions, descriptors])
@pytest.mark.parametrize("depth", [33, 1_000, 20_000])
def test_a_management_body_has_the_nesting_limit_of_every_value(nested: Callable[[int], bytes], depth: int) -> None:
    """CVE-2026-57822."""
    properties = encode(Described(ULong(0x74), {"operation": "CREATE", "type": "dummy"}))
    request = read_request(properties + b"\0\x53\x77" + nested(depth))
    assert request.malformed is not None
    assert request.map_body() == {}


# --- secrets: 8.8, Q-21


def configuration(folder: Path) -> str:
    authority = Authority(folder)
    pair = authority.issue("CN=localhost", password=MARKERS["of a key"])
    put_user(folder / "users", "alice", MARKERS["of a user"].encode())
    return f"""
router {{ id: R, usersFile: {folder}/users, logDir: {folder} }}
log {{ module: DEFAULT, enable: trace+ }}
sslProfile {{
    name: p
    certFile: {pair.cert}
    privateKeyFile: {pair.key}
    password: literal:{MARKERS["of a key"]}
}}
connector {{
    name: out
    host: 127.0.0.1
    port: 1
    saslUsername: u
    saslPassword: "{MARKERS["of a connector"]}"
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN SCRAM-SHA-256 ANONYMOUS
    allowInsecurePlain: loopback
}}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    with running(configuration(folder), folder) as process:
        yield process


def everything(node: Node) -> Iterator[Any]:
    """Yield the parts of the answers of each operation for each type."""
    for operation in ("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-SCHEMA", "GET-LOG", "GET-MGMT-NODES"):
        yield node.ask(operation, **NODE)[:3]
    for kind in node.node("GET-TYPES"):
        answer = node.ask("QUERY", **NODE, entityType=kind)
        yield answer[:3]
        if answer.status == 200 and "identity" in answer.body["attributeNames"]:
            place = answer.body["attributeNames"].index("identity")
            for row in answer.body["results"][:3]:
                yield node.ask("READ", type=kind, identity=row[place])[:3]
                yield node.ask("UPDATE", {"password": "x", "saslPassword": []}, type=kind, identity=row[place])[:3]


def test_secrets_are_nowhere(router: RunningRouter) -> None:
    """At every level of the log, in every answer, in plain, base64, hexadecimal and percent form."""
    for response in (MARKERS["of a user"], MARKERS["of a user"] + "x"):
        with Peer(router.port, opened=False) as peer:
            peer.authenticate("PLAIN", f"\0alice\0{response}".encode())
    with node_of(router.port) as node:
        created = {"host": "127.0.0.1", "port": "2", "saslUsername": "u", "saslPassword": MARKERS["of a service"]}
        node.ask("CREATE", created, type="connector", name="made")
        node.ask("CREATE", {**created, "port": "nonsense"}, type="connector", name="broken")
        node.ask("UPDATE", {"saslPassword": MARKERS["of a service"]}, type="listener", name="none")
        said = "\n".join(map(repr, everything(node)))
    assert "'saslUsername'" in said
    said += router.text()
    for whose, marker in MARKERS.items():
        for how, text in forms(marker):
            assert text not in said, f"{whose} {how}"

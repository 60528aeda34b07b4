"""A neighbour router that is locked out for wrong passwords, at the address of one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import StartRouter
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

HUB = """
router {{
    mode: interior
    id: HUB
    usersFile: {folder}/users
    authLockoutAfter: 3
    authLockoutSeconds: 3600
    authDelayAfter: 1000
}}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ host: 127.0.0.2, port: 0, role: inter-router, authenticatePeer: yes, saslMechanisms: SCRAM-SHA-256 }}
"""
SPOKE = """
router {{ mode: interior, id: {name} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
connector {{
    name: hub
    host: 127.0.0.2
    port: {port}
    role: inter-router
    saslMechanisms: SCRAM-SHA-256
    saslUsername: {user}
    saslPassword: file:{folder}/{password}
}}
"""


def test_the_other_neighbour_stays_comes_back_and_is_reached(start_router: StartRouter, tmp_path: Path) -> None:
    for user in ("good", "bad"):
        put_user(tmp_path / "users", user, b"right")
    for password in ("right", "wrong"):
        (tmp_path / password).write_text(f"{password}\n")
    hub = start_router(HUB.format(folder=tmp_path))

    def spoke(name: str, user: str, password: str) -> str:
        return SPOKE.format(name=name, port=hub.ports[1], user=user, password=password, folder=tmp_path)

    opened = r"Connection Opened: dir=in .* auth=SCRAM-SHA-256 user={} container_id={}"
    good = start_router(spoke("GOOD", "good", "right"))
    hub.wait_for_line(opened.format("good", "GOOD"))
    bad = start_router(spoke("BAD", "bad", "wrong"))
    hub.wait_for_line("user 'bad' is locked out at 127.0.0.1 for 3600 s: 3 failed logins")
    # The right password does not help the locked user, and the other one comes in at the same address.
    assert bad.stop() == 0
    bad = start_router(spoke("BAD", "bad", "right"))
    hub.wait_for_line("user='bad' .*: the user is locked out")
    assert len(hub.matching("Connection Closed")) == 0
    assert good.stop() == 0
    good = start_router(spoke("GOOD", "good", "right"))
    hub.wait_for_line(opened.format("good", "GOOD"), 2)
    with Peer(good.port) as receiver, Peer(hub.port) as sender:
        receiving = receiver.attach_receiver("across", 1)
        sender.send_message(sender.attach_sender("across"), b"through")
        assert b"through" in receiver.take_message(receiving)
    # The operator ends the lock, and the neighbour with the right password comes in by itself.
    with node_of(hub.port) as node:
        node.ask("DELETE", type="org.apache.qpid.dispatch.authLockout", name="authLockout/127.0.0.1:bad")
    hub.wait_for_line(opened.format("bad", "BAD"))

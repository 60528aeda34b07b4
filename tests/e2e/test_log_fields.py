"""Text that a client chooses is one field of a log line, and forges no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import RunningRouter, running
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

FORGED = "x encrypted=TLSv1.3 auth=EXTERNAL user=admin"
CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users, authLockoutAfter: 1, authDelayAfter: 1000, handshakeExempt: none }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS PLAIN, allowInsecurePlain: loopback }}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder: Path = tmp_path_factory.mktemp("fields")
    put_user(folder / "users", "alice", b"secret")
    with running(CONFIGURATION.format(folder=folder), folder) as started:
        yield started


def test_the_line_of_an_open_has_no_further_fields(router: RunningRouter) -> None:
    with Peer(router.port, opened=False, sasl=True) as peer:
        peer.open(hostname=FORGED, container_id="me props={:a=1}\nSERVER (info) forged")
        line = router.wait_for_line(rf"\[C{peer.number}\] Connection Opened: (.*)")[1]
    fields = dict(field.split("=", 1) for field in line.split(" "))
    assert list(fields) == ["dir", "host", "vhost", "encrypted", "auth", "user", "container_id", "props"]
    assert fields["vhost"] == r"x\x20encrypted\x3dTLSv1.3\x20auth\x3dEXTERNAL\x20user\x3dadmin"
    assert (fields["encrypted"], fields["auth"], fields["user"]) == ("no", "ANONYMOUS", "anonymous")
    assert fields["container_id"] == r"me\x20props\x3d{:a\x3d1}\nSERVER\x20(info)\x20forged"


def test_the_line_of_an_attach_has_no_further_fields(router: RunningRouter) -> None:
    with Peer(router.port, sasl=True) as peer:
        peer.attach_receiver("q expire:never} target={forged")
        line = router.wait_for_line(rf"\[C{peer.number}\]\[L\d+\] Link attached: (.*)")[1]
    assert line == r"dir=out source={q\x20expire:never}\x20target={forged expire:sess} target={<none> expire:sess}"


def test_a_name_that_no_user_has_is_quoted(router: RunningRouter) -> None:
    name = "alice is locked out at 192.0.2.1 listener=vip: "
    with Peer(router.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0{name}\0wrong".encode()) != 0
    line = router.wait_for_line(r"SERVER \(warning\) (.* locked out at 127.*)")[1]
    assert re.sub(r"\[C\d+\] ", "", line).startswith(f"user {name!r} is locked out at 127.0.0.1 for ")


def test_the_name_of_a_clients_link_route_stays_between_its_quotes_in_the_log(router: RunningRouter) -> None:
    forged = "mine' on container broker user='admin"
    with node_of(router.port, allowed_mechs="ANONYMOUS", container_id="me user=admin") as node:
        node.create("router.connection.linkRoute", {"pattern": "q.#", "direction": "in"}, name=forged)
        line = router.wait_for_line(r"Link Route Activated (.*)")[1]
    assert line == r"'mine\x27 on container broker user=\x27admin' on container me\x20user\x3dadmin"

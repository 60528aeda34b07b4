"""A router process under a policy, and real clients: the errors of denials, and the counters.

The rows are those of security.md 4.9. A manager with a connection of its own compares the counters before and after.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.reactor import AtMostOnce, DynamicNodeProperties
from proton.utils import BlockingConnection, LinkDetached

from tests.e2e.peer import Link
from tests.e2e.peer import Peer as AnyPeer
from tests.e2e.test_records import of, records_of
from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, running, same_worker
from tests.waiting import until
from trouter.wire.codec import encode
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Rejected,
    Source,
    Target,
    Transfer,
    encode_performative,
)
from trouter.wire.types import Array, Described, Symbol, UInt, ULong
from trouter_plugins.users_file import put_user

PASSWORD = "wonderland"
USERS = ("alice", "bob", "carol", "manager", "reader", "operator")
CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users }}
policy {{
    maxConnections: 30
    enableVhostPolicy: yes
    defaultVhost:
    maxMessageSize: 100000
    oversizeAction: link
    policyDir: {folder}/vhosts
}}
listener {{
    name: main
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN ANONYMOUS
    allowInsecurePlain: loopback
    maxFrameSize: 2048
    maxSessions: 200
    stripAnnotations: no
    idleTimeoutSeconds: 0
}}
"""


def vhost(hostname: str, groups: Any = None, **attributes: Any) -> list[Any]:
    """Return a vhost of users from anywhere; without ``groups`` it has one for all."""
    anybody = {"users": "*"} if groups is None else {}
    named = {"all": attributes.pop("group", {})} if groups is None else groups
    whole = {name: {"remoteHosts": "*", **anybody, **group} for name, group in named.items()}
    return ["vhost", {"hostname": hostname, "groups": whole, **attributes}]


OPEN = {"sources": "*", "targets": "*"}
ASKING = {"allowDynamicSource": True, "targets": "*"}
VHOSTS = [
    vhost("admin.org", {
        "admins": {"users": "manager", "management": "admin", "sources": "records", **ASKING},
        "readers": {"users": "reader", "management": "read", **ASKING},
        "operators": {"users": "operator", "management": "operate", "allowAdminStatusUpdate": False, **ASKING},
        "askers": {"users": "bob", "management": "read", "sources": "mine", "targets": "$management"},
        "nobodies": {"users": "carol", "allowAnonymousSender": True, "management": "none", **ASKING},
    }),
    vhost("closed.org", {"far": {"users": "alice", "remoteHosts": "192.0.2.1"}}),
    vhost("few.org", maxConnections=1),
    vhost("user.org", maxConnectionsPerUser=1),
    vhost("host.org", maxConnectionsPerHost=1),
    vhost("group.org", {"many": {"users": "alice", "maxConnectionsPerUser": 2}, "one": {"users": "bob"}},
          maxConnectionsPerUser=1),
    vhost("links.org", group={"sources": "own-${user}*, in", "targets": "own-${user}*, out", "maxSenders": 2,
          "maxReceivers": 2, "allowWaypointLinks": False, "allowFallbackLinks": False}),
    vhost("free.org", group={"sources": "*", "targets": "t*", "allowAnonymousSender": True}),
    vhost("proxy.org", group={**OPEN, "allowUserIdProxy": True}),
    vhost("size.org", {"small": {"users": "alice", "maxMessageSize": 1000, **OPEN},
          "any": {"users": "bob", "maxMessageSize": 0, **OPEN}, "vhosts": {"users": "carol", **OPEN}},
          maxMessageSize=5000),
    vhost("traders.com", {
        "traders": {"users": "alice", "maxFrameSize": 10000, "maxSessionWindow": 5000000, "maxSessions": 1},
        "feeds": {"users": "bob", "maxFrameSize": 60000, "maxSessionWindow": 1200000000, "maxSessions": 3},
        "plain": {"users": "carol", "maxFrameSize": 2147483647, "maxSessionWindow": 0, "maxSessions": 65535},
    }),
    vhost("anon.org", {"all": {"users": "anonymous", **OPEN}}),
    vhost("moving.org", {"all": {"users": "alice, bob", "sources": "a*, b*", "targets": "a*, b*"}}),
    vhost("lasting.org", {"all": {"users": "alice, bob", **OPEN}}, applyTo="new"),
]  # fmt: skip
DENIED_OPEN = Error("amqp:resource-limit-exceeded", "connection disallowed by local policy")
TOO_MANY = Error("amqp:resource-limit-exceeded", "link disallowed by local policy")
DENIED_LINK = Error("amqp:unauthorized-access", "link disallowed by local policy")


@contextmanager
def router_with(vhosts: list[Any], folder: Path) -> Iterator[RunningRouter]:
    """Run a router with the vhosts and all users."""
    for name in USERS:
        put_user(folder / "users", name, PASSWORD.encode())
    (folder / "vhosts").mkdir()
    (folder / "vhosts" / "all.json").write_text(json.dumps(vhosts))
    with running(CONFIGURATION.format(folder=folder), folder) as process:
        yield process


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with router_with(VHOSTS, tmp_path_factory.mktemp("policy")) as process:
        yield process


class Peer(AnyPeer):
    """A peer that sends any bytes."""

    _begun = False

    def say_octets(self, octets: bytes) -> None:
        self.raw(frame(0, octets))

    def send(self, link: Link, payload: bytes, settled: bool = False) -> None:
        """Send a whole message in one frame."""
        while link.credit == 0:
            self.take_flow(self.expect(Flow))
        self.transfer(link, payload, settled=settled)

    def send_unfinished(self, link: Link, payload: bytes) -> None:
        """Send one more frame of a message that never ends."""
        self.transfer(link, payload, more=True, first=not self._begun)
        self._begun = True

    def send_in_pieces(self, link: Link, payload: bytes, size: int) -> None:
        """Send a whole message in frames of ``size`` bytes."""
        for start in range(0, len(payload), size):
            piece = payload[start : start + size]
            self.transfer(link, piece, more=start + size < len(payload), first=start == 0)

    def expect_transfer(self, link: Link) -> None:
        """Receive one whole message, in ``payload``."""
        assert self.expect(Transfer).handle == link.remote_handle


class Manager(Node):
    """A management client that logs in."""

    def __init__(self, port: int, user: str = "manager", address: str | None = "$management") -> None:
        self.connection: Any = by_proton(port, user, "admin.org")
        self.receiver: Any = self.connection.create_receiver(None, dynamic=True, credit=100)
        self.sender: Any = self.connection.create_sender(address)
        self.address = address or "$management"
        self.reply_to = str(self.receiver.link.remote_source.address)
        self._asked = 0

    def vhost(self, name: str) -> dict[str, Any]:
        """Return the counters of a vhost."""
        return next(row for row in self.query("vhostStats") if row["hostname"] == name)

    def policy(self) -> dict[str, Any]:
        """Return the counters of the policy."""
        return self.query("policy")[0]


@pytest.fixture(scope="module")
def manager(router: RunningRouter) -> Iterator[Manager]:
    client = Manager(router.port)
    yield client
    client.close()


class Counters:
    """The changes in the counters of the policy and of one vhost."""

    def __init__(self, manager: Manager, vhost: str = "") -> None:
        self._manager = manager
        self._vhost = vhost
        self._before = self._now()

    def _now(self) -> dict[str, int]:
        policy = {f"policy.{name}": value for name, value in self._manager.policy().items() if name in COUNTED}
        vhost = self._manager.vhost(self._vhost) if self._vhost else {}
        return policy | {name: value for name, value in vhost.items() if name in COUNTED}

    def changed(self) -> dict[str, int]:
        now = self._now()
        return {name: now[name] - before for name, before in self._before.items() if now[name] != before}

    def become(self, wanted: dict[str, int]) -> None:
        """Wait until exactly these have changed: a peer may receive its end before it is counted."""
        until(lambda: self.changed() == wanted, f"a change by {wanted}")


COUNTED = {
    "connectionsDenied", "linksDenied", "maxMessageSizeDenied", "totalDenials", "vhostConnectionsDenied",
    "messagesDenied", "userIdDenied", "managementDenied", "sessionDenied", "senderDenied", "receiverDenied",
}  # fmt: skip


def by_proton(port: int, user: str, hostname: str, **more: Any) -> BlockingConnection:
    return BlockingConnection(
        f"127.0.0.1:{port}", user=user, password=PASSWORD, timeout=DEADLINE_S, allowed_mechs="PLAIN",
        allow_insecure_mechs=True, reconnect=False, virtual_host=hostname, **more,
    )  # fmt: skip


def entering(port: int, user: str, **fields: Any) -> Peer:
    """Return a peer that has logged in, and has sent its open if there are ``fields`` for it."""
    peer = Peer(port, opened=False)
    if user == "anonymous":
        assert peer.authenticate("ANONYMOUS", b"") == 0
    else:
        assert peer.authenticate("PLAIN", f"\0{user}\0{PASSWORD}".encode()) == 0
    if fields:
        peer.open(**fields)
    return peer


def session_of(port: int, user: str, hostname: str) -> Peer:
    peer = entering(port, user, hostname=hostname)
    peer.begin()
    return peer


# --- connections


@pytest.mark.parametrize(
    ("user", "hostname", "vhost"),
    [("alice", "unknown.org", ""), ("bob", "closed.org", "closed.org"), ("alice", "closed.org", "closed.org"),
     ("anonymous", "closed.org", "closed.org")],
    ids=["no vhost", "unknown user", "wrong host", "anonymous"],
)  # fmt: skip
def test_a_connection_that_is_denied_is_opened_and_closed(
    router: RunningRouter, manager: Manager, user: str, hostname: str, vhost: str
) -> None:
    counters = Counters(manager, vhost)
    with entering(router.port, user, hostname=hostname) as peer:
        assert peer.remote_open is not None
        assert peer.remote_open.max_frame_size == 2048  # the listener's
        assert peer.expect(Close).error == DENIED_OPEN
        peer.expect_end_of_stream()
    expected = {"policy.vhostConnectionsDenied": 1} | ({"connectionsDenied": 1} if vhost else {})
    assert counters.changed() == expected


def test_a_denied_client_that_does_not_close_is_cut_off(router: RunningRouter) -> None:
    with entering(router.port, "alice", hostname="unknown.org") as peer:
        peer.expect(Close)
        began_s = time.monotonic()
        peer.expect_end_of_stream()  # without a frame of the router
        assert time.monotonic() - began_s < DEADLINE_S / 2


def test_nothing_that_comes_with_a_denied_open_is_looked_at(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "closed.org")
    with Peer(router.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0bob\0{PASSWORD}".encode()) == 0
        peer.raw(b"AMQP\0\1\0\0")
        peer.say(Open("peer", "closed.org"))
        peer.say(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10))
        peer.say(Attach("link", 0, False, source=Source(), target=Target("x"), initial_delivery_count=0))
        peer.expect_header(b"AMQP\0\1\0\0")
        peer.expect(Open)
        assert peer.expect(Close).error == DENIED_OPEN
        peer.expect_end_of_stream()
    assert counters.changed() == {"policy.vhostConnectionsDenied": 1, "connectionsDenied": 1}


@pytest.mark.parametrize(
    ("hostname", "first", "second", "third"),
    [("few.org", "alice", "bob", "alice"), ("user.org", "alice", "alice", "bob"), ("host.org", "alice", "bob", "bob")],
)
def test_a_vhost_has_its_limit_of_connections(
    router: RunningRouter, manager: Manager, hostname: str, first: str, second: str, third: str
) -> None:
    counters = Counters(manager, hostname)
    with session_of(router.port, first, hostname):
        row = manager.vhost(hostname)
        assert (row["connectionsCurrent"], len(row["perUserState"][first])) == (1, 1)
        with entering(router.port, second, hostname=hostname) as peer:
            assert peer.expect(Close).error == DENIED_OPEN
        if hostname == "user.org":
            with session_of(router.port, third, hostname):
                assert set(manager.vhost(hostname)["perUserState"]) == {"alice", "bob"}
    assert counters.changed() == {"policy.vhostConnectionsDenied": 1, "connectionsDenied": 1}
    wait_until(lambda: manager.vhost(hostname)["connectionsCurrent"] == 0)
    row = manager.vhost(hostname)
    assert (row["perUserState"], row["perHostState"]) == ({}, {})
    with session_of(router.port, second, hostname):
        pass


def test_a_group_may_have_another_limit_than_its_vhost(router: RunningRouter) -> None:
    with session_of(router.port, "alice", "group.org"), session_of(router.port, "alice", "group.org"):
        with entering(router.port, "alice", hostname="group.org") as third:
            assert third.expect(Close).error == DENIED_OPEN
        with session_of(router.port, "bob", "group.org"), entering(router.port, "bob", hostname="group.org") as second:
            assert second.expect(Close).error == DENIED_OPEN


def wait_until(holds: Any) -> None:
    """Wait for the router's work after the end of a connection; each look is a request to it."""
    until(holds)


def test_connections_beyond_the_global_limit_are_closed_at_once(router: RunningRouter, manager: Manager) -> None:
    wait_until(lambda: manager.policy()["connectionsCurrent"] == 1)
    counters = Counters(manager)
    processed = manager.policy()["connectionsProcessed"]
    silent = [Peer(router.port, opened=False) for _ in range(29)]
    wait_until(lambda: manager.policy()["connectionsCurrent"] == 30)
    with Peer(router.port, opened=False) as peer:
        peer.expect_end_of_stream()
    assert counters.changed() == {"policy.connectionsDenied": 1, "policy.totalDenials": 1}
    policy = manager.policy()
    assert (policy["connectionsProcessed"] - processed, policy["connectionsCurrent"]) == (30, 30)
    for one in silent:
        one.sock.close()
    wait_until(lambda: manager.policy()["connectionsCurrent"] == 1)


# --- limits of the group


@pytest.mark.parametrize(
    ("user", "frame", "channel_max", "window"),
    [("alice", 10000, 0, 500), ("bob", 60000, 2, 20000), ("carol", 2048, 199, 4096)],
)
def test_the_numbers_of_a_group_stand_in_open_and_begin(
    router: RunningRouter, user: str, frame: int, channel_max: int, window: int
) -> None:
    with entering(router.port, user, hostname="traders.com") as peer:
        assert peer.remote_open is not None
        assert (peer.remote_open.max_frame_size, peer.remote_open.channel_max) == (frame, channel_max)
        assert peer.begin().incoming_window == window


def test_policy_limits_hold_for_sessions_that_came_with_the_open(router: RunningRouter) -> None:
    with Peer(router.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0alice\0{PASSWORD}".encode()) == 0
        begin = encode_performative(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10))
        opening = frame(0, encode_performative(Open("peer", "traders.com")))
        peer.raw(b"".join((b"AMQP\0\1\0\0", opening, frame(0, begin), frame(1, begin))))
        peer.expect_header(b"AMQP\0\1\0\0")
        assert peer.expect(Open).channel_max == 0
        assert peer.expect(Begin).incoming_window == 500
        assert peer.expect(Close).error == Error(
            "amqp:connection:framing-error", "remote channel 1 is above negotiated channel_max 0."
        )


# --- links


def attach(peer: Peer, sends: bool, terminus: Source | Target | None) -> Detach | None:
    """Attach a link; return the detach of one that is refused."""
    handle = peer._free_handle()
    name = f"link-{handle}"
    if sends:
        assert isinstance(terminus, Target)
        answer = peer.attach(Attach(name, handle, False, source=Source(), target=terminus, initial_delivery_count=0))
    else:
        assert not isinstance(terminus, Target)
        answer = peer.attach(Attach(name, handle, True, source=terminus, target=Target()))
    refused = answer.target is None if sends else answer.source is None
    if not refused:
        return None
    assert (answer.source, answer.target) == (None, None)
    return peer.expect(Detach)


WAYPOINTS = [Symbol("qd.waypoint"), Symbol("qd.waypoint_1"), Symbol("qd.waypoint.9")]
TERMINI: list[tuple[str, bool, Any]] = [
    ("an address", True, Target("other")),
    ("an address to receive from", False, Source("other")),
    ("one of another user", False, Source("own-bob")),
    ("what may only be received", True, Target("in")),
    ("an empty target", True, Target("")),
    ("a dynamic target", True, Target(dynamic=True)),
    ("a dynamic source", False, Source(dynamic=True)),
    ("no source", False, None),
    ("an empty source", False, Source("")),
    *[(f"{each}", True, Target("out", capabilities=(each,))) for each in WAYPOINTS],
    *[(f"{each} to receive", False, Source("in", capabilities=(Symbol("x"), each))) for each in WAYPOINTS],
    ("a fallback", False, Source("in", capabilities=(Symbol("qd.fallback"),))),
]


@pytest.mark.parametrize(("sends", "terminus"), [row[1:] for row in TERMINI], ids=[row[0] for row in TERMINI])
def test_a_link_that_is_denied_is_attached_to_nothing_and_detached(
    router: RunningRouter, manager: Manager, sends: bool, terminus: Source | Target | None
) -> None:
    counters = Counters(manager, "links.org")
    with session_of(router.port, "alice", "links.org") as peer:
        detach = attach(peer, sends, terminus)
        assert detach is not None
        assert (detach.closed, detach.error) == (True, DENIED_LINK)
        assert attach(peer, True, Target("own-alice-1")) is None
        assert attach(peer, False, Source("own-alice")) is None
    kind = "senderDenied" if sends else "receiverDenied"
    assert counters.changed() == {"policy.linksDenied": 1, "policy.totalDenials": 1, kind: 1}


def test_a_sender_without_a_target_is_denied(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "links.org")
    with session_of(router.port, "alice", "links.org") as peer:
        peer.say(Attach("link", 0, False, source=Source(), target=None, initial_delivery_count=0))
        peer.expect(Attach)
        assert peer.expect(Detach).error == DENIED_LINK
    assert counters.changed()["senderDenied"] == 1


@pytest.mark.parametrize("form", ["one", "array", "list"])
def test_a_waypoint_capability_counts_in_every_form(router: RunningRouter, form: str) -> None:
    symbol = Symbol("qd.waypoint_1")
    forms = {"one": symbol, "array": Array("symbol", (Symbol("x"), symbol)), "list": [Symbol("x"), symbol]}
    source = Described(ULong(0x28), ["in", *[None] * 9, forms[form]])
    fields = ["link", 0, True, None, None, source, Described(ULong(0x29), [])]
    with session_of(router.port, "alice", "links.org") as peer:
        peer.say_octets(encode(Described(ULong(0x12), uints(fields))))
        assert peer.expect(Attach).source is None
        assert peer.expect(Detach).error == DENIED_LINK


def test_a_capability_that_is_nested_deeper_is_no_attach(router: RunningRouter) -> None:
    source = Described(ULong(0x28), ["in", *[None] * 9, [[Symbol("qd.waypoint_1")]]])
    with session_of(router.port, "alice", "links.org") as peer:
        peer.say_octets(encode(Described(ULong(0x12), uints(["link", 0, True, None, None, source]))))
        close = peer.expect(Close)
        assert close.error is not None
        assert close.error.condition == "amqp:decode-error"


def uints(fields: list[Any]) -> list[Any]:
    return [UInt(each) if type(each) is int else each for each in fields]


@pytest.mark.parametrize(("sends", "kind"), [(True, "senderDenied"), (False, "receiverDenied")])
def test_a_group_has_its_limit_of_links(router: RunningRouter, manager: Manager, sends: bool, kind: str) -> None:
    counters = Counters(manager, "links.org")
    terminus = Target("out") if sends else Source("in")
    with session_of(router.port, "alice", "links.org") as peer:
        for _ in range(2):
            assert attach(peer, sends, terminus) is None
        detach = attach(peer, sends, terminus)
        assert detach is not None
        assert (detach.closed, detach.error) == (True, TOO_MANY)
        peer.say(Detach(0, True))  # the end of a link makes room for another
        peer.expect(Detach)
        assert attach(peer, sends, terminus) is None
        assert attach(peer, sends, terminus) is not None
    assert counters.changed() == {"policy.linksDenied": 2, "policy.totalDenials": 2, kind: 2}


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize("secure", ["no", "yes"])
def test_a_limit_of_no_links_allows_any_number_unless_defaults_are_secure(
    tmp_path: Path, secure: str, sends: bool
) -> None:
    group = {"remoteHosts": "*", "users": "*", **OPEN, "maxSenders": 0, "maxReceivers": 0}
    text = (
        f"router {{ secureDefaults: {secure} }}\npolicy {{ enableVhostPolicy: yes }}\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }\n"
        f"vhost {{\n hostname: v\n groups: {json.dumps({'all': group})}\n}}"
    )
    with running(text, tmp_path) as there, entering(there.port, "anonymous", hostname="v") as peer:
        peer.begin()
        refused = [attach(peer, sends, Target("a") if sends else Source("a")) for _ in range(3)]
    assert [detach and detach.error for detach in refused] == [TOO_MANY if secure == "yes" else None] * 3


def test_a_proton_client_gets_the_reason_of_a_denial(router: RunningRouter) -> None:
    connection = by_proton(router.port, "alice", "links.org")
    with pytest.raises(LinkDetached, match="link disallowed by local policy"):
        connection.create_sender("other")
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        connection.create_receiver("other")
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        connection.create_receiver(None, dynamic=True, options=DynamicNodeProperties({"x": "y"}))
    connection.close()


# --- messages


def data(*sections: tuple[int, Any]) -> bytes:
    return b"".join(encode(Described(ULong(code), value)) for code, value in sections)


BODY = (0x75, b"octets")


def answered(peer: Peer, link: Any, payload: bytes) -> Any:
    """Return the outcome of a message."""
    peer.send(link, payload)
    while True:
        disposition = peer.expect(Disposition)
        if disposition.settled:
            return disposition.state


def test_an_anonymous_message_goes_only_where_its_sender_may_send(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "free.org")
    with session_of(router.port, "alice", "free.org") as peer:
        receiver = peer.attach_receiver("t1", credit=500)
        sender = peer.attach_sender(None)

        def to(address: str) -> bytes:
            return data((0x73, [None, None, address]), BODY)

        denied = Rejected(Error("amqp:unauthorized-access", "policy violation on target"))
        for _ in range(260):  # more than the first credit of a link
            assert answered(peer, sender, to("other")) == denied
        assert answered(peer, sender, data((0x73, [None]), BODY)) == Rejected(
            Error("amqp:precondition-failed", "Routing failure: no address present")
        )
        peer.send(sender, to("other"), settled=True)
        peer.send(sender, to("t1"), settled=True)
        peer.expect_transfer(receiver)
    assert counters.changed() == {"policy.messagesDenied": 262}


@pytest.mark.parametrize("user_id", [b"alice", "alice", b"", None])
def test_a_message_may_name_its_own_user(router: RunningRouter, user_id: object) -> None:
    with session_of(router.port, "alice", "free.org") as peer:
        receiver = peer.attach_receiver("t2", credit=5)
        sender = peer.attach_sender("t2")
        peer.send(sender, data((0x73, [None, user_id]), BODY), settled=True)
        peer.expect_transfer(receiver)


@pytest.mark.parametrize("user", ["alice", "anonymous"])
@pytest.mark.parametrize("user_id", [b"bob", b"alic", b"alice2", "bob", b"\xff"])
def test_a_message_in_the_name_of_another_is_rejected(
    router: RunningRouter, manager: Manager, user: str, user_id: object
) -> None:
    """Q-02: the user-id is not the name of the user of the connection."""
    counters = Counters(manager)
    hostname = "free.org" if user == "alice" else "anon.org"
    with session_of(router.port, user, hostname) as peer:
        peer.attach_receiver("t3", credit=5)
        sender = peer.attach_sender("t3")
        outcome = answered(peer, sender, data((0x73, [None, user_id]), BODY))
        assert outcome == Rejected(Error("amqp:unauthorized-access", "user_id proxy violation"))
        peer.send(sender, data((0x73, [None, user_id]), BODY), settled=True)
        assert answered(peer, sender, data((0x73, [None, user_id]), BODY)) == outcome
    assert counters.changed() == {"policy.userIdDenied": 3}


def test_a_user_with_the_right_to_proxy_sends_with_the_user_id_of_another_user(router: RunningRouter) -> None:
    with session_of(router.port, "alice", "proxy.org") as peer:
        receiver = peer.attach_receiver("t4", credit=5)
        peer.send(peer.attach_sender("t4"), data((0x73, [None, b"bob"]), BODY), settled=True)
        peer.expect_transfer(receiver)


MISPLACED = [
    data(BODY, (0x73, [None, b"bob"])),
    data((0x73, [None, b"alice"]), (0x73, [None, b"bob"]), BODY),
    data((0x74, {}), (0x73, [None, b"bob"]), BODY),
    data((0x77, "text"), (0x78, {}), (0x73, [None, b"bob"])),
]


@pytest.mark.parametrize("payload", MISPLACED)
@pytest.mark.parametrize("piece", [1, 10, 1000])
def test_properties_stand_nowhere_else(router: RunningRouter, payload: bytes, piece: int) -> None:
    with session_of(router.port, "alice", "free.org") as peer:
        peer.attach_receiver("t5", credit=5)
        sender = peer.attach_sender("t5")
        peer.send_in_pieces(sender, payload, piece)
        disposition = peer.expect(Disposition)
        assert isinstance(disposition.state, Rejected)
        assert disposition.state.error is not None
        assert disposition.state.error.condition == "amqp:decode-error"


# --- large messages


@pytest.mark.parametrize(
    ("user", "hostname", "limit"),
    [("alice", "size.org", 1000), ("bob", "size.org", 0), ("carol", "size.org", 5000), ("alice", "free.org", 100_000)],
    ids=["the group's", "no limit", "the vhost's", "the policy's"],
)
def test_the_first_level_with_a_message_limit_counts(
    router: RunningRouter, user: str, hostname: str, limit: int
) -> None:
    with session_of(router.port, user, hostname) as peer:
        attached = Attach("a", 0, False, source=Source(), target=Target("t6"), initial_delivery_count=0)
        assert (peer.attach(attached).max_message_size or 0) == limit
        receiving = peer.attach(Attach("b", 1, True, source=Source("t6"), target=Target()))
        assert not receiving.max_message_size


def test_a_message_that_is_too_large_ends_its_link_on_the_frame_that_is_too_much(
    router: RunningRouter, manager: Manager
) -> None:
    counters = Counters(manager, "size.org")
    with session_of(router.port, "alice", "size.org") as peer:
        peer.attach_receiver("t7", credit=5)
        sender = peer.attach_sender("t7")
        peer.send_unfinished(sender, data((0x75, bytes(600))))
        peer.send_unfinished(sender, bytes(600))  # and no more: the router waits for nothing
        disposition = peer.expect(Disposition)
        assert disposition.settled
        error = Error("amqp:link:message-size-exceeded", "Message size exceeded")
        assert disposition.state == Rejected(error)
        detach = peer.expect(Detach)
        assert (detach.closed, detach.error) == (True, error)
        peer.send_unfinished(sender, bytes(600))  # frames that cross the router's
        peer.attach_sender("t7")
    assert counters.changed() == {
        "policy.maxMessageSizeDenied": 1, "policy.totalDenials": 1, "maxMessageSizeDenied": 1
    }  # fmt: skip


def test_an_oversize_message_may_end_the_connection(router: RunningRouter, manager: Manager) -> None:
    manager.get("UPDATE", {"oversizeAction": "connection"}, type="policy", identity="policy/None")
    counters = Counters(manager, "size.org")
    try:
        with session_of(router.port, "alice", "size.org") as peer:
            peer.attach_receiver("t8", credit=5)
            sender = peer.attach_sender("t8")
            peer.send(sender, data((0x75, bytes(1000))))
            assert peer.expect(Disposition).settled
            detach = peer.expect(Detach)
            assert (detach.closed, detach.error) == (True, None)
            assert peer.expect(Close).error == Error("amqp:connection:forced", "Message size exceeded")
        counters.become({"policy.maxMessageSizeDenied": 1, "policy.totalDenials": 1, "maxMessageSizeDenied": 1})
    finally:
        manager.get("UPDATE", {"oversizeAction": "link"}, type="policy", identity="policy/None")


# --- another policy


def groups(**settings: Any) -> dict[str, Any]:
    return {"groups": {"all": {"remoteHosts": "*", **settings}}}


def change(manager: Manager, hostname: str, **settings: Any) -> None:
    manager.get("UPDATE", groups(**settings), type="vhost", identity=f"vhost/{hostname}")


def test_a_policy_change_applies_to_open_connections(router: RunningRouter, manager: Manager) -> None:
    with session_of(router.port, "alice", "moving.org") as alice, session_of(router.port, "bob", "moving.org") as bob:
        kept, lost = alice.attach_receiver("a1", credit=5), alice.attach_receiver("b1")
        counters = Counters(manager, "moving.org")
        change(manager, "moving.org", users="alice", sources="a*", targets="a*", maxSessions=1)
        detach = alice.expect(Detach)
        assert (detach.handle, detach.closed, detach.error) == (lost.remote_handle, True, DENIED_LINK)
        assert bob.expect(Close).error == DENIED_OPEN
        alice.say(Detach(lost.handle, True))
        alice.send(alice.attach_sender("a1"), data(BODY), settled=True)
        alice.expect_transfer(kept)
        alice.say(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10), channel=1)
        alice.expect(Begin)
        assert alice.expect(End).error == Error("amqp:resource-limit-exceeded", "session disallowed by local policy")
        alice.attach_sender("a2", credit=False)  # the other session goes on
    assert counters.changed() == {
        "policy.linksDenied": 1, "policy.totalDenials": 2, "policy.vhostConnectionsDenied": 1, "connectionsDenied": 1,
        "receiverDenied": 1, "sessionDenied": 1,
    }  # fmt: skip


def test_a_change_is_for_the_size_of_messages_on_links_that_are_there(router: RunningRouter, manager: Manager) -> None:
    created = {"hostname": "narrow.org", **groups(users="alice", sources="n*", targets="n*")}
    manager.create("vhost", created, name="vhost/narrow.org")
    with session_of(router.port, "alice", "narrow.org") as alice:
        receiver = alice.attach_receiver("n1", credit=9)
        sender = alice.attach_sender("n1")
        alice.send(sender, data((0x75, bytes(900))), settled=True)
        alice.expect_transfer(receiver)
        change(manager, "narrow.org", users="alice", sources="n*", targets="n*", maxMessageSize=800)
        alice.send(sender, data((0x75, bytes(900))))
        alice.expect(Disposition)
        error = alice.expect(Detach).error
        assert error is not None
        assert error.condition == "amqp:link:message-size-exceeded"
    manager.ask("DELETE", type="vhost", identity="vhost/narrow.org")


def test_a_change_that_is_wrong_changes_nothing(router: RunningRouter, manager: Manager) -> None:
    with session_of(router.port, "alice", "moving.org") as alice:
        alice.attach_receiver("a1")
        status, text = manager.refused(
            "UPDATE", groups(users="alice", sources="${user}${user}"), type="vhost", identity="vhost/moving.org"
        )
        assert status == 500
        assert text.startswith("PolicyError: Policy 'moving.org' is invalid: ")
        alice.attach_receiver("a2")


def test_a_vhost_may_keep_its_open_connections_through_a_change(router: RunningRouter, manager: Manager) -> None:
    with session_of(router.port, "bob", "lasting.org") as bob:
        bob.attach_receiver("x")
        change(manager, "lasting.org", users="alice", sources="a*")
        bob.attach_receiver("y")
        with entering(router.port, "bob", hostname="lasting.org") as late:
            assert late.expect(Close).error == DENIED_OPEN
        manager.ask("DELETE", type="vhost", identity="vhost/lasting.org")
        bob.attach_receiver("z")
        assert manager.vhost("lasting.org")["connectionsCurrent"] == 1
    wait_until(lambda: "lasting.org" not in [row["hostname"] for row in manager.query("vhostStats")])


def test_deleting_a_vhost_closes_its_connections(router: RunningRouter, manager: Manager) -> None:
    for _ in range(2):  # its aliases are free again
        created = {"hostname": "short.org", "aliases": "brief.org", **groups(users="alice")}
        manager.create("vhost", created, name="vhost/short.org")
        with session_of(router.port, "alice", "brief.org") as alice:
            assert manager.vhost("short.org")["connectionsCurrent"] == 1
            assert manager.ask("DELETE", type="vhost", identity="vhost/short.org").status == 204
            assert alice.expect(Close).error == DENIED_OPEN
            alice.expect_end_of_stream()


def test_the_policy_can_be_switched_off_and_on(router: RunningRouter, manager: Manager) -> None:
    with session_of(router.port, "alice", "links.org") as alice:
        assert attach(alice, False, Source("other")) is not None
        manager.get("UPDATE", {"enableVhostPolicy": False}, type="policy", identity="policy/None")
        lost = alice.attach_receiver("other")
        with session_of(router.port, "anonymous", "nowhere.org") as stranger:
            manager.get("UPDATE", {"enableVhostPolicy": True}, type="policy", identity="policy/None")
            assert stranger.expect(Close).error == DENIED_OPEN
        detach = alice.expect(Detach)
        assert (detach.handle, detach.error) == (lost.remote_handle, DENIED_LINK)


# --- management


ANY = [("$management", False), ("_local/$management", False), ("_topo/0/R/$management", False), ("$management", True)]


@pytest.mark.parametrize(("address", "anonymous"), ANY)
def test_a_group_without_management_is_refused_each_request(
    router: RunningRouter, manager: Manager, address: str, anonymous: bool
) -> None:
    counters = Counters(manager)
    nobody = Manager(router.port, "carol", None if anonymous else address)
    nobody.address = address
    asked = {"type": "org.amqp.management", "name": "self", "entityType": "log"}
    refused = nobody.refused("QUERY", {"attributeNames": []}, **asked)
    assert refused == (403, "You are not allowed to perform this operation.")
    nobody.close()
    assert counters.changed() == {"policy.managementDenied": 1}


def test_levels_of_management(router: RunningRouter, manager: Manager) -> None:
    address = {"prefix": "made", "distribution": "closest"}
    reader, operator = Manager(router.port, "reader"), Manager(router.port, "operator")
    assert reader.query("router")[0]["id"] == "R"
    assert reader.refused("CREATE", address, type="router.config.address", name="made")[0] == 403
    assert reader.refused("GET-LOG", type="org.amqp.management", name="self")[0] == 403
    assert reader.refused("UPDATE", {"name": "log/DEFAULT", "enable": "trace+"})[0] == 403
    operator.create("router.config.address", address, name="made")
    assert operator.ask("DELETE", type="router.config.address", name="made").status == 204
    assert operator.node("GET-LOG", limit=1)
    for kind, attributes in {
        "listener": {"port": "0", "host": "127.0.0.1"},
        "vhost": {"hostname": "mine.org"},
        "log": {"module": "HTTP", "outputFile": "/tmp/anything"},
    }.items():
        assert operator.refused("CREATE", attributes, type=kind, name=f"{kind}/mine")[0] == 403
    with session_of(router.port, "alice", "links.org") as alice:
        number = str(alice.number)
        update = {"adminStatus": "deleted"}
        assert operator.refused("UPDATE", update, type="connection", identity=number)[0] == 403
        operator.get("UPDATE", {"enableProtocolTrace": False}, type="connection", identity=number)
        assert reader.refused("UPDATE", {"enableProtocolTrace": True}, type="connection", identity=number)[0] == 403
        manager.get("UPDATE", update, type="connection", identity=number)
        assert alice.expect(Close).error == Error("amqp:connection:forced", "closed by management")
    for client in (reader, operator):
        client.close()


def test_answers_go_only_where_the_requester_may_send_or_receives_alone(
    router: RunningRouter, manager: Manager
) -> None:
    """Otherwise the agent would send to addresses that are denied to the requester."""
    counters = Counters(manager)
    alice: Any = by_proton(router.port, "alice", "links.org")
    victim = alice.create_receiver("in", credit=10)
    connection: Any = by_proton(same_worker(router.port), "bob", "admin.org")
    sender, mine = connection.create_sender("$management"), connection.create_receiver("mine", credit=10)

    def ask(reply_to: str) -> None:
        properties = {"operation": "READ", "type": "org.amqp.management", "name": "self"}
        sender.send(Message(properties=properties, reply_to=reply_to, correlation_id=reply_to), timeout=DEADLINE_S)

    for reply_to in ("in", "amqp:/in", "$management", manager.reply_to, "mine"):
        ask(reply_to)
    assert mine.receive(timeout=DEADLINE_S).correlation_id == "mine"
    marks = manager.connection.create_sender("in", options=AtMostOnce())
    manager.connection.wait(lambda: marks.link.credit > 0, timeout=DEADLINE_S)
    marks.send(Message(correlation_id="the manager's"), timeout=DEADLINE_S)
    marks.close()
    assert victim.receive(timeout=DEADLINE_S).correlation_id == "the manager's"
    shared: Any = by_proton(same_worker(router.port), "bob", "admin.org")
    shared.create_receiver("mine", credit=10)
    ask("mine")
    assert counters.changed() == {"policy.managementDenied": 4}  # bob may send to $management, and nothing denies it
    for each in (shared, connection, alice):
        each.close()


# --- annotations


def test_router_annotations_of_a_client_steer_nothing(router: RunningRouter) -> None:
    """On a listener that strips nothing, other receivers see the annotations."""
    with session_of(router.port, "alice", "free.org") as peer:
        receiver = peer.attach_receiver("t9", credit=5)
        elsewhere = peer.attach_receiver("other", credit=5)
        sender = peer.attach_sender(None)
        forged = {Symbol("x-opt-qd.to"): "other", Symbol("x-opt-qd.trace"): ["0/R", "0/Q"], Symbol("own"): 1}
        peer.send(sender, data((0x72, forged), (0x73, [None, None, "t9"]), BODY), settled=True)
        peer.expect_transfer(receiver)
        assert b"own" in peer.payload
        assert b"0/Q" in peer.payload
        peer.be_heard()  # no transfer of the other link comes before the answer
        assert elsewhere.delivery_count == 0


@pytest.mark.parametrize(
    "annotations",
    [{Symbol("own"): bytes(8200)}, {Symbol("x-opt-qd.trace"): ["0/R"] * 65}],
    ids=["too many bytes", "too long a trace"],
)
@pytest.mark.parametrize("section", [0x71, 0x72])
def test_annotations_are_bounded(router: RunningRouter, section: int, annotations: Any) -> None:
    if section == 0x71 and Symbol("own") not in annotations:
        pytest.skip("routers write message annotations only")
    with session_of(router.port, "alice", "free.org") as peer:
        peer.attach_receiver("t10", credit=5)
        sender = peer.attach_sender("t10")
        peer.send_in_pieces(sender, data((section, annotations), BODY), 1500)
        disposition = peer.expect(Disposition)
        assert isinstance(disposition.state, Rejected)
        assert disposition.state.error is not None
        assert disposition.state.error.condition == "amqp:invalid-field"


# --- attributes of a listener and a connector


STAMPING = """
router {{ id: S, usersFile: {folder}/users }}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN ANONYMOUS
    allowInsecurePlain: loopback
    stampUserId: yes
}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in USERS:
        put_user(tmp_path / "users", name, PASSWORD.encode())
    return tmp_path


def test_a_listener_may_stamp_messages_with_their_user(start_router: StartRouter, folder: Path) -> None:
    """Without a policy, too, an authenticated user may not use the name of another; others have no name to protect."""
    stamping = start_router(STAMPING.format(folder=folder))
    with session_of(stamping.port, "alice", "any") as peer, session_of(stamping.port, "anonymous", "any") as nobody:
        receiver = peer.attach_receiver("x", credit=10)
        sender = peer.attach_sender("x")
        for piece in (1000, 7):
            peer.send_in_pieces(sender, data((0x70, [True]), (0x73, ["id", None, "to"]), BODY), piece)
            octets = peer.take_message(receiver)
            assert octets == data((0x70, [True])) + properties(["id", b"alice", "to"]) + data(BODY)
            peer.expect(Disposition)
        rejected = answered(peer, sender, data((0x73, [None, b"bob"]), BODY))
        assert rejected == Rejected(Error("amqp:unauthorized-access", "user_id proxy violation"))
        nobody.send(nobody.attach_sender("x"), data((0x73, [None, b"bob"]), BODY), settled=True)
        peer.expect_transfer(receiver)
        assert peer.payload == data((0x73, [None, b"bob"]), BODY)


def properties(fields: list[Any]) -> bytes:
    """Return a properties section as the router writes it."""
    octets = b"".join(map(encode, fields))
    return b"\0\x53\x73\xd0" + (len(octets) + 4).to_bytes(4, "big") + len(fields).to_bytes(4, "big") + octets


DIALLING = """
router {{ id: D }}
policy {{
    enableVhostPolicy: yes
    defaultVhost:
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
}}
vhost {{
    hostname: ours
    groups: {{ all: {{ users: *, remoteHosts: *, sources: *, targets: *, allowDynamicSource: yes, management: read }} }}
}}
recordLog {{ dir: {folder}/kept, kinds: audit }}
connector {{
    name: out
    host: 127.0.0.1
    port: {port}
    policyVhost: {vhost}
    saslMechanisms: ANONYMOUS
}}
"""


CONNECTORS = {
    "no vhost": ("nothing", "no-vhost", None),
    "no group for connectors": ("ours", "ours:no-connector-group", "ours"),
}


@pytest.mark.parametrize(("policy_vhost", "rule", "found"), CONNECTORS.values(), ids=CONNECTORS)
def test_a_connector_that_the_policy_denies(
    start_router: StartRouter, folder: Path, policy_vhost: str, rule: str, found: str | None
) -> None:
    """Counted and recorded like a client; management shows a connector that failed, and why, and it tries again."""
    far = start_router(STAMPING.format(folder=folder))
    dialling = start_router(DIALLING.format(port=far.port, vhost=policy_vhost, folder=folder))
    dialling.wait_for_line(rf"POLICY \(info\) \[C\d+\] DENY AMQP Open .*: connector rule=.*{rule}")
    with node_of(dialling.port, virtual_host="ours") as node:
        row: dict[str, Any] = {"connectionMsg": None}
        while not row["connectionMsg"]:
            (row,) = node.query("connector")
        assert row["connectionStatus"] == "CONNECTING"
        why = "amqp:resource-limit-exceeded connection disallowed by local policy"
        assert re.fullmatch(rf"\[C\d+\] Connection to 127.0.0.1:{far.port} failed: {why}", row["connectionMsg"])
        assert not [row for row in node.query("connection") if row["dir"] == "out"]
        counts = node.query("policy")[0]
    assert counts["vhostConnectionsDenied"] >= 1
    assert (counts["connectionsDenied"], counts["totalDenials"]) == (0, 0)
    assert dialling.stop() == 0
    records = records_of(folder / "kept")
    denied = of(records, "policy.decision", allow=False)
    assert denied
    for each in denied:
        assert (each["op"], each["rule"], each["reason"], each.get("vhost")) == ("open", rule, "connector", found)
        (closed,) = of(records, "connection.closed", conn=each["conn"])
        assert (closed["by"], closed["condition"], closed["reason"]) == ("local", DENIED_OPEN.condition, why)


def test_a_reload_changes_the_policy_as_a_request_does(start_router: StartRouter, folder: Path) -> None:
    (folder / "vhosts").mkdir()
    (folder / "vhosts" / "all.json").write_text(json.dumps(VHOSTS))
    reloading = start_router(CONFIGURATION.format(folder=folder))
    port = reloading.port
    with session_of(port, "alice", "moving.org") as alice, session_of(port, "bob", "moving.org") as bob:
        lost = alice.attach_receiver("b1")
        text = json.dumps(VHOSTS).replace('"alice, bob", "sources": "a*, b*"', '"alice", "sources": "a*"')
        (folder / "vhosts" / "all.json").write_text(text)
        reloading.process.send_signal(signal.SIGHUP)
        assert bob.expect(Close).error == DENIED_OPEN
        detach = alice.expect(Detach)
        assert (detach.handle, detach.error) == (lost.remote_handle, DENIED_LINK)
        alice.attach_receiver("a1")


def test_the_log_and_the_router_stay_whole(router: RunningRouter) -> None:
    assert router.process.poll() is None
    router.assert_no_fault_of_ours()

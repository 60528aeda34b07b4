"""Quotas of a router process, and the errors at real clients; rates are tested in memory, with a set clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from proton import Message
from proton.reactor import AtMostOnce

from tests.e2e.peer import message
from tests.e2e.test_policy import (
    ASKING,
    DENIED_OPEN,
    OPEN,
    TOO_MANY,
    Counters,
    Manager,
    Peer,
    attach,
    by_proton,
    entering,
    router_with,
    session_of,
    vhost,
)
from tests.routers import DEADLINE_S, RunningRouter, same_worker
from trouter.policy.book import SESSION_BYTES
from trouter.policy.kinds import SESSION_DENIED
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Error,
    Flow,
    Open,
    Source,
    Target,
    encode_performative,
)

VHOSTS = [
    vhost("admin.org", {"admins": {"users": "manager", "management": "admin", **ASKING}}),
    vhost("rates.org", {"all": {"users": "alice, bob, carol", "perUser": {"maxConnectionsPerSecond": 1}, **OPEN}},
          perUser={"maxAttachesPerSecond": 2}),
    vhost("tried.org", maxLinks=1, maxConnectionsPerSecond=1, quotaMode="alarm", group=OPEN),
    vhost("counted.org", maxLinks=2, group={"perHost": {"maxAddresses": 1}, "allowDynamicSource": True, **OPEN}),
    vhost("slow.org", group={"perUser": {"maxMessagesPerSecond": 1}, **OPEN}, maxMessagesPerSecond=3),
    vhost("kept.org", maxBufferedBytes=3000, group=OPEN),
    vhost("begun.org", maxBufferedBytes=3 * SESSION_BYTES, group=OPEN),
    vhost("half.org", maxBufferedBytes=100_000, group={"maxSessionWindow": 204_800, **OPEN}),
    vhost("full.org", maxBufferedBytes=4000, group=OPEN),
    vhost("moving.org", group=OPEN),
]  # fmt: skip


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with router_with(VHOSTS, tmp_path_factory.mktemp("quotas")) as process:
        yield process


@pytest.fixture(scope="module")
def manager(router: RunningRouter) -> Iterator[Manager]:
    client = Manager(router.port)
    yield client
    client.close()


def refused(peer: Peer, sends: bool, terminus: Source | Target) -> bool:
    """Return whether a link is refused for a quota; it must not be refused for anything else."""
    detach = attach(peer, sends, terminus)
    assert detach is None or (detach.closed, detach.error) == (True, TOO_MANY)
    return detach is not None


def open_two(port: int, user: str, hostname: str) -> list[Error | None]:
    """Open two connections at the same time, on a machine of any speed; return the errors of their closes."""
    peers = [entering(port, user) for _ in range(2)]  # a login may take longer than a quota's second
    for peer in peers:
        peer.raw(AMQP_HEADER)
        peer.say(Open("peer", hostname=hostname))
    errors = []
    for peer in peers:
        with peer:
            peer.expect_header(AMQP_HEADER)
            peer.expect(Open)
            peer.say(Close())
            errors.append(peer.expect(Close).error)
    return errors


def test_connections_that_come_too_fast_are_refused(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "rates.org")
    assert open_two(router.port, "alice", "rates.org").count(DENIED_OPEN) == 1
    with session_of(router.port, "bob", "rates.org"):
        pass
    assert counters.changed() == {"policy.vhostConnectionsDenied": 1, "connectionsDenied": 1}
    row = manager.vhost("rates.org")
    assert row["quotaAlarms"] == 1
    assert row["quotaAlarmsRaised"] == ["rates.org:all:perUser:maxConnectionsPerSecond alice"]
    router.wait_for_line("ALARM quota raised: rule='rates.org:all:perUser:maxConnectionsPerSecond' who='alice' limit=1")


def test_links_that_come_too_fast_are_refused(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "rates.org")
    with session_of(router.port, "carol", "rates.org") as peer:
        attaches = [
            Attach(f"link-{handle}", handle, False, source=Source(), target=Target("a"), initial_delivery_count=0)
            for handle in range(3)
        ]
        peer.raw(b"".join(frame(0, encode_performative(each)) for each in attaches))  # in one read of the router
        assert [peer.expect(Attach).target is not None for _ in attaches] == [True, True, False]
        assert peer.expect(Detach).error == TOO_MANY
    assert counters.changed() == {"policy.linksDenied": 1, "policy.totalDenials": 1, "senderDenied": 1}


def test_links_and_addresses_have_quotas(router: RunningRouter, manager: Manager) -> None:
    with session_of(router.port, "alice", "counted.org") as peer:
        assert not refused(peer, True, Target("a"))
        assert refused(peer, True, Target("b"))
        assert refused(peer, False, Source(dynamic=True))
        assert not refused(peer, False, Source("amqp:/a/"))
        assert refused(peer, True, Target("a"))
        peer.say(Detach(0, True))
        peer.expect(Detach)
        assert not refused(peer, True, Target("a"))
    assert set(manager.vhost("counted.org")["quotaAlarmsRaised"]) == {
        "counted.org:all:perHost:maxAddresses 127.0.0.1",
        "counted.org:maxLinks",
    }
    with session_of(router.port, "alice", "counted.org") as peer:  # nothing is left of ended connections
        assert not refused(peer, True, Target("b"))


def test_alarm_only_lets_everything_through(router: RunningRouter, manager: Manager) -> None:
    counters = Counters(manager, "tried.org")
    with session_of(router.port, "alice", "tried.org") as peer:
        while "tried.org:maxConnectionsPerSecond" not in manager.vhost("tried.org")["quotaAlarmsRaised"]:
            assert open_two(router.port, "alice", "tried.org") == [None, None]
        assert not any(refused(peer, True, Target("a")) for _ in range(5))
        assert "tried.org:maxLinks" in manager.vhost("tried.org")["quotaAlarmsRaised"]
    assert counters.changed() == {}
    router.wait_for_line(r"ALARM quota raised: rule='tried.org:maxLinks' .*alarm only")


def test_messages_that_come_too_fast_wait_for_credit(router: RunningRouter) -> None:
    """On a machine of any speed: credit comes one by one, and every message arrives."""
    receiving, sending = by_proton(router.port, "bob", "slow.org"), by_proton(router.port, "alice", "slow.org")
    receiver = receiving.create_receiver("a", credit=10)
    sender = sending.create_sender("a", options=AtMostOnce())
    for number in range(3):
        sending.wait(lambda: sender.link.credit > 0, timeout=DEADLINE_S)
        assert sender.link.credit == 1
        sender.send(Message(str(number)))
    sending.close()
    assert [receiver.receive().body for _ in range(3)] == ["0", "1", "2"]
    receiving.close()


def test_kept_messages_have_a_quota(router: RunningRouter) -> None:
    port = router.port
    with session_of(port, "bob", "kept.org") as receiving, session_of(same_worker(port), "alice", "kept.org") as peer:
        receiver = receiving.attach_receiver("a")
        link = peer.attach_sender("a")
        sent = 0
        while link.credit:
            peer.send_message(link, b"x" * 100)
            sent += 1
        peer.be_heard()
        assert refused(peer, True, Target("a"))
        receiving.grant(receiver, sent)
        for _ in range(sent):
            receiving.take_message(receiver)
        while link.credit == 0:
            said = peer.next()
            if isinstance(said, Flow):
                peer.take_flow(said)


def test_a_vhost_that_keeps_too_much_refuses_links_and_at_a_quarter_more_connections(router: RunningRouter) -> None:
    port, octets, sent = router.port, message(bytes(6000)), 0
    with session_of(port, "bob", "full.org") as receiving, session_of(port, "alice", "full.org") as peer:
        receiver, link = receiving.attach_receiver("a"), peer.attach_sender("a")

        def keep(count: int) -> None:
            """Send so much of the message that the router keeps ``count`` bytes of it."""
            nonlocal sent
            while sent < count:
                piece = octets[sent : min(count, sent + 1000)]
                peer.transfer(link, piece, more=sent + len(piece) < len(octets), first=not sent)
                sent += len(piece)
            peer.be_heard()

        keep(3999)
        assert not refused(peer, True, Target("a"))
        keep(4000)
        assert refused(peer, True, Target("a"))
        keep(4999)
        with session_of(port, "carol", "full.org"):
            pass
        keep(5000)
        with entering(port, "carol", hostname="full.org") as late:
            assert late.expect(Close).error == DENIED_OPEN
        router.wait_for_line("DENY AMQP Open .*'carol'.* rule='full.org:maxBufferedBytes'")
        keep(len(octets))
        receiving.grant(receiver, 1)
        assert receiving.take_message(receiver).endswith(octets)
        while link.credit == 0:
            said = peer.next()
            if isinstance(said, Flow):
                peer.take_flow(said)
        with session_of(port, "carol", "full.org"):
            pass


@pytest.mark.parametrize(("kept", "scarce"), [(50_000, False), (50_001, True)])
def test_a_vhost_that_keeps_half_of_its_quota_gets_an_eighth_of_the_window(
    router: RunningRouter, kept: int, scarce: bool
) -> None:
    """Kept messages take 25 of 100 frames; an eighth of the others is 9. The window opens when half of it is used."""
    with session_of(router.port, "bob", "half.org") as stalled, session_of(router.port, "alice", "half.org") as sending:
        stalled.attach_receiver("half", 0)
        link = sending.attach_sender("half")
        assert sending.window == 100
        octets = message(bytes(100_000))[:kept]
        for number in range(50):
            piece = octets[number * 1000 : kept if number == 49 else (number + 1) * 1000]
            sending.transfer(link, piece, more=True, first=number == 0)
        sending.be_heard()
        for _ in range(46):
            sending.transfer(link, b"", more=True, first=False)
        sending.be_heard()
        assert (sending.window == 9) == scarce


def test_sessions_count_against_the_quota(router: RunningRouter, manager: Manager) -> None:
    """Three sessions fit into the quota beside the first of each connection, and a first session is never refused."""

    def begun(peer: Peer, channel: int) -> Error | None:
        """Begin one more session; return the error that ends it at once, None if it stays."""
        peer.say(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100), channel=channel)
        peer.expect(Begin)
        peer.flow(echo=True)
        said = peer.next()
        if not isinstance(said, End):
            return None
        peer.say(End(), channel=channel)
        peer.expect(Flow)
        return said.error

    counters = Counters(manager, "begun.org")
    with session_of(router.port, "alice", "begun.org") as one, session_of(router.port, "bob", "begun.org") as other:
        assert [begun(one, 1), begun(one, 2), begun(other, 1)] == [None] * 3
        assert begun(other, 2) == begun(one, 3) == SESSION_DENIED
        assert counters.changed() == {"policy.totalDenials": 2, "sessionDenied": 2}
        one.say(End(), channel=2)
        one.expect(End)
        assert begun(other, 3) is None
        assert begun(one, 4) == SESSION_DENIED
    with session_of(router.port, "alice", "begun.org") as peer:
        assert begun(peer, 1) is None


def test_quotas_come_and_go_while_connections_are_open(router: RunningRouter, manager: Manager) -> None:
    receiving, sending = by_proton(router.port, "bob", "moving.org"), by_proton(router.port, "alice", "moving.org")
    receiving.create_receiver("a", credit=1000)
    sender = sending.create_sender("a", options=AtMostOnce())
    sending.wait(lambda: sender.link.credit == 250, timeout=DEADLINE_S)
    manager.get("UPDATE", {"maxMessagesPerSecond": 1, "maxLinks": 2}, type="vhost", identity="vhost/moving.org")
    with session_of(router.port, "alice", "moving.org") as peer:
        assert refused(peer, True, Target("a"))
    for _ in range(250):
        sender.send(Message("x"))
    assert sender.link.credit <= 1
    manager.get("UPDATE", {"maxMessagesPerSecond": 100_000, "maxLinks": 10}, type="vhost", identity="vhost/moving.org")
    sending.wait(lambda: sender.link.credit == 250, timeout=DEADLINE_S)
    sending.close()
    receiving.close()

"""Quotas over a whole router in memory, with a clock that the test moves: the messages that pass are counted.

The rules are those of security.md 8.5.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trouter.config import load
from trouter.core.ingress import Ingress
from trouter.core.terms import PeerTerms
from trouter.engine.ports import Budget
from trouter.policy.book import CLEAR_S, MAX_IDLE, Book, QuotaAlarm, Share
from trouter.policy.compiled import Policy
from trouter.policy.quota_rules import QuotaRule
from trouter.testing.memory import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, compose

TICK_S = 0.125
MESSAGE = compose(b"x" * 100)


def rules(vhost: str = "", group: str = "", name: str = "v") -> tuple[QuotaRule, ...]:
    """Return the quotas of a user of the only group of a vhost with these settings."""
    text = f"vhost {{\n hostname: {name}\n{vhost}\n groups: {{ g: {{ users: *\n remoteHosts: *\n{group}\n }} }}\n}}"
    configuration = load(text=f"policy {{ enableVhostPolicy: yes }}\n{text}")
    policy = Policy.compile(configuration.policy, configuration.vhosts)
    return policy.vhosts[name].groups["g"].quotas


class World:
    """A router whose peers have quotas, as in trouter.connections."""

    def __init__(self) -> None:
        self.router = MemoryRouter()
        self.alarms: list[QuotaAlarm] = []
        self.book = Book(lambda: self.router.now_s, lambda: Budget(0), self.alarms.append)
        self.shares: dict[MemoryClient, Share] = {}

    def connect(self, quotas: tuple[QuotaRule, ...], user: str = "alice", host: str = "h", **more: Any) -> MemoryClient:
        data: list[MemoryClient] = []
        share = self.book.count_connection("c", "", quotas, user, host, lambda: data[0].written_bytes if data else 0)
        client = self.router.connect(PeerTerms(gate=share if quotas else None, **more))
        data.append(client)
        if quotas:
            self.shares[client] = share
            for session in client.server.sessions():
                session.windows.count_in_budgets(share.buffers or None)
        return client

    def leave(self, client: MemoryClient) -> None:
        client.close()
        self.book.release_share(self.shares.pop(client))

    def pass_time(self, seconds: float) -> None:
        """Move the clock by ``seconds``, with a tick as often as the router ticks."""
        for _ in range(int(seconds / TICK_S)):
            self.router.now_s += TICK_S
            self.book.grant_waiting()
            if self.router.now_s % 1 == 0:
                self.book.check_usage()
            self.router.pump()


def enter(world: World, quotas: tuple[QuotaRule, ...]) -> Share:
    return world.book.count_connection("c", "", quotas, "alice", "h", int)


def may_open(book: Book, quotas: tuple[QuotaRule, ...], user: str, host: str) -> str:
    """Count a connection that opens; return the rule that denies it, empty if it may open."""
    answer = book.quotas_at_open(quotas, user, host)
    book.note_answer(answer)
    return answer.rule


def may_attach(share: Share, address: str | None) -> str:
    """Count an attach; return the rule that denies it, empty if none."""
    answer = share.quotas_at_attach(address, 0)
    share._book.note_answer(answer)
    return answer.rule


def may_keep(share: Share, size_bytes: int) -> str:
    """Count bytes; return the rule that denies them, empty if none."""
    answer = share.quotas_on_bytes(size_bytes)
    share._book.note_answer(answer)
    if not answer.rule:
        share.add_held_bytes(size_bytes)
    return answer.rule


class Flood:
    """A sender with more messages than its quota permits, and a receiver that accepts all of them."""

    def __init__(self, world: World, sending: MemoryClient, address: str, messages: int = 700) -> None:
        self.receiver: MemoryReceiver = world.router.connect().receiver(address, credit=100_000)
        self.sender: MemorySender = sending.sender(address)
        for _ in range(messages):
            self.sender.send(MESSAGE, settled=True)
        world.router.pump()

    @property
    def count(self) -> int:
        return len(self.receiver.received)


def test_messages_come_as_fast_as_they_may_and_a_second_at_once() -> None:
    world = World()
    flood = Flood(world, world.connect(rules("maxMessagesPerSecond: 40")), "a")
    assert flood.count == 40
    for second in range(1, 11):
        world.pass_time(1)
        assert flood.count == 40 * (second + 1)


@pytest.mark.parametrize("per", ["", "perUser", "perHost"])
def test_connections_share_a_common_quota(per: str) -> None:
    limit = "maxMessagesPerSecond: 60"
    world = World()
    quotas = rules(f"{per}: {{ {limit} }}" if per else limit)
    floods = [Flood(world, world.connect(quotas, "alice", "h"), f"a{number}") for number in range(3)]
    other = Flood(world, world.connect(quotas, "bob", "i"), "b")
    world.pass_time(10)
    counts = [flood.count for flood in floods]
    together = sum(counts) + (0 if per else other.count)
    assert 600 <= together <= 660
    assert min(counts) * 2 > max(counts)  # no tenant gets everything
    assert other.count == 660 if per else 600 // 8 < other.count < 600 // 2


def test_the_strictest_quota_counts() -> None:
    world = World()
    quotas = rules("maxMessagesPerSecond: 80\n perUser: { maxMessagesPerSecond: 16 }", "maxMessagesPerSecond: 40")
    floods = [Flood(world, world.connect(quotas, user), user) for user in ("alice", "bob", "carol", "dave")]
    world.pass_time(10)
    assert 400 <= sum(flood.count for flood in floods) <= 440
    assert all(flood.count <= 16 * 11 for flood in floods)


def test_bytes_are_paid_for_when_they_have_come() -> None:
    world = World()
    client = world.connect(rules("maxBytesPerSecond: 20000"))
    flood = Flood(world, client, "a", 4000)
    world.pass_time(20)
    assert 20 * 20000 - 10000 <= client.written_bytes <= 22 * 20000
    assert flood.count > 0


def test_a_large_message_comes_whole_and_is_paid_for_by_waiting() -> None:
    world = World()
    client = world.connect(rules("maxBytesPerSecond: 10000"))
    receiver = world.router.connect().receiver("a", credit=100)
    sender = client.sender("a")
    for _ in range(12):
        sender.send(compose(b"x" * 50_000), settled=True)
    world.router.pump()
    first = len(receiver.received)
    assert 1 <= first <= 9
    world.pass_time(5 * first - 2)
    assert len(receiver.received) == first
    world.pass_time(3)
    assert len(receiver.received) == first + 1


def test_one_vhost_at_its_cap_leaves_the_credit_of_others_alone() -> None:
    """The same traffic beside a vhost that floods: message by message, the credit equals the credit without it."""

    def credit_seen(noisy: bool) -> list[int]:
        world = World()
        if noisy:
            quotas = rules("maxMessagesPerSecond: 10\n maxBytesPerSecond: 5000\n maxBufferedBytes: 1000", name="noisy")
            for number in range(5):
                Flood(world, world.connect(quotas), f"noisy{number}", 500)
        quiet = world.connect(rules("maxMessagesPerSecond: 100", name="quiet"))
        plain = world.router.connect()
        for name in ("one", "two"):
            world.router.connect().receiver(name, credit=10_000)
        senders = [quiet.sender("one"), plain.sender("two")]
        seen = []
        for _ in range(200):
            for sender in senders:
                sender.send(MESSAGE, settled=True)
            world.pass_time(TICK_S)
            seen += [sender.credit for sender in senders]
        return seen

    assert credit_seen(noisy=True) == credit_seen(noisy=False)


def test_a_connection_without_quotas_has_no_gate() -> None:
    world = World()
    assert not enter(world, rules()).rules
    assert not world.book.busy
    share = enter(world, rules("maxLinks: 1"))
    assert not share.paces
    assert share.buffers == []


def test_kept_bytes_are_bounded_and_credit_returns_as_receivers_take_them() -> None:
    world = World()
    client = world.connect(rules("maxBufferedBytes: 20000"), link_capacity=10)
    receiver = world.router.connect().receiver("a")
    sender = client.sender("a")
    for _ in range(100):
        sender.send(compose(b"x" * 5000), settled=True)
    world.router.pump()
    (meter,) = world.shares[client].meters
    assert 20000 <= meter.buffer.held == world.router.held_bytes() <= 20000 + 10 * 5100
    assert may_attach(world.shares[client], "M0b") == "v:maxBufferedBytes"
    world.pass_time(5)
    assert sender.credit == 0
    receiver.grant(1000)
    world.pass_time(5)
    assert len(receiver.received) == 100
    assert meter.buffer.held == world.router.held_bytes() == 0
    assert may_attach(world.shares[client], "M0b") == ""


@pytest.mark.parametrize("mode", ["enforce", "alarm"])
def test_bytes_that_are_no_message_are_kept_up_to_the_quota(mode: str) -> None:
    """A quota of n bytes accepts n of them, and not n + 1; in alarm mode it accepts all, and raises an alarm."""
    world = World()
    quotas = rules(f"maxBufferedBytes: 3000\n quotaMode: {mode}\n perUser: {{ maxBufferedBytes: 3001 }}")
    first, second = (world.shares[world.connect(quotas)] for _ in range(2))
    buffers = [meter.buffer for meter in first.meters]
    assert may_keep(first, 1000) == may_keep(second, 2000) == ""
    assert [buffer.held for buffer in buffers] == [3000, 3000]
    assert not world.alarms
    assert may_keep(first, 1) == ("v:maxBufferedBytes" if mode == "enforce" else "")
    assert [alarm.measure for alarm in world.alarms] == ["max_buffered_bytes"]
    second.add_held_bytes(-500)
    assert may_keep(second, 499) == ""
    world.book.release_share(second)
    assert {buffer.held for buffer in buffers} == {first.kept}
    world.book.release_share(first)
    assert {buffer.held for buffer in buffers} == {0}


def test_kept_bytes_of_a_lost_connection_count_until_a_receiver_takes_them() -> None:
    world = World()
    client = world.connect(rules("maxBufferedBytes: 1000000"), link_capacity=20)
    receiver = world.router.connect().receiver("a")
    sender = client.sender("a")
    for _ in range(20):
        sender.send(compose(b"x" * 5000), settled=True)
    world.router.pump()
    share = world.shares[client]
    buffer = share.meters[0].buffer
    assert buffer.held == world.router.held_bytes() > 0
    (session,) = client.server.sessions()
    other = Budget(10)
    session.windows.count_in_budgets([other])
    assert (buffer.held, other.held) == (0, session.windows.held_bytes)
    session.windows.count_in_budgets(share.buffers)
    world.leave(client)
    assert other.held == 0
    receiver.grant(1000)
    world.router.pump()
    assert buffer.held == 0


def test_credit_that_the_sender_gives_back_is_not_lost() -> None:
    world = World()
    client = world.connect(rules("maxMessagesPerSecond: 40"))
    world.router.connect().receiver("a", credit=1000)
    first = client.sender("a")
    assert first.credit == 40
    first.detach()
    world.router.pump()
    for link in list(world.shares[client]._paid):
        world.shares[client].end_sending(link)
    assert client.sender("a").credit == 40


def test_an_idle_link_does_not_keep_others_from_sending() -> None:
    world = World()
    client = world.connect(rules("maxMessagesPerSecond: 40"))
    world.router.connect().receiver("a", credit=1000)
    idle = [client.sender("a") for _ in range(10)]
    flood = Flood(world, client, "b")
    world.pass_time(10)
    assert sum(sender.credit for sender in idle) > 0
    assert 40 * 9 <= flood.count <= 40 * 11


def alarms(world: World) -> list[tuple[str, str, bool]]:
    return [(alarm.rule.rule_id(alarm.measure), alarm.who, alarm.raised) for alarm in world.alarms]


def test_an_alarm_is_raised_once_and_cleared_once() -> None:
    world = World()
    flood = Flood(world, world.connect(rules(group="perUser: { maxMessagesPerSecond: 40 }")), "a", 400)
    world.pass_time(5)
    assert alarms(world) == [("v:g:perUser:maxMessagesPerSecond", "alice", True)]
    assert list(world.book.alarms_of("v")) == ["v:g:perUser:maxMessagesPerSecond alice"]
    assert list(world.book.alarms_of("w")) == []
    world.pass_time(5)
    assert flood.count == 400
    world.pass_time(CLEAR_S + 1)
    assert alarms(world)[1:] == [("v:g:perUser:maxMessagesPerSecond", "alice", False)]
    assert world.alarms[0].limit == 40
    assert list(world.book.alarms_of("v")) == []


@pytest.mark.parametrize("limit", ["maxMessagesPerSecond: 40", "maxBytesPerSecond: 2000", "maxBufferedBytes: 1000"])
def test_alarm_only_holds_up_no_tenant(limit: str) -> None:
    world = World()
    client = world.connect(rules(f"{limit}\n quotaMode: alarm"), link_capacity=400)
    receiver = world.router.connect().receiver("a")
    sender = client.sender("a")
    sent = [sender.send(MESSAGE) for _ in range(400)]
    world.router.pump()
    assert all(message.delivery.complete for message in sent)
    assert may_attach(world.shares[client], "M0a") == ""
    receiver.grant(400)
    world.router.pump()
    world.pass_time(1)
    assert [raised for _, _, raised in alarms(world)] == [True]
    world.pass_time(CLEAR_S + 2)
    assert [raised for _, _, raised in alarms(world)] == [True, False]


def test_an_excess_does_not_slow_a_sender_that_is_slower_afterwards() -> None:
    world = World()
    client = world.connect(rules("maxMessagesPerSecond: 40\n quotaMode: alarm"), link_capacity=800)
    world.router.connect().receiver("a", credit=10_000)
    sender = client.sender("a")
    for _ in range(780):
        sender.send(MESSAGE, settled=True)
    world.router.pump()
    for _ in range(int(CLEAR_S) + 2):
        world.pass_time(1)
        sender.send(MESSAGE, settled=True)
    assert [raised for _, _, raised in alarms(world)] == [True, False]


def test_alarm_mode_raises_no_alarm_for_senders_below_the_quota() -> None:
    world = World()
    quotas = rules("maxMessagesPerSecond: 40\n maxBytesPerSecond: 20000\n quotaMode: alarm")
    world.router.connect().receiver("a", credit=10_000)
    senders = [world.connect(quotas).sender("a") for _ in range(4)]
    for _ in range(160):  # 32 messages a second
        for sender in senders:
            sender.send(MESSAGE, settled=True)
        world.pass_time(TICK_S)
    world.book.check_usage()
    assert alarms(world) == []
    for _ in range(160):  # 64 messages a second
        for sender in senders * 2:
            sender.send(MESSAGE, settled=True)
        world.pass_time(TICK_S)
    world.book.check_usage()
    assert alarms(world) == [("v:maxMessagesPerSecond", "", True)]


def test_connections_and_attaches_have_rates() -> None:
    world = World()
    quotas = rules("maxConnectionsPerSecond: 3\n maxAttachesPerSecond: 2\n perHost: { maxConnectionsPerSecond: 2 }")
    answers = [may_open(world.book, quotas, "alice", host) for host in ("h", "h", "h", "i", "j")]
    assert answers == ["", "", "v:perHost:maxConnectionsPerSecond", "", "v:maxConnectionsPerSecond"]
    share = enter(world, quotas)
    assert [may_attach(share, "M0a") for _ in range(3)] == ["", "", "v:maxAttachesPerSecond"]
    world.router.now_s += 0.5
    assert [may_attach(share, "M0a") for _ in range(2)] == ["", "v:maxAttachesPerSecond"]
    assert [may_open(world.book, quotas, "alice", host) for host in ("i", "i")] == ["", "v:maxConnectionsPerSecond"]


def test_links_and_addresses_are_counted_as_long_as_they_are() -> None:
    world = World()
    share = enter(world, rules("maxLinks: 4\n perUser: { maxAddresses: 2 }"))
    for link, address in (("1", "M0a"), ("2", "M0b"), ("3", "M0a")):
        assert may_attach(share, address) == ""
        share.count_link(link, address)
    assert [may_attach(share, key) for key in ("M0c", "", "M0a", None)] == [*["v:perUser:maxAddresses"] * 2, "", ""]
    share.count_link("4", None)
    assert may_attach(share, "M0a") == "v:maxLinks"
    share.uncount_link("1")
    share.uncount_link("1")
    assert may_attach(share, "M0c") == "v:perUser:maxAddresses"
    share.uncount_link("3")
    assert may_attach(share, "M0c") == ""


def test_other_numbers_hold_from_the_moment_they_are_configured() -> None:
    world = World()
    client = world.connect(rules("maxMessagesPerSecond: 8"))
    flood = Flood(world, client, "a")
    world.pass_time(2)
    assert flood.count == 24
    old, new = world.shares[client], enter(world, rules("maxMessagesPerSecond: 80"))
    world.book.release_share(old)
    for incoming in world.router.core.links.values():
        if isinstance(incoming, Ingress) and incoming.account.gate is old:
            incoming.account.gate = new
            incoming.account.top_up_credit()
    world.pass_time(2)
    assert 24 + 150 <= flood.count <= 24 + 240


def test_strangers_leave_a_bounded_trace() -> None:
    world = World()
    quotas = rules("perUser: { maxConnectionsPerSecond: 1, maxLinks: 1 }")
    for number in range(MAX_IDLE + 50):
        assert may_open(world.book, quotas, f"user-{number}", "h") == ""
    assert len(world.book) == MAX_IDLE
    assert may_open(world.book, quotas, f"user-{MAX_IDLE + 49}", "h") != ""
    world.router.now_s += CLEAR_S + 1
    for _ in range(MAX_IDLE // 1000 + 1):
        world.book.check_usage()
    assert len(world.book) == 0
    assert [alarm.raised for alarm in world.alarms] == [True, False]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["connect", "leave", "attach", "detach", "tick"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=60,
)


@settings(max_examples=min(60, settings().max_examples))
@given(OPERATIONS)
def test_counts_are_those_of_a_reference(operations: list[tuple[str, int, int]]) -> None:
    """Connect and disconnect: links and addresses are those of the open connections, and nothing is left."""
    now = [0.0]
    book = Book(lambda: now[0], lambda: Budget(0), lambda _: None)
    quotas = rules("maxLinks: 6\n perUser: { maxLinks: 3, maxAddresses: 2 }")
    there: dict[int, tuple[str, Share, dict[int, str]]] = {}
    for number, (what, who, which) in enumerate(operations):
        if what == "connect" and who not in there:
            share = book.count_connection("c", "", quotas, f"user-{who % 2}", "h", int)
            there[who] = (f"user-{who % 2}", share, {})
        elif what == "leave" and who in there:
            book.release_share(there.pop(who)[1])
        elif what == "attach" and who in there:
            user, share, links = there[who]
            mine = [address for other, _, own in there.values() if other == user for address in own.values()]
            everything = sum(len(own) for _, _, own in there.values())
            address = f"M0{which}"
            full = len(set(mine)) >= 2 and address not in mine
            allowed = everything < 6 and len(mine) < 3 and not full
            assert (may_attach(share, address) == "") == allowed
            if allowed:
                share.count_link(number, address)
                links[number] = address
        elif what == "detach" and who in there and there[who][2]:
            _, share, links = there[who]
            link = next(iter(links))
            del links[link]
            share.uncount_link(link)
        else:
            now[0] += which
            book.grant_waiting()
            book.check_usage()
    for _, share, _ in there.values():
        book.release_share(share)
    now[0] += CLEAR_S
    book.check_usage()
    book.check_usage()
    assert len(book) == 0
    assert not book.busy

"""The book gives back each amount that a connection has counted, once, whatever the connection did before."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from trouter.config.entities import Quotas
from trouter.engine.ports import Budget
from trouter.policy.book import _EMPTY, CLEAR_S, Book, QuotaAlarm, Share
from trouter.policy.quota_rules import QuotaRule

ALL = Quotas(max_links=100, max_addresses=100, max_messages_per_second=5, max_buffered_bytes=1000)
RULES = [
    (),
    (QuotaRule("v", "v", "", ALL, enforced=True),),
    (QuotaRule("v", "v", "", ALL, enforced=False), QuotaRule("v", "v:g", "perUser", ALL, enforced=True)),
    (QuotaRule("w", "w", "perHost", Quotas(max_links=1), enforced=True),),
]
VHOSTS = ["", "v", "w"]


class Counter:
    deliveries = 0


class Credit:
    credit = 0


class Link:
    """A link on which a peer sends."""

    def __init__(self) -> None:
        self.counters = Counter()
        self.link = Credit()

    def top_up_credit(self) -> None: ...


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "move", "attach", "detach", "keep", "send", "end", "tick", "leave"]),
        st.integers(0, 3),
        st.integers(0, 11),
    ),
    max_size=80,
)


def counted(book: Book) -> Iterator[tuple[object, ...]]:
    """Yield all that is counted."""
    for vhost in VHOSTS:
        connections = book.connections_of(vhost)
        if len(connections) or connections.by_user() or connections.by_host():
            yield vhost, len(connections)
    for key, meter in book._meters.items():
        counts = meter.connections, meter.links, dict(meter.addresses), meter.senders, meter.buffer.held
        if counts != (0, 0, {}, 0, 0):
            yield key, counts


@given(ACTS)
def test_when_all_connections_have_left_nothing_is_counted(acts: list[tuple[str, int, int]]) -> None:
    now = [0.0]
    book = Book(lambda: now[0], lambda: Budget(0), lambda _: None)
    there: dict[int, Share] = {}
    gone: list[Share] = []
    links: dict[int, Link] = {}
    for number, (act, who, which) in enumerate(acts):
        share = there.get(who)
        if act == "enter" and share is None:
            # all have one name, as clients that come to two listeners from one port
            there[who] = book.count_connection(
                "n", VHOSTS[which % 3], RULES[which % 4], f"u{who % 2}", "h", int, number
            )
        elif share is None:
            continue
        elif act == "move":
            book.move_connection(share, VHOSTS[which % 3], RULES[which % 4], int)
        elif act == "attach":
            share.count_link(number, f"M0{which}" if which else None)
        elif act == "detach" and share.links:
            link = next(iter(share.links))
            share.uncount_link(link)
            share.uncount_link(link)
        elif act == "keep" and share.rules:
            share.add_held_bytes(which * 10)
        elif act == "send":
            link_of = links.setdefault(who, Link())
            link_of.link.credit += share.take_credit(link_of, which)
        elif act == "end" and who in links:
            share.end_sending(links[who])
            share.end_sending(links.pop(who))
        elif act == "tick":
            now[0] += which
            book.grant_waiting()
            book.check_usage()
        elif act == "leave":
            book.release_share(share)
            gone.append(there.pop(who))
            links.pop(who, None)
        assert sum(len(book.connections_of(vhost)) for vhost in VHOSTS[1:]) == sum(
            bool(each.vhost) for each in there.values()
        )
        assert not _EMPTY
        assert book.busy == any(each.rules for each in there.values())
    for share in [*there.values(), *gone]:
        book.release_share(share)
    assert list(counted(book)) == []
    assert not book.busy
    now[0] += CLEAR_S
    for _ in range(3):
        book.check_usage()
    assert len(book) == 0


def test_a_quota_is_asked_without_being_used() -> None:
    alarms: list[QuotaAlarm] = []
    book = Book(lambda: 0.0, lambda: Budget(0), alarms.append)
    limits = Quotas(max_connections_per_second=1, max_attaches_per_second=1, max_links=1)
    rules = (QuotaRule("v", "v", "", limits, enforced=True),)
    assert [book.quotas_at_open(rules, "u", "h").rule for _ in range(3)] == [""] * 3
    share = book.count_connection("n", "", rules, "u", "h", int)
    assert [share.quotas_at_attach("M0a", 0).rule for _ in range(3)] == [""] * 3
    book.note_answer(book.quotas_at_open(rules, "u", "h"))
    book.note_answer(share.quotas_at_attach("M0a", 0))
    answers = book.quotas_at_open(rules, "u", "h"), share.quotas_at_attach("M0a", 0)
    assert [answer.rule for answer in answers] == ["v:maxConnectionsPerSecond", "v:maxAttachesPerSecond"]
    assert alarms == []
    for answer in answers * 2:
        book.note_answer(answer)
    assert [alarm.measure for alarm in alarms] == ["max_connections_per_second", "max_attaches_per_second"]


def test_a_connection_that_moves_keeps_what_is_the_same() -> None:
    book = Book(lambda: 0.0, lambda: Budget(0), lambda _: None)
    share = book.count_connection("n", "v", RULES[1], "u", "h", int)
    share.count_link("link", "M0a")
    share.add_held_bytes(10)
    book.move_connection(share, "w", RULES[1], int)
    (meter,) = share.meters
    assert (meter.links, meter.buffer.held, meter.connections) == (1, 10, 1)
    assert [len(book.connections_of(vhost)) for vhost in VHOSTS] == [0, 0, 1]
    book.move_connection(share, "w", RULES[2], int)
    assert (share.links, share.kept) == ({}, 0)
    assert [each.connections for each in share.meters] == [1, 1]


def test_the_alarm_of_a_quota_that_is_no_longer_configured_ends_with_the_limit_that_was_met() -> None:
    """The quota has no limit any more, which was an error at the next check, and ended the router."""
    now, alarms = [0.0], list[QuotaAlarm]()
    book = Book(lambda: now[0], lambda: Budget(0), alarms.append)
    before = (QuotaRule("v", "v", "", Quotas(max_links=1, max_addresses=5), enforced=True),)
    after = (QuotaRule("v", "v", "", Quotas(max_addresses=5), enforced=True),)
    share = book.count_connection("n", "", before, "u", "h", int)
    share.count_link("link", "M0a")
    book.note_answer(share.quotas_at_attach("M0a", 0))
    book.move_connection(share, "", after, int)
    book.check_usage()
    assert [(alarm.raised, alarm.measure, alarm.limit) for alarm in alarms] == [
        (True, "max_links", 1),
        (False, "max_links", 1),
    ]
    assert book.raised_by_vhost() == {}

"""The rows of links, addresses and the router in management (management.md 8 and 11, routing.md 5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.rows import address_row, link_row, router_row
from trouter.columns.addresses import ADDRESS
from trouter.columns.column import Column, EntityId
from trouter.columns.links import LINK
from trouter.columns.router import ROUTER
from trouter.core import pace
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.core.inprocess import InsideMessage
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryRouter, compose
from trouter.wire.codec import encode
from trouter.wire.performatives import Accepted, Modified, Rejected, Released


def check(row: dict[str, object], columns: Sequence[Column[Any, Any]]) -> None:
    declared = {name: each for each in columns for name in (each.name, each.twin) if name}
    assert list(row) == list(declared)
    for name, value in row.items():
        column = declared[name]
        kind = int if column.type is EntityId else column.type
        assert type(value) is kind or (value is None and column.optional), name
        assert not column.values or value in column.values, name
    encode(list(row.values()))


class Room:
    """A router with a sender and a receiver for x, each on a connection of its own."""

    def __init__(self, credit: int = 10, rules: tuple[AddressRule, ...] = (), link_capacity: int = 250) -> None:
        self.router = MemoryRouter(rules)
        self.core = self.router.core
        self.sending = self.router.connect(PeerTerms(link_capacity))
        self.receiving = self.router.connect(PeerTerms(link_capacity))
        self.receiver = self.receiving.receiver("x", credit=credit, name="in")
        self.sender = self.sending.sender("x", name="out")

    @property
    def incoming(self) -> Ingress:
        found = next(iter(self.core.incoming_endpoints()))
        assert isinstance(found, Ingress)
        return found

    @property
    def outgoing(self) -> Egress:
        return next(iter(self.core.outgoing_endpoints()))

    def both(self) -> tuple[dict[str, object], dict[str, object]]:
        return link_row(self.core, self.incoming), link_row(self.core, self.outgoing)


class Sink:
    """A consumer inside the router."""

    def receive(self, received: InsideMessage) -> None:
        received.settle()


@pytest.fixture
def room() -> Room:
    return Room()


def test_rows_have_the_columns_in_their_order_with_their_types() -> None:
    room = Room(rules=(AddressRule("m", distribution="multicast", priority=7),))
    room.sending.sender()
    room.sending.sender("m")
    for link in room.core.links.values():
        check(link_row(room.core, link), LINK)
    for record in room.core.table.entries.values():
        check(address_row(room.core, record), ADDRESS)
    check(router_row(room.core), ROUTER)


def test_chosen_columns_have_the_requested_order(room: Room) -> None:
    assert list(link_row(room.core, room.outgoing, ["linkDir", "identity"])) == ["linkDir", "identity"]
    assert address_row(room.core, room.core.table.entries["M0x"], ["key"]) == {"key": "M0x"}
    assert link_row(room.core, room.outgoing, ["colour", "linkDir"]) == {"colour": None, "linkDir": "out"}


def test_links_are_numbered_as_they_come_and_no_number_comes_again(room: Room) -> None:
    assert list(room.core.links) == [1, 2]
    assert [each.identity for each in room.core.links.values()] == [1, 2]
    assert room.core.next_identity() == 3
    room.receiver.detach()
    room.receiving.receiver("y")
    room.sending.sender("", capabilities=("qd.router",))  # refused: it takes no number
    room.sending.sender("z")
    assert list(room.core.links) == [2, 4, 5]


@pytest.mark.parametrize("how", ["detach", "end", "close", "drop"])
def test_a_link_that_is_gone_is_no_longer_listed(room: Room, how: str) -> None:
    if how == "detach":
        room.receiver.detach()
    else:
        getattr(room.receiving, how)()
    assert list(room.core.links) == [2]
    room.sending.drop()
    assert room.core.links == {}


def test_a_link_row_names_the_link_its_direction_and_its_connection(room: Room) -> None:
    room.router.now_s = 7.0
    room.sending.sender(name="any")
    incoming, outgoing = room.both()
    assert (incoming["name"], incoming["linkDir"], incoming["connectionId"], incoming["identity"]) == (
        "out",
        "in",
        "1",
        "2",
    )
    assert (outgoing["name"], outgoing["linkDir"], outgoing["connectionId"], outgoing["identity"]) == (
        "in",
        "out",
        "2",
        "1",
    )
    assert incoming["owningAddr"] == outgoing["owningAddr"] == "M0x"
    anonymous = room.core.links[3]
    assert link_row(room.core, anonymous)["owningAddr"] is None
    assert [each.attached_at_s for each in room.core.links.values()] == [0.0, 0.0, 7.0]


def test_management_shows_the_current_credit_and_capacity() -> None:
    room = Room(credit=7, link_capacity=20)
    room.sender.send(compose(b"1"))
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["capacity"], outgoing["capacity"]) == (20, 20)
    assert (incoming["creditAvailable"], outgoing["creditAvailable"]) == (19, 6)


def test_waiting_and_unsettled_deliveries_are_counted_apart(room: Room) -> None:
    for number in range(12):
        room.sender.send(compose(b"%d" % number))
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["undeliveredCount"], incoming["unsettledCount"], incoming["deliveryCount"]) == (0, 12, 12)
    assert (outgoing["undeliveredCount"], outgoing["unsettledCount"], outgoing["deliveryCount"]) == (2, 10, 10)
    for message in room.receiver.received:
        message.settle()
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["undeliveredCount"], incoming["unsettledCount"]) == (0, 2)
    assert (outgoing["undeliveredCount"], outgoing["unsettledCount"]) == (2, 0)


@pytest.mark.parametrize("settled", [False, True])
def test_an_unfinished_message_is_undelivered_until_it_is_sent_on(room: Room, settled: bool) -> None:
    sent = room.sender.begin(compose(bytes(1000)), settled=settled)
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["undeliveredCount"], incoming["unsettledCount"], incoming["deliveryCount"]) == (1, 0, 1)
    assert (outgoing["undeliveredCount"], outgoing["unsettledCount"]) == (0, 0)
    sent.more(bytes(200_000))
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["undeliveredCount"], incoming["unsettledCount"]) == (0, 0 if settled else 1)
    assert (outgoing["undeliveredCount"], outgoing["unsettledCount"], outgoing["deliveryCount"]) == (1, 0, 0)
    sent.finish(b"")
    room.router.pump()
    incoming, outgoing = room.both()
    assert (incoming["undeliveredCount"], incoming["unsettledCount"]) == (0, 0 if settled else 1)
    assert (outgoing["undeliveredCount"], outgoing["unsettledCount"], outgoing["deliveryCount"]) == (
        0,
        0 if settled else 1,
        1,
    )


def test_outcomes_are_counted_on_both_links_and_outlive_them(room: Room) -> None:
    for state in (Accepted(), Accepted(), Rejected(), Released(), Modified(True)):
        room.sender.send(compose(b"x"))
        room.router.pump()
        room.receiver.received[-1].settle(state)
        room.router.pump()
    room.sender.send(compose(b"x"), settled=True)
    room.router.pump()
    for row in room.both():
        assert [row[f"{name}Count"] for name in ("accepted", "rejected", "released", "modified", "presettled")] == [
            2,
            1,
            1,
            1,
            1,
        ]
        assert row["deliveryCount"] == 6
    before = router_row(room.core)
    room.sending.drop()
    room.receiving.drop()
    after = router_row(room.core)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"linkCount", "addrCount"}
    names = ("accepted", "rejected", "released", "modified", "presettled")
    assert [after[f"{name}Deliveries"] for name in names] == [2, 1, 1, 1, 1]
    assert (after["deliveriesIngress"], after["deliveriesEgress"]) == (6, 6)
    assert (after["linkCount"], after["addrCount"]) == (0, 0)


def test_an_outgoing_link_has_a_histogram_and_this_router_comes_first_in_it(room: Room) -> None:
    room.sender.send(compose(b"x"))
    room.router.pump()
    incoming, outgoing = room.both()
    assert incoming["ingressHistogram"] is None
    assert outgoing["ingressHistogram"] == [1] + [0] * 127


def test_an_address_shows_its_users_and_its_traffic() -> None:
    room = Room(rules=(AddressRule("m", distribution="multicast", priority=7),))
    room.receiving.receiver("m", credit=10)
    room.core.inside.subscribe("m", Sink(), "multicast")
    sender = room.sending.sender("m")
    sender.send(compose(b"x"))
    room.core.inside.send_message("m", compose(b"y"))
    room.router.pump()
    row = address_row(room.core, room.core.table.entries["M0m"])
    assert (row["name"], row["identity"], row["key"]) == ("M0m", "M0m", "M0m")
    assert (row["distribution"], row["priority"], row["transitOutstanding"]) == ("multicast", 7, None)
    assert (row["inProcess"], row["subscriberCount"]) == (1, 1)
    assert (row["deliveriesIngress"], row["deliveriesEgress"]) == (1, 2)
    assert (row["deliveriesToContainer"], row["deliveriesFromContainer"]) == (2, 1)
    balanced = address_row(room.core, room.core.table.entries["M0x"])
    assert (balanced["distribution"], balanced["priority"]) == ("balanced", -1)
    assert balanced["transitOutstanding"] is None, "nothing has gone to another router"


def test_the_settle_rate_is_that_of_the_last_seconds(room: Room) -> None:
    def settle(count: int) -> None:
        for _ in range(count):
            room.sender.send(compose(b"x"))
            room.router.pump()
            room.receiver.received[-1].settle()
            room.receiver.grant(1)
            room.router.pump()

    def rates() -> set[object]:
        return {row["settleRate"] for row in room.both()}

    settle(50)
    assert rates() == {10}  # a young link: as if it had existed for the whole period
    for second in range(1, 21):
        room.router.now_s = float(second)
        settle(20)
        room.core.watch_links(float(second))
    assert rates() == {20}
    for second in range(21, 32):
        room.core.watch_links(float(second))
    assert rates() == {0}


def test_presettled_messages_count_as_settled(room: Room) -> None:
    for _ in range(10):
        room.sender.send(compose(b"x"), settled=True)
    room.router.pump()
    assert [row["settleRate"] for row in room.both()] == [2, 2]


def test_a_rate_holds_while_no_row_is_read(room: Room) -> None:
    for _ in range(10):
        room.sender.send(compose(b"x"), settled=True)
    room.router.pump()
    room.router.now_s = 100.0
    assert [row["settleRate"] for row in room.both()] == [0, 0]


def test_a_call_notes_the_pace_of_a_portion_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PORTION", 2)
    router = MemoryRouter()
    client = router.connect()
    for number in range(15):
        client.receiver(f"x{number}")
    left = []
    for call in range(6):
        router.core.watch_links(10.0 + call)
        left.append(len(router.core._paces._round))
    assert left == [12, 9, 6, 3, 0, 12]


def test_the_links_of_a_stopping_router_show_as_stopping(room: Room) -> None:
    assert {row["operStatus"] for row in room.both()} == {"up"}
    room.core.stop_credit()
    assert {row["operStatus"] for row in room.both()} == {"quiescing"}

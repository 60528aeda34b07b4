"""trouter between neighbours of Qpid Dispatch, one that dials it and one that it dials."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.peer import Peer, message
from tests.interop.recorded.forms import write
from tests.interop.strict.conftest import HELD, LONG, ROUTED, TAKEN, Net
from tests.interop.strict.routers import CONTROL, DATA, PRIORITIES
from tests.interop.strict.writing import MODIFIED, NO, YES, described, listed, mapped, symbol, text
from tests.management.node import node_of
from tests.networks import wait_for_row
from trouter.wire.performatives import Accepted, Modified, Rejected, Transfer

pytestmark = pytest.mark.slow


def ready(net: Net, address: str) -> None:
    """Wait until trouter knows that a neighbour listens on an address."""
    key = f"M0{address}"
    wait_for_row(net.router, "router.address", lambda row: row["key"] == key and row["remoteCount"] > 0)


def address_row(net: Net, address: str) -> dict[str, Any]:
    with node_of(net.router.port) as node:
        (row,) = [row for row in node.query("router.address") if row["key"] == f"M0{address}"]
    return row


@pytest.mark.parametrize("name", ["east", "west"])
def test_links_between_routers_name_their_kind_by_a_bare_symbol(between: Net, name: str) -> None:
    peer = getattr(between, name)
    kinds = [each.kind for each in peer.links if each.sends]
    assert kinds[: 1 + PRIORITIES] == [CONTROL] + [DATA] * PRIORITIES
    assert peer.neighbour == "R"


def test_neighbours_learn_of_each_other_through_the_router(between: Net) -> None:
    east, west = between.east, between.west
    east.wait(lambda: east.nodes["R"].peers == {"E": 3, "W": 4} and east.nodes["W"].peers == {"R": 4})
    west.wait_listed("E", f"M0{TAKEN}.E")
    posted = east.post(f"{TAKEN}.W", text("through"))
    (came,) = west.got(f"{TAKEN}.W")
    assert (came.value, came.way.ingress, came.way.trace) == ("through", "0/E", ["0/E", "0/R"])
    east.wait(lambda: posted.outcome)
    assert posted.outcome == (0x24, [])


@pytest.mark.parametrize("name", ["E", "W"])
def test_a_long_message_has_a_link_of_its_own(between: Net, name: str) -> None:
    address = f"{TAKEN}.{name}"
    ready(between, address)
    peer = between.east if name == "E" else between.west
    with Peer(between.router.port) as sender, Peer(between.router.port) as other:
        first, link = sender.attach_sender(address), other.attach_sender(address)
        octets = message(b"x" * 300_000)
        for at in range(0, 200_000, 16_000):
            begun = sender.transfer(first, octets[at : at + 16_000], more=True, first=at == 0)
        sender.be_heard()
        short = other.send_message(link, b"short")
        assert other.expect_outcome(short) == Accepted()
        rest = range(208_000, len(octets), 16_000)
        for at in rest:
            sender.transfer(first, octets[at : at + 16_000], more=at != rest[-1], first=False)
        assert sender.expect_outcome(begun) == Accepted()
    (came,) = [each for each in peer.got(address, 2) if len(each.octets) > 300_000]
    assert came.link in [each for each in peer.links if each.kind == DATA and not each.sends][PRIORITIES:]


def test_a_clients_trace_is_kept_where_nothing_is_stripped(between: Net) -> None:
    address = f"{TAKEN}.E"
    ready(between, address)
    entries = (
        (symbol("mine"), text("kept")),
        (symbol("x-opt-qd.ingress"), text("0/X")),
        (symbol("x-opt-qd.trace"), listed(text("0/X"))),
    )
    octets = write(described(0x72, mapped(*entries))) + message(b"traced")
    with Peer(between.router.ports[3]) as client:
        sent = client.transfer(client.attach_sender(address), octets)
        assert client.expect_outcome(sent) == Accepted()
    way = next(each.way for each in between.east.got(address) if each.octets.endswith(b"traced"))
    assert (way.own, way.to, way.ingress, way.trace) == ({"mine": "kept"}, address, "0/X", ["0/X", "0/R"])


@pytest.mark.parametrize("failed", [False, True])
def test_a_modified_outcome_of_the_neighbour_is_relayed_unchanged(between: Net, failed: bool) -> None:
    address = f"modified.{failed}"
    between.east.listen(address, code=MODIFIED, fields=(YES if failed else NO, YES))
    ready(between, address)
    with Peer(between.router.port) as client:
        sent = client.send_message(client.attach_sender(address), b"no")
        assert client.expect_outcome(sent) == Modified(delivery_failed=failed, undeliverable_here=True)


def test_transit_deliveries_under_way_are_counted_from_the_first_delivery_on(between: Net) -> None:
    address = f"{HELD}.W"
    ready(between, address)
    assert address_row(between, address)["transitOutstanding"] is None
    with Peer(between.router.port) as client:
        sent = client.send_message(client.attach_sender(address), b"held")
        (held,) = between.west.got(address)
        assert sum(address_row(between, address)["transitOutstanding"]) == 1
        between.west.settle(held, 0x24)
        assert client.expect_outcome(sent) == Accepted()
        assert sum(address_row(between, address)["transitOutstanding"]) == 0


def test_a_message_of_a_router_on_a_routed_link_counts_as_ingress(between: Net) -> None:
    def counted() -> int:
        with node_of(between.router.port) as node:
            return int(node.query("router", names=["deliveriesIngress"])[0]["deliveriesIngress"])

    between.east.wait_listed("W", f"C{ROUTED}.W")
    link = between.east.attach_routed(f"{ROUTED}.W.counted", sends=True)
    between.east.wait_credit(link)
    before = counted()
    for _ in range(50):
        sent = between.east.send(link, message(b"x"))
        between.east.wait_settled(sent)
    assert counted() - before >= 50


@pytest.mark.parametrize(("size", "outcome"), [(32, 0x24), (33, 0x25)])
def test_a_tag_that_is_too_long_costs_its_delivery_and_nothing_else(between: Net, size: int, outcome: int) -> None:
    east, west, address = between.east, between.west, f"{ROUTED}.W.tags{size}"
    east.wait_listed("W", f"C{ROUTED}.W")
    link = east.attach_routed(address, sends=True)
    east.wait_credit(link)
    sent = east.send(link, message(b"x"), tag=b"t" * size)
    east.wait(lambda: sent.outcome)
    assert sent.outcome is not None
    assert sent.outcome[0] == outcome
    if outcome == 0x24:
        assert west.got(address)[0].tag == b"t" * size
    again = east.send(link, message(b"y"))
    east.wait(lambda: again.outcome == (0x24, []))


@pytest.mark.parametrize(("size", "outcome"), [(32, Accepted), (33, Rejected)])
def test_a_tag_of_a_client_passes_up_to_the_length_that_qpid_dispatch_takes(
    between: Net, size: int, outcome: type
) -> None:
    address = f"{ROUTED}.E.client{size}"
    between.west.wait_listed("E", f"C{ROUTED}.E")
    with Peer(between.router.port) as client:
        link = client.attach_sender(address)
        client.say(Transfer(link.handle, 0xFFFFFFFC, b"t" * size, 0, False, False), message(b"x"))
        assert isinstance(client.expect_outcome(0xFFFFFFFC), outcome)


def test_names_are_as_long_as_addresses_may_be_and_more(between: Net) -> None:
    east, west = between.east, between.west
    ready(between, LONG)
    with Peer(between.router.port) as client:
        sent = client.send_message(client.attach_sender(LONG), b"far")
        assert client.expect_outcome(sent) == Accepted()
    east.got(LONG)
    east.wait_listed("W", f"C{ROUTED}.W")
    address = f"{ROUTED}.W.{LONG}"
    link = east.attach_routed(address, sends=True, name=f"container-{address}@client")
    east.wait_credit(link)
    assert west.named(f"container-{address}").address == address


@pytest.mark.parametrize("name", ["east", "west"])
def test_a_waiting_sender_gets_credit_again_each_time(between: Net, name: str) -> None:
    peer = getattr(between, name)
    other = between.west if name == "east" else between.east
    peer.wait_listed(other.name, f"M0{TAKEN}.{other.name}")
    link = peer.data()
    for number in range(5):
        flows = link.flows
        sent = peer.post(f"{TAKEN}.{other.name}", text(f"{number}"))
        peer.wait_settled(sent)
        peer.wait_flow(link, flows)


def test_the_router_sends_hellos_and_address_updates_in_order_while_running(between: Net) -> None:
    """Its hellos come often enough, and its address updates in an order that needs no request."""
    with Peer(between.router.port) as client:
        client.attach_receiver("of.ours", credit=1)
        for peer in (between.east, between.west):
            peer.wait_listed("R", "M0of.ours")
    for peer in (between.east, between.west):
        peer.wait_listed("R", "M0of.ours", listed=False)
        assert peer.lost == []

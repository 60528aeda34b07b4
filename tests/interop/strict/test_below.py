"""trouter above an edge router of Qpid Dispatch."""

from __future__ import annotations

import pytest

from tests.e2e.peer import Peer, message
from tests.interop.strict.conftest import LONG, ROUTED, TAKEN, Net, dial, listening
from tests.interop.strict.end import End
from tests.interop.strict.routers import Below, Interior, link_name
from tests.interop.strict.writing import MODIFIED, NO, YES, listed, mapped, source, target, text
from tests.interop.strict.writing import message as composed
from tests.networks import OPEN, wait_for_row
from tests.routers import StartRouter
from trouter.wire.performatives import Accepted, Modified

pytestmark = pytest.mark.slow

LARGE = message(b"x" * 300_000)
BEGINNING = 200_000


def test_a_whole_uplink_is_served(between: Net) -> None:
    below = between.below
    assert [below.uplink[kind].detached for kind in below.uplink] == [None] * 8
    assert str(below.uplink["responses"].address).startswith("amqp:/_topo/0/R/temp.")
    assert below.look_up("nothing", sends=True) == (3, [False, False])
    between.west.wait_listed("E", f"C{ROUTED}.E")
    for sends in (True, False):
        assert below.look_up(f"{ROUTED}.E.q", sends=sends) == (0, [True, True])


def test_a_link_route_of_the_edge_router_is_known_everywhere_until_it_is_deleted(between: Net) -> None:
    below, east = between.below, between.east
    kind = "org.apache.qpid.dispatch.router.connection.linkRoute"
    named = {"type": kind, "name": "B/proxyLinkRoute/Cbelow"}
    body = {**named, "pattern": "below/#", "direction": "in"}
    status, made = below.manage(
        {"operation": "CREATE", **named}, mapped(*((text(k), text(v)) for k, v in body.items()))
    )
    assert (status["statusCode"], status["statusDescription"]) == (201, "Created")
    status, _ = below.manage({"operation": "CREATE", **named}, mapped(*((text(k), text(v)) for k, v in body.items())))
    assert (status["statusCode"], status["statusDescription"]) == (400, "Name conflicts with an existing entity")
    below.routes.add("below")
    east.wait_listed("R", "Cbelow")
    link = east.attach_routed("below.q", sends=True)
    sent = east.send(link, composed(text("down")))
    assert below.got("below.q")[0].value == "down"
    east.wait(lambda: sent.outcome == (0x24, []))
    asked = {"operation": "DELETE", "identity": made["identity"], **named}
    assert below.manage(asked, mapped())[0]["statusCode"] == 204
    status, _ = below.manage(asked, mapped())
    assert (status["statusCode"], status["statusDescription"]) == (404, "Not Found")
    status, _ = below.manage({"operation": "DELETE", "type": kind}, mapped())
    assert (status["statusCode"], status["statusDescription"]) == (400, "No name or identity provided")
    east.wait(lambda: "Cbelow" not in east.nodes["R"].addresses)


def test_an_edge_router_is_notified_of_consumers_for_its_messages(between: Net) -> None:
    below = between.below
    address = f"{TAKEN}.E"
    link = below.sender(address)
    below.wait(lambda: below.takes_elsewhere.get(f"M0{address}"))
    sent = below.send(link, composed(text("up")))
    below.wait(lambda: sent.outcome == (0x24, []))
    came = next(each for each in between.east.got(address) if each.octets.endswith(b"up"))
    assert (came.way.ingress, came.way.trace, came.way.to) == ("0/R", ["0/R"], address)
    below.detach(link)


def test_a_message_for_the_edge_router_carries_its_ingress_and_its_trace(between: Net) -> None:
    between.below.listen("for.below", code=MODIFIED, fields=(NO, YES))
    with Peer(between.router.port) as client:
        sent = client.send_message(client.attach_sender("for.below"), b"down")
        assert client.expect_outcome(sent) == Modified(delivery_failed=False, undeliverable_here=True)
        away = client.send_message(client.attach_sender("_edge/B/temp.1"), b"away")
        client.expect_outcome(away)
    (came,) = between.below.got("for.below")
    assert (came.way.ingress, came.way.trace) == ("0/R", ["0/R"])
    assert between.below.got("_edge/B/temp.1")[0].link.kind == "down"


@pytest.mark.parametrize("offers", [True, False])
def test_a_long_message_goes_down_on_a_link_of_its_own_where_the_edge_router_offers_that(
    between: Net, peers: list[End], offers: bool
) -> None:
    kept = [("sym32", "ANONYMOUS-RELAY"), *([("sym32", "qd.streaming-links")] if offers else [])]
    with Below(dial(between.router.ports[2]), f"S{offers}", dials=True, offers=kept) as below:
        peers.append(below)
        below.wait_up()
        address = f"streams.{offers}"
        below.listen(address)
        with Peer(between.router.port) as sender, Peer(between.router.port) as other:
            first, link = sender.attach_sender(address), other.attach_sender(address)
            for at in range(0, BEGINNING, 16_000):
                begun = sender.transfer(first, LARGE[at : at + 16_000], more=True, first=at == 0)
            sender.be_heard()
            if offers:
                assert other.expect_outcome(other.send_message(link, b"short")) == Accepted()
                below.wait(below.asked_streams)
            rest = range(208_000, len(LARGE), 16_000)
            for at in rest:
                sender.transfer(first, LARGE[at : at + 16_000], more=at != rest[-1], first=False)
            assert sender.expect_outcome(begun) == Accepted()
        (came,) = [each for each in below.got(address, 1 + offers) if len(each.octets) > 300_000]
        assert (came.link in below.asked_streams()) == offers


def test_a_long_message_comes_up_on_a_link_without_an_address(between: Net) -> None:
    below = between.below
    address = f"{TAKEN}.W"
    plain, stream = below.sender(address), below.sender(None)
    for link in (plain, stream):
        below.wait_credit(link)
    octets = composed(("vbin32", b"x" * 300_000), annotations=mapped((("sym8", "x-opt-qd.to"), text(address))))
    begun = below.start(stream, octets[:BEGINNING])
    short = below.send(plain, composed(text("short")))
    below.wait(lambda: short.outcome == (0x24, []))
    below.finish(begun, octets[BEGINNING:])
    below.wait(lambda: begun.outcome == (0x24, []))
    assert any(len(each.octets) > 300_000 for each in between.west.got(address, 2))


def test_a_long_name_is_served_below_too(between: Net) -> None:
    address = f"below.{LONG}"
    link = between.below.listen(address)
    wait_for_row(between.router, "router.address", lambda row: row["key"] == f"M0{address}")
    with Peer(between.router.port) as client:
        sent = client.send_message(client.attach_sender(address), b"long")
        assert client.expect_outcome(sent) == Accepted()
    assert link.came
    east, below = between.east, between.below
    east.wait_listed("R", f"M0{address}")
    routed = f"{ROUTED}.E.{LONG}"
    ends = source(), target(routed)
    far = below.attach(below.begin(), f"container-{routed}", "routed", *ends, sends=True)
    below.wait_credit(far)
    east.at_route(routed)


def test_with_a_default_that_takes_no_address_all_that_routers_need_is_served(
    start_router: StartRouter, peers: list[End]
) -> None:
    with listening() as server:
        router = start_router(
            f"router {{ mode: interior, id: R, defaultDistribution: unavailable }}\nlistener {{ {OPEN}, role: edge }}\n"
            f"connector {{ host: 127.0.0.1, port: {server.getsockname()[1]}, role: inter-router }}\n"
        )
        with (
            Interior(server.accept()[0], "W", dials=False) as west,
            Below(dial(router.port), "B", dials=True) as below,
        ):
            peers += [west, below]
            below.wait_up()
            refused = below.listen("unknown")
            below.wait(lambda: refused.detached)
            assert refused.detached == ("amqp:not-found", "Node not found")
            assert [below.uplink[kind].detached for kind in below.uplink] == [None] * 8
            assert below.look_up("unknown", sends=True) == (3, [False, False])
            status, _ = below.manage({"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router"}, NO_NAMES)
            assert status["statusCode"] == 200
            west.wait_met("R")
            asked = mapped(
                (text("operation"), text("QUERY")), (text("entityType"), text("org.apache.qpid.dispatch.router"))
            )
            fields = {"reply_to": "amqp:/_topo/0/W/temp.1", "correlation": link_name()}
            west.post("_topo/0/R/$management", NO_NAMES, properties=asked, **fields)
            assert west.got("_topo/0/W/temp.1")


NO_NAMES = mapped((text("attributeNames"), listed()))

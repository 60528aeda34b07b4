"""trouter as an edge router below an interior router of Qpid Dispatch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.peer import Peer, message
from tests.interop.strict import reading
from tests.interop.strict.conftest import LONG, listening
from tests.interop.strict.end import End
from tests.interop.strict.routers import LATE, Above
from tests.interop.strict.writing import MODIFIED, NO, YES, text, way
from tests.interop.strict.writing import message as composed
from tests.management.node import Node, node_of
from tests.networks import OPEN
from tests.routers import RunningRouter, running
from tests.waiting import until
from trouter.wire.framing import frame
from trouter.wire.performatives import Accepted, Detach, Modified, encode_performative

pytestmark = pytest.mark.slow

LARGE = message(b"x" * 300_000)
BEGINNING = 200_000


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningRouter, Above]]:
    with ExitStack() as stack:
        server = stack.enter_context(listening())
        text = f"""
        router {{ mode: edge, id: E }}
        listener {{ {OPEN} }}
        connector {{ name: up, host: 127.0.0.1, port: {server.getsockname()[1]}, role: edge }}
        address {{ prefix: back, enableFallback: yes }}
        address {{ prefix: staged, waypoint: yes }}
        linkRoute {{ prefix: lr, direction: in, containerId: broker }}
        linkRoute {{ prefix: lr, direction: out, containerId: broker }}
        """
        router = stack.enter_context(running(text, tmp_path_factory.mktemp("edge")))
        above = stack.enter_context(Above(server.accept()[0], "A", dials=False))
        above.routes.add("lr")
        above.wait_up()
        router.wait_for_line("Edge connection .* to interior established")
        yield router, above


@pytest.fixture
def above(edge: tuple[RunningRouter, Above], peers: list[End]) -> Above:
    peers.append(edge[1])
    return edge[1]


@pytest.fixture
def port(edge: tuple[RunningRouter, Above]) -> int:
    return edge[0].port


def test_an_uplink_has_the_address_and_the_heartbeat_that_an_interior_router_expects(above: Above) -> None:
    down = above.find("down")
    assert down is not None
    assert down.address == "E"
    above.wait(lambda: above.beats, "a heartbeat")


@pytest.mark.parametrize("sends", [True, False])
def test_a_link_route_without_a_container_here_hides_none_above(above: Above, port: int, sends: bool) -> None:
    address = f"lr.{sends}"
    with Peer(port) as client:
        if sends:
            sent = client.send_message(client.attach_sender(address), b"routed")
            assert client.expect_outcome(sent) == Accepted()
            assert above.got(address)[0].link.kind == "routed"
        else:
            receiver = client.attach_receiver(address, credit=1)
            above.send(above.at_route(address), composed(text("routed")))
            assert client.take_message(receiver).endswith(b"routed")
    assert (address, sends) in above.looked_up


def test_a_long_message_goes_up_on_a_link_of_its_own(above: Above, port: int) -> None:
    above.listen(["up"])
    with Peer(port) as sender, Peer(port) as other:
        first = sender.attach_sender("up")
        link = other.attach_sender("up")
        for at in range(0, BEGINNING, 16_000):
            begun = sender.transfer(first, LARGE[at : at + 16_000], more=True, first=at == 0)
        sender.be_heard()
        assert other.expect_outcome(other.send_message(link, b"short")) == Accepted()
        rest = range(208_000, len(LARGE), 16_000)
        for at in rest:
            sender.transfer(first, LARGE[at : at + 16_000], more=at != rest[-1], first=False)
        assert sender.expect_outcome(begun) == Accepted()
    (long,) = [each for each in above.got("up", 2) if len(each.octets) > 300_000]
    assert (long.link.kind, long.link.session in above.sessions[2:]) == ("anonymous", True)


def test_a_long_message_comes_down_on_a_link_of_its_own(above: Above, port: int) -> None:
    with Peer(port) as client, Peer(port) as other:
        receiver = client.attach_receiver("down", credit=10)
        plain, stream = above.at("down", sends=True), above.stream()
        above.wait_credit(plain)
        above.wait_credit(stream)
        octets = composed(("vbin32", b"x" * 300_000), annotations=way("A", "down"))
        begun = above.start(stream, octets[:BEGINNING])
        second = other.attach_receiver("down", credit=10)
        short = above.send(plain, composed(text("short"), annotations=way("A", "down")))
        assert other.take_message(second).endswith(b"short")
        above.wait(lambda: short.outcome == (0x24, []))
        above.finish(begun, octets[BEGINNING:])
        assert len(client.take_message(receiver)) > 300_000
        above.wait(lambda: begun.outcome == (0x24, []))


def no_link_is_down(node: Node) -> bool:
    """Return whether the router above has answered every link; it answers one for the node's replies at any time."""
    return all(row["operStatus"] != "down" for row in node.query("router.link"))


def test_answers_to_links_that_are_given_up_make_no_other_links(above: Above, port: int) -> None:
    """The answers of a session are processed in order; the last link is given up before its answer's turn."""
    with Peer(port) as client:
        receivers = [client.attach_receiver(f"{LATE}{number}") for number in range(100)]
        detaches = [frame(0, encode_performative(Detach(each.handle, True))) for each in reversed(receivers)]
        above.answer_late(len(receivers))
        client.raw(b"".join(detaches))
        for _ in receivers:
            client.expect(Detach)
        heard = client.attach_receiver("heard", credit=1)
        above.send(above.at("heard", sends=True), composed(text("heard"), annotations=way("A", "heard")))
        assert client.take_message(heard).endswith(b"heard")
        with node_of(port) as node:
            until(lambda: no_link_is_down(node), "every link to be up")


@pytest.mark.parametrize("failed", [False, True])
def test_a_modified_outcome_of_the_router_above_is_relayed_unchanged(above: Above, port: int, failed: bool) -> None:
    address = f"modified.{failed}"
    above.listen([address], code=MODIFIED, fields=(YES if failed else NO, YES))
    with Peer(port) as client:
        sent = client.send_message(client.attach_sender(address), b"no")
        assert client.expect_outcome(sent) == Modified(delivery_failed=failed, undeliverable_here=True)


def test_a_long_name_goes_up(above: Above, port: int) -> None:
    above.listen([LONG])
    with Peer(port) as client:
        assert client.expect_outcome(client.send_message(client.attach_sender(LONG), b"far")) == Accepted()
        client.attach_receiver(f"mine.{LONG}", credit=1)
        above.at(f"mine.{LONG}", sends=True)
        address = f"lr.{LONG}"
        client.attach_sender(address, credit=False)
    above.at_route(address)


@pytest.mark.parametrize(
    ("address", "sends", "wanted"),
    [("back.x", False, ""), ("back.x", True, "qd.fallback"), ("staged.x", False, ""), ("staged.x", True, "")],
)
def test_the_phase_of_an_address_is_named_by_a_bare_symbol(
    above: Above, port: int, address: str, sends: bool, wanted: str
) -> None:
    """A producer's address has a second link, for its fallback; an address in its own phase has none to name."""
    with Peer(port) as client:
        if sends:
            client.attach_sender(address, credit=False)
        else:
            client.attach_receiver(address)
        found = [above.at(address, sends=not sends)]
        if wanted:
            above.wait(lambda: wanted in capabilities(above, address, not sends))
            assert capabilities(above, address, not sends) == {"", wanted}
        else:
            assert {reading.capability(each.attach) for each in found if each.attach} == {wanted}


def capabilities(above: Above, address: str, sends: bool) -> set[str]:
    """Return the capabilities of the links of an address, in this direction."""
    links = [each for each in above.links if (each.address, each.sends, each.detached) == (address, sends, None)]
    return {reading.capability(each.attach) for each in links if each.attach is not None}

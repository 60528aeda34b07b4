"""Link routes over several routers in memory: attaches, messages, credit and ends hop by hop (inter-router.md 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.endings import leave
from tests.core.joined import Joined
from trouter.core.routes import LinkRoute
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryReceiver, MemorySender, SentMessage, compose
from trouter.testing.memory import MemoryClient
from trouter.wire.performatives import (
    Accepted,
    Declared,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
)
from trouter.wire.types import Described, Symbol, ULong

LINE = {("A", "B"): 1, ("B", "C"): 1}
LOST = Error("qd:routed-link-lost", "Connectivity to the peer container was lost")
#: The client's router; the container is on A.
PLACES = ["A", "B", "C"]


def container(joined: Joined, router: str, name: str = "", **options: Any) -> MemoryClient:
    """Connect a container to a router, for everything below ``broker``; it answers attaches."""
    name = name or f"broker-on-{router}"
    for direction in ("in", "out"):
        route = LinkRoute("broker", direction, is_prefix=True, container_id=name, **options)
        joined[router].core.routes.add(route, iter(()))
    return joined[router].connect(container_id=name, role="route-container")


def sending(place: str, credit: int = 10) -> tuple[Joined, MemorySender, MemoryReceiver]:
    """Return a client's sender, and the container's end of its link."""
    joined = Joined(LINE)
    broker = container(joined, "A")
    link = joined[place].connect(container_id="client").sender("broker.q", name="mine")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(credit)
    joined.pump()
    return joined, link, end


def receiving(place: str, credit: int = 10) -> tuple[Joined, MemoryReceiver, MemorySender]:
    """Return a client's receiver, and the container's end of its link."""
    joined = Joined(LINE)
    broker = container(joined, "A")
    link = joined[place].connect(container_id="client").receiver("broker.q", credit=credit, name="mine")
    (end,) = broker.attached
    assert isinstance(end, MemorySender)
    return joined, link, end


def routed_links(joined: Joined, router: str) -> int:
    """Return the count of ends of routed links on a router."""
    return sum(link.holder is not None for link in _links(joined, router))


def _links(joined: Joined, router: str) -> list[Any]:
    return [endpoint.link for endpoint in joined[router].core.links.values()]


# --- paths


@pytest.mark.parametrize("place", PLACES)
def test_the_attach_arrives_with_everything_and_its_name_is_made_unique_once(place: str) -> None:
    joined = Joined(LINE)
    broker = container(joined, "A")
    source = Source("broker.q", filter={Symbol("f"): "x"}, capabilities=("queue",), distribution_mode="copy")
    link = joined[place].connect(container_id="client").receiver(source=source, target=Target("here"), name="mine")
    (end,) = broker.attached
    assert end.attach is not None
    assert link.attach is not None
    assert (end.attach.name, end.attach.source, end.attach.target) == ("mine@client", source, Target("here"))
    assert (link.attach.source, link.attach.target) == (source, Target("here"))
    for router in PLACES:  # both ends at each router on the path
        assert routed_links(joined, router) == (2 if router <= place else 0)
    link.detach()
    assert [routed_links(joined, router) for router in PLACES] == [0, 0, 0]


@pytest.mark.parametrize("place", PLACES)
def test_prefixes_of_the_container_are_its_own(place: str) -> None:
    joined = Joined(LINE)
    broker = container(joined, "A", add_prefix="ext/", del_prefix="broker.")
    client = joined[place].connect()
    to, back = client.sender("broker.x"), client.receiver("broker.y")
    assert to.attach is not None
    assert to.attach.target == Target("broker.x")
    assert back.address == "broker.y"
    asked = [end.attach for end in broker.attached]
    assert [asked[0].target.address, asked[1].source.address] == ["ext/x", "ext/y"]  # type: ignore[union-attr]


def test_containers_here_come_first_and_elsewhere_they_take_turns() -> None:
    joined = Joined(LINE)
    brokers = {name: container(joined, name) for name in "AC"}
    for place, expected in (("A", [4, 0]), ("C", [0, 4]), ("B", [2, 2])):
        client = joined[place].connect()
        before = [len(each.attached) for each in brokers.values()]
        for _ in range(4):
            assert client.sender("broker.q").attach is not None
        assert [len(each.attached) - was for each, was in zip(brokers.values(), before, strict=True)] == expected


@pytest.mark.parametrize("place", PLACES)
def test_when_a_container_is_lost_links_are_lost_and_go_to_another(place: str) -> None:
    joined = Joined(LINE)
    first = container(joined, "A")
    client = joined[place].connect()
    link = client.receiver("broker.q")
    second = container(joined, "C")
    first.drop()
    assert link.error == LOST
    again = client.receiver("broker.q")
    assert again.detached is None
    assert len(second.attached) == 1


@pytest.mark.parametrize("place", PLACES)
def test_a_route_requested_by_a_connection_is_known_everywhere_and_ends_with_the_connection(place: str) -> None:
    joined = Joined(LINE)
    owner = joined["A"].connect(container_id="owner")
    scoped = owner.as_container()
    joined["A"].core.container_came(scoped)
    for number, pattern in enumerate(("mine/*", "x.*.#"), 1):
        assert joined["A"].core.routes.add_scoped(scoped, LinkRoute(pattern, "in"), number)
    client = joined[place].connect()
    links = [client.sender("mine.a"), client.sender("x.y.z")]
    for end in owner.attached:
        assert isinstance(end, MemoryReceiver)
        end.grant(1)
    joined.pump()
    for link in links:
        link.send(compose(b"to"))
    joined.pump()
    assert [end.bodies for end in owner.attached] == [[b"to"], [b"to"]]  # type: ignore[union-attr]
    owner.drop()
    assert [link.error for link in links] == [LOST, LOST]
    assert all(len(joined[name].core.routes) == 0 for name in PLACES)


# --- messages and their outcomes


@pytest.mark.parametrize("place", PLACES)
def test_every_router_on_the_path_counts_incoming_messages(place: str) -> None:
    """Both directions and every place of the client: each router has an endpoint of the routed link."""
    joined, link, end = sending(place)
    link.send(compose(b"x"))
    joined.pump()
    assert end.bodies == [b"x"]
    on_the_way = [name for name in PLACES if name <= place]
    for name in on_the_way:
        core = joined[name].core
        (record,) = (each for each in core.table.entries.values() if each.key == "Cbroker")
        assert (record.counters.ingress, core.totals.ingress) == (1, 1), name
    joined, _, back = receiving(place)
    back.send(compose(b"x"))
    joined.pump()
    assert [joined[name].core.totals.ingress for name in on_the_way] == [1] * len(on_the_way)


@pytest.mark.parametrize("place", PLACES)
def test_messages_and_tags_pass_byte_by_byte(place: str) -> None:
    joined, link, end = sending(place)
    message = compose(b"x" * 100, annotations={"x-opt-qd.to": "elsewhere", "mine": 1}, to="other")
    sent = SentMessage(link, False, None)
    sent.delivery.tag = b"t" * 32
    sent.finish(message)
    joined.pump()
    (got,) = end.received
    assert (got.payload, got.delivery.tag, got.settled) == (message, b"t" * 32, False)


STATES = [
    Accepted(),
    Released(),
    Received(0, 7),
    Rejected(Error("a:b", "why", {Symbol("more"): "so"})),
    Modified(delivery_failed=True, undeliverable_here=True, message_annotations={Symbol("k"): "v"}),
    Declared(b"txn"),
    TransactionalState(b"txn", Accepted()),
    Described(ULong(0x0000468C00000010), ["own", 1]),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_states_cross_three_routers(state: Any) -> None:
    joined, link, end = sending("C")
    sent = link.send(compose(b"x"), state=state)
    joined.pump()
    assert end.received[0].transfer_state == state
    end.received[0].settle(state, settled=False)
    joined.pump()
    assert sent.history == [(state, False)]
    sent.settle(state)
    joined.pump()
    assert end.received[0].history == [(state, True)]


@pytest.mark.parametrize("place", PLACES)
def test_an_empty_message_is_rejected_and_the_link_goes_on(place: str) -> None:
    joined, link, end = sending(place)
    sent = link.send(b"")
    joined.pump()
    assert isinstance(sent.outcome, Rejected)
    link.send(compose(b"after"))
    joined.pump()
    assert end.bodies == [b"after"]


def test_large_messages_on_one_way_do_not_wait_for_each_other() -> None:
    """One of four receivers takes nothing; the routers on the path keep a window for it, and the others go on."""
    joined = Joined(LINE, limits=EngineLimits(session_window_bytes=256 * 1024, idle_timeout_s=0.0))
    broker = container(joined, "A")
    clients = [joined["C"].connect() for _ in range(4)]
    links = [client.receiver("broker.q", credit=10) for client in clients]
    clients[0].stalled = True
    sent = [end.send(compose(b"x" * 3_000_000)) for end in broker.attached if isinstance(end, MemorySender)]
    joined.pump()
    assert [len(link.bodies) for link in links] == [0, 1, 1, 1]
    assert all(len(link.bodies[0]) == 3_000_000 for link in links[1:])
    clients[0].stalled = False
    joined.pump()
    for link in links:
        link.received[0].settle()
    joined.pump()
    assert [each.outcome for each in sent] == [Accepted()] * 4
    assert joined.held_bytes() == 0


@pytest.mark.parametrize("how", ["abort", "detach", "drop", "cut"])
def test_a_message_that_breaks_off_is_aborted_at_the_container(how: str) -> None:
    joined, link, end = sending("C")
    sent = link.begin(compose(b"x" * 200_000)[:150_000])
    joined.pump()
    if how == "cut":
        joined.cut("B", "C")
    else:
        leave(how, link, sent)
    assert end.received[0].aborted
    assert (end.detached is None) == (how == "abort")
    assert joined.held_bytes() == 0


# --- credit


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ready", [10, 1, 0, 25])
def test_a_drain_reaches_the_container_and_its_answer_the_receiver(place: str, ready: int) -> None:
    joined, link, end = receiving(place)
    for _ in range(ready):
        end.send(compose(b"m"))
    link.drain()
    joined.pump()
    assert (len(link.received), link.credit, link.drained) == (min(ready, 10), 0, 1)
    link.grant(4)
    joined.pump()
    assert end.credit == 4 - min(4, max(0, ready - 10))


@pytest.mark.parametrize("place", PLACES)
def test_a_container_drains_a_sender(place: str) -> None:
    joined, link, end = sending(place)
    link.send(compose())
    end.drain()
    joined.pump()
    assert link.drains == [9]
    assert (end.credit, link.credit, end.drained) == (0, 0, 1)


@pytest.mark.parametrize("place", PLACES)
def test_credit_of_a_receiver_is_the_containers_before_and_after_the_answer(place: str) -> None:
    joined = Joined(LINE)
    broker = container(joined, "A")
    broker.answers = False
    link = joined[place].connect().receiver("broker.q", pump=False)
    link.link.grant(5)
    joined.pump()
    assert link.attach is None
    broker.attached[0].answer()
    joined.pump()
    assert broker.attached[0].link.credit == 5
    link.grant(7)
    joined.pump()
    assert broker.attached[0].link.credit == 12
    link.detach()  # while nothing is under way
    assert broker.attached[0].detached is not None


# --- the end


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_detaches_pass_with_their_word_in_both_directions(place: str, closed: bool) -> None:
    error = Error("a:b", "enough", {Symbol("k"): "v"})
    _, link, end = receiving(place)
    end.detach(closed, error)
    assert link.detached is not None
    assert (link.detached.closed, link.detached.error) == (closed, error)
    _, link, end = receiving(place)
    link.detach(closed, error)
    assert end.detached is not None
    assert (end.detached.closed, end.detached.error) == (closed, error)


@pytest.mark.parametrize("place", PLACES)
def test_an_attach_that_the_container_refuses_is_refused(place: str) -> None:
    joined = Joined(LINE)
    broker = container(joined, "A")
    broker.answers = False
    link = joined[place].connect().sender("broker.closed")
    broker.attached[0].refuse(Error("amqp:not-found", "no such queue"))
    assert link.error == Error("amqp:not-found", "no such queue")
    assert [routed_links(joined, router) for router in PLACES] == [0, 0, 0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", ["session", "connection"])
@pytest.mark.parametrize("answered", [True, False])
def test_a_container_that_ends_more_than_the_link_says_why_to_the_client(place: str, how: str, answered: bool) -> None:
    """RabbitMQ refuses an attach by the end of the whole session."""
    error = Error("amqp:not-found", "no queue 'x' in vhost '/'", {Symbol("k"): "v"})
    joined = Joined(LINE)
    broker = container(joined, "A")
    broker.answers = answered
    link = joined[place].connect().receiver("broker.x")
    if how == "session":
        broker.end(broker.attached[0].link.session, error)
    else:
        broker.close(error)
    assert link.detached is not None
    assert (link.detached.closed, link.error) == (True, error)
    assert [routed_links(joined, router) for router in PLACES] == [0, 0, 0]


def test_a_container_that_closes_before_the_session_is_begun_says_why_to_the_client() -> None:
    error = Error("amqp:resource-limit-exceeded", "too many sessions")
    joined = Joined(LINE)
    broker = container(joined, "A")
    broker.stalled = True  # the begin stays under way
    link = joined["C"].connect().receiver("broker.x")
    assert (broker.attached, link.attach) == ([], None)
    broker.close(error)
    assert link.error == error


@pytest.mark.parametrize("found", [True, False])
def test_a_connection_between_routers_that_breaks_loses_the_link_at_both_ends(found: bool) -> None:
    joined, link, end = receiving("C")
    joined.cut("A", "B", found=found)
    assert link.error == LOST
    assert end.error == LOST
    assert [routed_links(joined, router) for router in PLACES] == [0, 0, 0]

"""Link routes on one router (routing.md 1.3, 1.7, 2.5, 2.7, 3.5, 4.4-4.6, 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tests.core.rows import address_row, link_row, router_row
from trouter.core.check import MessageCheck
from trouter.core.pending_detaches import PATIENCE_S
from trouter.core.routes import MAX_SCOPED, LinkRoute
from trouter.core.tenants import Tenant
from trouter.core.terms import PeerTerms
from trouter.core.why import explain
from trouter.engine.limits import EngineLimits
from trouter.engine.states import LinkState
from trouter.testing.memory import (
    LIMITS,
    MemoryClient,
    MemoryReceiver,
    MemoryRouter,
    MemorySender,
    SentMessage,
    compose,
)
from trouter.wire.performatives import (
    Accepted,
    Coordinator,
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
from trouter.wire.types import ArrayForm, Described, Symbol, ULong

PREFIX = "broker"
LOST = Error("qd:routed-link-lost", "Connectivity to the peer container was lost")
NO_ROUTE = Error("qd:no-route-to-dest", "No route to the destination node")


def routes(router: MemoryRouter, *found: LinkRoute) -> None:
    for each in found:
        router.core.routes.add(each, iter(router.core.containers.matching(each.container_id, each.connection)))


def both(prefix: str = PREFIX, **fields: Any) -> tuple[LinkRoute, LinkRoute]:
    fields.setdefault("container_id", "B")
    return (
        LinkRoute(prefix, "in", is_prefix=True, **fields),
        LinkRoute(prefix, "out", is_prefix=True, **fields),
    )


def routed(*extra: LinkRoute) -> tuple[MemoryRouter, MemoryClient, MemoryClient]:
    """Return a router, a container called B for everything below ``broker``, and a client called C."""
    router = MemoryRouter()
    routes(router, *(extra or both()))
    broker = router.connect(container_id="B", role="route-container")
    return router, broker, router.connect(container_id="C")


def sending(credit: int = 10) -> tuple[MemoryRouter, MemorySender, MemoryReceiver]:
    """Return a client's sender, and the broker's end of its link."""
    router, broker, client = routed()
    sender = client.sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(credit)
    router.pump()
    return router, sender, end


def receiving(credit: int = 10) -> tuple[MemoryRouter, MemoryReceiver, MemorySender]:
    """Return a client's receiver, and the broker's end of its link."""
    _, broker, client = routed()
    receiver = client.receiver("broker.q", credit=credit)
    (end,) = broker.attached
    assert isinstance(end, MemorySender)
    return client.router, receiver, end


def tagged(sender: MemorySender, tag: bytes) -> SentMessage:
    """Begin a message with this tag; nothing of it is sent yet."""
    sent = SentMessage(sender, False, None)
    sent.delivery.tag = tag
    return sent


# --- the attach is forwarded, and the answer returns


def test_the_attach_of_a_sender_goes_to_the_container_unchanged() -> None:
    _, broker, client = routed()
    source = Source("here", capabilities=("x",), expiry_policy="connection-close")
    target = Target(
        "broker.q",
        durable=2,
        expiry_policy="never",
        timeout=7,
        dynamic_node_properties={Symbol("a"): "b"},
        capabilities=("queue", "topic"),
    )
    sender = client.sender(name="mine", target=target, source=source, snd_settle_mode=1, rcv_settle_mode=1)
    (end,) = broker.attached
    assert end.attach is not None
    assert (end.attach.name, end.attach.source, end.attach.target) == ("mine@C", source, target)
    assert sender.attach is not None
    assert (sender.attach.source, sender.attach.target) == (source, target)


#: Fields of a whole attach that go to the other end as they are: what RabbitMQ's clients send, and more.
PASSED: dict[str, Any] = {
    "properties": {Symbol("paired"): True, Symbol("nested"): {"a": [1, b"x"]}},
    "offered_capabilities": ("LINK_PAIR_V1_0",),
    "desired_capabilities": ArrayForm(("one",)),
}


@pytest.mark.parametrize("direction", ["in", "out"])
def test_properties_and_capabilities_of_a_link_pass_both_ways(direction: str) -> None:
    _, broker, client = routed()
    broker.answers = False
    link = (client.sender if direction == "in" else client.receiver)("broker.q", **PASSED)
    (end,) = broker.attached
    end.answer(**PASSED | {"properties": {Symbol("paired"): False}})
    client.pump()
    for attach, properties in ((end.attach, PASSED["properties"]), (link.attach, {Symbol("paired"): False})):
        assert attach is not None
        assert attach.properties == properties
        assert attach.offered_capabilities == ("LINK_PAIR_V1_0",)
        assert attach.desired_capabilities == ("one",)
        assert isinstance(attach.desired_capabilities, ArrayForm)
        assert not isinstance(attach.offered_capabilities, ArrayForm)


def test_a_link_keeps_no_properties_once_it_is_answered() -> None:
    _, broker, client = routed()
    client.sender("broker.q", **PASSED)
    for connection in (broker.server, client.server):
        (link,) = [link for session in connection.sessions() for link in session.links.list_links()]
        assert link.remote_attach is not None
        assert (link.remote_attach.properties, link.remote_attach.offered_capabilities) == (None, ())


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize(("snd", "rcv"), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)])
def test_settle_modes_pass_both_ways(direction: str, snd: int, rcv: int) -> None:
    _, broker, client = routed()
    make = client.sender if direction == "in" else client.receiver
    broker.answers = False
    link = make("broker.q", snd_settle_mode=snd, rcv_settle_mode=rcv)
    (end,) = broker.attached
    end.answer(snd_settle_mode=snd, rcv_settle_mode=rcv)
    client.pump()
    for attach in (end.attach, link.attach):
        assert attach is not None
        assert (attach.snd_settle_mode, attach.rcv_settle_mode) == (snd, rcv)


@pytest.mark.parametrize(
    ("direction", "asked", "answered", "heard"),
    [
        ("in", (1, 1), (2, 0), (1, 0)),  # a sender may do as it asked where the container takes either
        ("in", (0, 0), (2, 1), (0, 1)),
        ("in", (2, 0), (0, 0), (0, 0)),  # the container's wish
        ("in", (1, 0), (0, 0), (0, 0)),
        ("out", (1, 0), (2, 0), (1, 0)),  # the router settles what the container does not
        ("out", (1, 0), (0, 0), (1, 0)),
        ("out", (0, 1), (2, 0), (2, 0)),
        ("out", (2, 1), (1, 1), (1, 1)),
    ],
)
def test_the_containers_settle_modes_are_the_answer(
    direction: str, asked: tuple[int, int], answered: tuple[int, int], heard: tuple[int, int]
) -> None:
    _, broker, client = routed()
    broker.answers = False
    make = client.sender if direction == "in" else client.receiver
    link = make("broker.q", snd_settle_mode=asked[0], rcv_settle_mode=asked[1])
    broker.attached[0].answer(snd_settle_mode=answered[0], rcv_settle_mode=answered[1])
    client.pump()
    assert link.attach is not None
    assert (link.attach.snd_settle_mode, link.attach.rcv_settle_mode) == heard


def test_settle_modes_that_do_not_exist_are_kept_from_the_container() -> None:
    _, broker, client = routed()
    client.sender("broker.q", snd_settle_mode=7, rcv_settle_mode=2)
    (end,) = broker.attached
    assert end.attach is not None
    assert (end.attach.snd_settle_mode, end.attach.rcv_settle_mode) == (2, 0)


def test_a_receiver_that_wants_settled_gets_settled_from_a_container_that_does_not_settle() -> None:
    router, broker, client = routed()
    receiver = client.receiver("broker.q", credit=1, snd_settle_mode=1)
    (end,) = broker.attached
    assert isinstance(end, MemorySender)
    sent = end.send(compose(b"x"))
    router.pump()
    assert receiver.received[0].settled
    assert sent.outcome == Accepted()


@pytest.mark.parametrize("form", [tuple, ArrayForm], ids=["symbol", "array"])
@pytest.mark.parametrize("kind", [Target, Coordinator])
def test_a_capability_keeps_its_form_on_its_way_to_the_container_and_back(
    form: type[tuple[str, ...]], kind: type[Target | Coordinator]
) -> None:
    _, broker, client = routed(*both(), LinkRoute("$coordinator", "in", is_prefix=True, container_id="B"))
    target = Target("broker.q", capabilities=form(("x",))) if kind is Target else Coordinator(form(("x",)))
    sender = client.sender(target=target, source=Source(capabilities=form(("y",)), outcomes=form(("z",))))
    (end,) = broker.attached
    for attach in (end.attach, sender.attach):
        assert attach is not None
        assert isinstance(attach.target, Target | Coordinator)
        assert isinstance(attach.source, Source)
        found = [attach.target.capabilities, attach.source.capabilities, attach.source.outcomes]
        assert found == [("x",), ("y",), ("z",)]
        assert {type(each) for each in found} == {form}


def test_a_receivers_filter_goes_to_the_container_and_comes_back() -> None:
    _, broker, client = routed()
    selector = {Symbol("jms"): Described(ULong(0x468C00000004), "colour = 'red'")}
    source = Source("broker.q", filter=selector, distribution_mode="copy", outcomes=("amqp:accepted:list",))
    receiver = client.receiver(source=source)
    assert broker.attached[0].attach is not None
    assert broker.attached[0].attach.source == source
    assert receiver.attach is not None
    assert receiver.attach.source == source


def test_a_peer_is_answered_when_the_container_answers() -> None:
    router, broker, client = routed()
    broker.answers = False
    receiver = client.receiver("broker.q", pump=False)
    receiver.link.grant(5)
    router.pump()
    assert receiver.link.state is LinkState.ATTACH_SENT
    broker.attached[0].answer()
    router.pump()
    assert receiver.attach is not None
    assert broker.attached[0].link.credit == 5  # granted before the answer, held back until then


def test_credit_of_a_container_that_answers_late_reaches_the_sender() -> None:
    router, broker, client = routed()
    broker.answers = False
    sender = client.sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.answer()
    end.grant(7)
    router.pump()
    assert sender.credit == 7


def test_a_containers_refusal_is_the_peers() -> None:
    router, broker, client = routed()
    broker.answers = False
    sender = client.sender("broker.q")
    broker.attached[0].answer(target=None)
    broker.attached[0].detach(True, Error("amqp:not-found", "no such queue"))
    assert sender.attach is not None
    assert sender.attach.target is None
    assert sender.error == Error("amqp:not-found", "no such queue")
    assert router.core.links == {}


@pytest.mark.parametrize("direction", ["in", "out"])
def test_without_its_container_a_route_refuses(direction: str) -> None:
    router = MemoryRouter()
    routes(router, *both())
    client = router.connect()
    link = client.sender("broker.q") if direction == "in" else client.receiver("broker.q")
    assert link.error == NO_ROUTE
    assert router.core.links == {}


def test_each_direction_has_its_own_routes() -> None:
    router, broker, client = routed(both()[0])
    assert client.sender("broker.q").attach is not None
    receiver = client.receiver("broker.q", credit=1)
    assert receiver.attach is not None
    assert len(broker.attached) == 1
    assert router.core.table.entries["M0broker.q"].count_destinations() == 1


@pytest.mark.parametrize(
    ("route", "inside", "outside"),
    [
        (
            LinkRoute("a.b", "in", is_prefix=True, container_id="B"),
            ["a.b", "a/b", "a.b.", "a.b.c.d", "amqp:/a.b/c"],
            ["a", "a.bc", "b"],
        ),
        (LinkRoute("a.*.c.#", "in", container_id="B"), ["a.x.c", "a/x/c/d"], ["a.c", "a.x.y.c", "a.x"]),
        (LinkRoute("#", "in", container_id="B"), ["a", "x/y"], []),
    ],
)
def test_patterns_choose_the_addresses_that_are_routed(route: LinkRoute, inside: list[str], outside: list[str]) -> None:
    _, broker, client = routed(route)
    for address in inside:
        client.sender(address)
    assert len(broker.attached) == len(inside)
    for address in outside:
        assert client.sender(address).attach is not None
    assert len(broker.attached) == len(inside)


def test_addresses_that_the_router_serves_itself_are_never_routed() -> None:
    router, broker, client = routed(*both("#"))
    router.core.inside.subscribe("$management", _SilentConsumer())
    for address in ("$management", "_local/x", "_topo/0/R1/x", "_edge/E/x"):
        client.sender(address)
    assert broker.attached == []


class _SilentConsumer:
    def receive(self, received: Any) -> None:
        received.settle()


# --- names


def test_a_name_that_is_taken_at_the_container_gets_another() -> None:
    router, broker, client = routed()
    client.sender("broker.q", name="n")
    client.sender("broker.q", name="n", session=client.add_session())
    client.receiver("broker.q", name="n")
    names = [end.link.name for end in broker.attached]
    assert names[0] == "n@C"
    assert names[1].startswith("n@C@")
    assert names[2] == "n@C"
    other = router.connect(container_id="D")
    other.sender("broker.q", name="n")
    assert broker.attached[-1].link.name == "n@D"


def _named(client: MemoryClient, broker: MemoryClient, name: str, address: str = "broker.q") -> str:
    """Attach a receiver; return the name of its link at the container."""
    client.receiver(address, name=name)
    return broker.attached[-1].link.name


@pytest.mark.attack
def test_a_user_gets_no_link_of_another_user_by_its_container_id() -> None:
    """A container that has one link of a name takes it from its holder, or gives out what it keeps for it."""
    router, broker, _ = routed()
    alice, mallory = (router.connect(PeerTerms(user=user), container_id="C") for user in ("alice", "mallory"))
    assert [_named(each, broker, "sub") for each in (alice, mallory)] == ["sub@C", "sub@C@2"]
    returned = router.connect(PeerTerms(user="alice"), container_id="C")
    assert _named(returned, broker, "sub") == "sub@C"
    other = router.connect(PeerTerms(user="mallory"), container_id="b@C")
    assert _named(other, broker, "a") == "a@b@C"
    assert _named(alice, broker, "a@b") == "a@b@C@2"


@pytest.mark.attack
def test_a_name_of_a_user_is_free_again_when_its_link_is_over() -> None:
    router, broker, _ = routed()
    alice, mallory = (router.connect(PeerTerms(user=user), container_id="C") for user in ("alice", "mallory"))
    _named(mallory, broker, "sub")
    mallory.close()
    router.pump()
    assert _named(alice, broker, "sub") == "sub@C"


def _names_of_tenants(terms: Sequence[PeerTerms], *, at_once: bool) -> list[str]:
    """Return the names of the links of clients with one name and one container id, at the container that they share."""
    router = MemoryRouter()
    for each in terms:
        assert each.tenant is not None
        routes(router, *both(f"{each.tenant.space}/broker"))
    broker = router.connect(container_id="B", role="route-container")
    names = []
    for each in terms:
        client = router.connect(each, container_id="C")
        names.append(_named(client, broker, "sub"))
        if not at_once:
            client.close()
            router.pump()
    return names


@pytest.mark.attack
def test_names_of_tenants_differ_for_ever_where_defaults_are_secure() -> None:
    """What a broker keeps under a name outlives the link."""
    terms = [PeerTerms(tenant=Tenant(each), names_tenant=True) for each in ("t1", "t2", "b@t1", "b%40t1")]
    wanted = ["sub@C@t1", "sub@C@t2", "sub@C@b%40t1", "sub@C@b%2540t1"]
    assert _names_of_tenants(terms, at_once=False) == wanted
    assert _names_of_tenants(terms, at_once=True) == wanted


def test_names_of_tenants_are_those_of_qpid_dispatch_while_no_other_link_has_them() -> None:
    terms = [PeerTerms(tenant=Tenant(each)) for each in ("t1", "t2")]
    assert _names_of_tenants(terms, at_once=False) == ["sub@C", "sub@C"]
    assert _names_of_tenants(terms, at_once=True) == ["sub@C", "sub@C@2"]


@pytest.mark.parametrize(("length", "kept"), [(8190, True), (8191, False)])
def test_a_long_link_name_is_kept_and_a_longer_one_becomes_its_digest(length: int, kept: bool) -> None:
    _, broker, client = routed()
    client.sender("broker.q", name="n" * length)
    assert broker.attached[0].link.name == (f"{'n' * length}@C" if kept else sha256(b"n" * length + b"@C").hexdigest())


# --- prefixes of the container itself


@pytest.mark.parametrize(
    ("add", "remove", "asked", "there"),
    [
        ("ext/", "", "broker.q", "ext/broker.q"),
        ("", "broker.", "broker.q", "q"),
        ("ext.", "broker.", "broker.q", "ext.q"),
        ("ext/", "", "amqp:/broker.q", "ext/broker.q"),
        ("", "", "amqp://host/broker.q", "amqp://host/broker.q"),
        ("", "other.", "broker.q", "broker.q"),
        ("/queues/", "/broker.", "/broker.q", "/queues/q"),
        ("/queues/", "/broker.", "broker.q", "/queues/q"),
        ("/queues/", "broker.", "/broker.q", "/queues/q"),
    ],
)
@pytest.mark.parametrize("direction", ["in", "out"])
def test_the_container_has_prefixes_of_its_own(add: str, remove: str, asked: str, there: str, direction: str) -> None:
    _, broker, client = routed(*both(add_prefix=add, del_prefix=remove))
    link: Any = client.sender(asked) if direction == "in" else client.receiver(asked)
    attach = broker.attached[0].attach
    assert attach is not None
    assert (attach.target if direction == "in" else attach.source).address == there  # type: ignore[union-attr]
    assert link.address == asked


def test_an_address_that_the_container_gives_comes_back_in_the_peers_words() -> None:
    router, broker, client = routed(*both(add_prefix="ext."))
    broker.answers = False
    source = Source(dynamic=True, dynamic_node_properties={Symbol("x-opt-qd.address"): "broker.temporary"})
    receiver = client.receiver(source=source)
    asked = broker.attached[0].attach
    assert asked is not None
    assert isinstance(asked.source, Source)
    assert asked.source.dynamic
    assert asked.source.dynamic_node_properties == {"x-opt-qd.address": "ext.broker.temporary"}
    broker.attached[0].answer(source=replace(asked.source, address="ext.broker.temporary.1"))
    router.pump()
    assert receiver.address == "broker.temporary.1"


@pytest.mark.attack
@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_dynamic_terminus_brings_no_second_address_to_the_container(direction: str) -> None:
    """The route takes it by the address in its properties, by which the policy judges it, too."""
    _, broker, client = routed()
    named: dict[str, Any] = {"dynamic": True, "dynamic_node_properties": {Symbol("x-opt-qd.address"): "broker.q"}}
    if direction == "in":
        client.sender(target=Target("secret", **named))
    else:
        client.receiver(source=Source("secret", **named))
    attach = broker.attached[0].attach
    assert attach is not None
    terminus = attach.target if direction == "in" else attach.source
    assert isinstance(terminus, Source | Target)
    assert (terminus.dynamic, terminus.address) == (True, None)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_dynamic_terminus_for_no_route_has_nowhere_to_go(direction: str) -> None:
    _, broker, client = routed()
    properties = {Symbol("x-opt-qd.address"): "elsewhere"}
    link: MemorySender | MemoryReceiver
    if direction == "in":
        link = client.sender(target=Target(dynamic=True, dynamic_node_properties=properties))
    else:
        link = client.receiver(source=Source(dynamic=True, dynamic_node_properties=properties))
    assert link.error == NO_ROUTE
    assert broker.attached == []


# --- messages


def test_a_delivery_with_a_tag_that_is_too_long_is_rejected_and_the_link_goes_on() -> None:
    router, sender, end = sending()
    for size in (33, 32):
        sent = tagged(sender, bytes(size))
        sent.finish(compose(b"x"))
        router.pump()
        if size == 33:
            assert isinstance(sent.outcome, Rejected)
            assert end.received == []
    assert [message.delivery.tag for message in end.received] == [bytes(32)]


def test_messages_and_tags_pass_byte_by_byte() -> None:
    router, sender, end = sending()
    message = compose(b"x" * 100, annotations={"x-opt-qd.to": "elsewhere", "mine": 1}, to="other", user_id=b"u")
    tagged(sender, b"my tag").finish(message)
    router.pump()
    (got,) = end.received
    assert got.payload == message
    assert got.delivery.tag == b"my tag"
    assert not got.settled


def test_messages_from_the_container_pass_with_their_tags() -> None:
    router, receiver, end = receiving()
    message = compose(b"y", annotations={"x-opt-qd.trace": ["0/A"]})
    tagged(end, b"").finish(message)
    router.pump()
    assert receiver.received[0].payload == message
    assert receiver.received[0].delivery.tag == b""


def test_an_empty_message_is_rejected_and_the_link_goes_on() -> None:
    router, sender, end = sending(credit=1)
    sent = sender.send(b"")
    router.pump()
    assert isinstance(sent.outcome, Rejected)
    assert sender.credit == 1
    sender.send(compose(b"after"))
    router.pump()
    assert end.bodies == [b"after"]


@pytest.mark.parametrize("size", [100, 100_000, 3_000_000])
@pytest.mark.parametrize("settled", [False, True])
def test_messages_of_any_size(size: int, settled: bool) -> None:
    router, sender, end = sending()
    message = compose(b"z" * size)
    sent = sender.send(message, settled=settled, frames=3)
    router.pump()
    assert end.received[0].payload == message
    assert end.received[0].complete
    assert end.received[0].settled is settled
    if not settled:
        end.received[0].settle()
        router.pump()
        assert sent.outcome == Accepted()
        assert sent.settled
    assert router.held_bytes() == 0


def test_an_aborted_message_is_aborted_at_the_other_end() -> None:
    router, sender, end = sending(credit=3)
    half = sender.begin(compose(b"z" * 300_000)[:200_000])
    router.pump()
    assert len(end.received) == 1
    half.abort()
    router.pump()
    assert end.received[0].aborted
    sender.send(compose(b"after"))
    router.pump()
    assert end.bodies == [b"after"]
    assert sender.credit == 1


def test_a_message_aborted_before_its_first_transfer_leaves_no_trace() -> None:
    router, sender, end = sending(credit=1)
    half = sender.begin(compose(b"z" * 100)[:50])
    router.pump()
    half.abort()
    router.pump()
    assert end.received == []
    assert sender.credit == 1  # the container has used none of its credit
    sender.send(compose(b"after"))
    router.pump()
    assert end.bodies == [b"after"]


# --- states


STATES = [
    Accepted(),
    Released(),
    Rejected(Error("a:b", "why")),
    Modified(delivery_failed=True, undeliverable_here=True, message_annotations={Symbol("k"): "v"}),
    Declared(b"txn"),
    TransactionalState(b"txn", Accepted()),
    Described(ULong(0x0000468C00000010), ["own", 1]),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("settled", [True, False])
def test_states_of_the_receiver_reach_the_sender(state: Any, settled: bool) -> None:
    router, sender, end = sending()
    sent = sender.send(compose(b"x"))
    router.pump()
    end.received[0].settle(state, settled=settled)
    router.pump()
    assert sent.history == [(state, settled)]


def test_states_that_are_not_final_may_follow_one_another() -> None:
    router, sender, end = sending()
    sent = sender.send(compose(b"x"))
    router.pump()
    end.received[0].settle(Received(1, 2), settled=False)
    router.pump()
    end.received[0].settle(Received(1, 9), settled=False)
    router.pump()
    end.received[0].settle(Accepted(), settled=True)
    router.pump()
    assert sent.history == [(Received(1, 2), False), (Received(1, 9), False), (Accepted(), True)]


def test_three_steps_of_settlement() -> None:
    router, sender, end = sending()
    sent = sender.send(compose(b"x"))
    router.pump()
    end.received[0].settle(Accepted(), settled=False)
    router.pump()
    assert sent.history == [(Accepted(), False)]
    sent.settle()
    router.pump()
    assert end.received[0].history[-1][1] is True


def test_the_sender_settles_first() -> None:
    router, sender, end = sending()
    sent = sender.send(compose(b"x"))
    router.pump()
    sent.settle(Accepted())
    router.pump()
    assert end.received[0].history == [(Accepted(), True)]


def test_a_state_on_the_transfer_reaches_the_container() -> None:
    router, sender, end = sending()
    sender.send(compose(b"x"), state=TransactionalState(b"txn-1"))
    router.pump()
    assert end.received[0].transfer_state == TransactionalState(b"txn-1")


# --- credit and drain


def test_credit_is_the_receivers_own() -> None:
    router, sender, end = sending(credit=2)
    for _ in range(3):
        sender.send(compose(b"x"))
    router.pump()
    assert len(end.received) == 2
    for each in end.received:
        each.settle()
    router.pump()
    assert sender.credit == 0  # settling returns none
    end.grant(5)
    router.pump()
    assert len(end.received) == 3
    assert sender.credit == 4


def test_credit_given_bit_by_bit_adds_up() -> None:
    router, sender, end = sending(credit=1)
    for _ in range(9):
        end.grant(1)
        router.pump()
    assert sender.credit == 10


@pytest.mark.parametrize("ready", [0, 3, 10, 12])
def test_a_drain_reaches_the_sender_and_its_answer_the_receiver(ready: int) -> None:
    router, receiver, end = receiving(credit=10)
    for _ in range(ready):
        end.send(compose(b"m"))
    receiver.drain()
    router.pump()
    assert len(receiver.received) == min(ready, 10)
    assert receiver.credit == 0
    assert receiver.drained == 1
    receiver.grant(4)
    router.pump()
    assert end.credit == 4 - max(0, ready - 10)


def test_a_drain_waits_for_the_senders_answer() -> None:
    router, receiver, end = receiving(credit=10)
    end.answers_drain = False
    receiver.drain()
    router.pump()
    assert (receiver.drained, receiver.credit) == (0, 10)
    end.send(compose(b"late"))
    end.drained()
    router.pump()
    assert receiver.bodies == [b"late"]
    assert (receiver.drained, receiver.credit) == (1, 0)


def test_one_drain_after_another() -> None:
    router, receiver, end = receiving(credit=3)
    for turn in range(1, 4):
        receiver.drain()
        router.pump()
        assert (receiver.drained, end.credit) == (turn, 0)
        receiver.grant(3)
        router.pump()
        assert end.credit == 3
        end.send(compose(b"m"))
        router.pump()
    assert len(receiver.received) == 3


def test_a_container_drains_a_sender() -> None:
    router, sender, end = sending(credit=10)
    sender.send(compose(b"m"))
    end.drain()
    router.pump()
    assert sender.drains == [9]
    assert (end.drained, end.credit) == (1, 0)


# --- the end


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("error", [None, Error("a:b", "why", {Symbol("k"): 1})])
def test_a_containers_detach_reaches_the_peer(closed: bool, error: Error | None) -> None:
    router, sender, end = sending()
    end.detach(closed, error)
    assert sender.detached is not None
    assert (sender.detached.closed, sender.error) == (closed, error)
    assert router.core.links == {}


@pytest.mark.parametrize("closed", [True, False])
def test_a_peers_detach_reaches_the_container(closed: bool) -> None:
    router, receiver, end = receiving()
    receiver.detach(closed, Error("c:d"))
    assert end.detached is not None
    assert (end.detached.closed, end.error) == (closed, Error("c:d"))
    assert router.core.links == {}


def test_a_long_error_is_cut() -> None:
    _, sender, end = sending()
    end.detach(True, Error("a:b", "w" * 5000, {Symbol("k"): "v" * 5000}))
    assert sender.error == Error("a:b", "w" * 60)


def test_a_peer_that_is_lost_is_lost_to_the_container() -> None:
    _, broker, client = routed()
    client.sender("broker.q")
    client.drop()
    (end,) = broker.attached
    assert end.detached is not None
    assert (end.detached.closed, end.error) == (True, LOST)


@pytest.mark.parametrize("kept", [{"timeout": 5}, {"expiry_policy": "never"}])
def test_a_terminus_that_outlives_its_link_is_not_closed(kept: dict[str, Any]) -> None:
    _, broker, client = routed()
    client.receiver(source=Source("broker.q", **kept))
    client.close()
    (end,) = broker.attached
    assert end.detached is not None
    assert (end.detached.closed, end.error) == (False, LOST)


def test_termini_that_outlive_their_links_can_be_forbidden() -> None:
    router, broker, client = routed()
    router.core.routes.resumable = False
    receiver = client.receiver(source=Source("broker.q", expiry_policy="never"))
    assert receiver.error == Error("qd:link-expiration", "Requested link expiration not allowed")
    assert broker.attached == []
    assert client.receiver("broker.q").attach is not None


@pytest.mark.parametrize("how", ["connection", "session"])
def test_a_container_that_is_lost_is_lost_to_its_peers(how: str) -> None:
    router, broker, client = routed()
    receiver = client.receiver(source=Source("broker.q", expiry_policy="never"), credit=5)
    sender = client.sender("broker.q")
    if how == "connection":
        broker.drop()
    else:
        broker.end(broker.attached[0].link.session)
    for link in (sender, receiver):
        assert link.detached is not None
        assert (link.detached.closed, link.error) == (True, LOST)
    assert router.core.links == {}


def test_a_session_that_the_container_ended_is_begun_again() -> None:
    router, broker, client = routed()
    client.sender("broker.q")
    broker.end(broker.attached[0].link.session)
    sender = client.sender("broker.q")
    end = broker.attached[-1]
    assert isinstance(end, MemoryReceiver)
    end.grant(1)
    router.pump()
    sender.send(compose(b"again"))
    router.pump()
    assert end.bodies == [b"again"]


def test_deliveries_when_the_receivers_end_is_lost() -> None:
    _, broker, client = routed()
    router = client.router
    sender = client.sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(2)
    router.pump()
    whole, part = sender.send(compose(b"x")), sender.begin(compose(b"z" * 300_000)[:200_000])
    router.pump()
    broker.drop()
    assert whole.outcome == Modified(delivery_failed=True)
    assert part.outcome == Released()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    ("state", "kept"), [(TransactionalState(b"txn", Accepted()), True), (TransactionalState(b"txn"), False)]
)
def test_what_a_receiver_did_in_a_transaction_stays_when_it_detaches(
    state: TransactionalState, kept: bool, closed: bool
) -> None:
    """The commit, or the rollback, comes on the link to the coordinator."""
    router, broker, client = routed()
    receiver = client.receiver("broker.q", credit=1)
    (end,) = broker.attached
    assert isinstance(end, MemorySender)
    sent = end.send(compose(b"x"))
    router.pump()
    receiver.received[0].settle(state, settled=False)
    router.pump()
    receiver.detach(closed=closed)
    router.pump()
    last = state if kept else Modified(delivery_failed=True)
    assert sent.history == [(state, False), (last, True)]


def test_what_a_lost_receiver_did_in_a_transaction_is_returned() -> None:
    """The transaction is lost with the connection, since its coordinator's link is."""
    router, broker, client = routed()
    receiver = client.receiver("broker.q", credit=1)
    (end,) = broker.attached
    assert isinstance(end, MemorySender)
    sent = end.send(compose(b"x"))
    router.pump()
    receiver.received[0].settle(TransactionalState(b"txn", Accepted()), settled=False)
    router.pump()
    client.drop()
    router.pump()
    assert sent.outcome == Modified(delivery_failed=True)


def test_a_peer_that_detaches_before_the_container_answers() -> None:
    router, broker, client = routed()
    broker.answers = False
    sender = client.sender("broker.q")
    sender.detach()
    broker.attached[0].answer()
    router.pump()
    assert broker.attached[0].detached is not None
    assert router.core.links == {}


def ends(broker: MemoryClient, client: MemoryClient, towards: str) -> tuple[Any, Any]:
    """Return the end of a link that detaches and the other end, which is the container's if ``towards`` says so."""
    link = client.receiver("broker.q", credit=5)
    (end,) = broker.attached
    for each in (broker, client):
        each.answers_detaches = False
    return (link, end) if towards == "container" else (end, link)


@pytest.mark.parametrize("towards", ["container", "client"])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("error", [None, Error("a:b", "why", {Symbol("k"): 1})])
def test_a_detach_is_answered_with_the_other_ends_answer(towards: str, closed: bool, error: Error | None) -> None:
    """A close is answered with a close: RabbitMQ answers every detach with one that does not close."""
    router, broker, client = routed()
    link, other = ends(broker, client, towards)
    link.detach(True)
    assert (link.detached, other.detached and other.detached.closed) == (None, True)
    other.detach(closed, error)
    assert (link.detached.closed, link.error) == (True, error)
    router.core.watch_links(1000.0)
    assert (router.core.links, broker.faults, client.faults) == ({}, [], [])


@pytest.mark.parametrize("towards", ["container", "client"])
def test_an_answer_that_does_not_come_is_not_waited_for(towards: str) -> None:
    router, broker, client = routed()
    link, other = ends(broker, client, towards)
    link.detach(False)
    router.core.watch_links(PATIENCE_S - 0.1)
    router.pump()
    assert [link.detached] == [None]
    router.core.watch_links(PATIENCE_S)
    router.pump()
    assert (link.detached.closed, link.error) == (False, None)
    other.detach(False, Error("a:b", "too late"))
    assert broker.faults == client.faults == []
    for each in (broker, client):
        assert each.server.link_count == 0


@pytest.mark.parametrize("towards", ["container", "client"])
@pytest.mark.parametrize("how", ["connection", "session"])
def test_an_end_lost_before_its_detach_answers_the_other_end(towards: str, how: str) -> None:
    _, broker, client = routed()
    link, other = ends(broker, client, towards)
    link.detach(False)
    if how == "connection":
        other.client.drop()
    else:
        other.client.end(other.link.session)
    assert (link.detached.closed, link.error) == (False, LOST)


@pytest.mark.parametrize("towards", ["container", "client"])
def test_an_end_that_is_lost_is_not_answered(towards: str) -> None:
    router, broker, client = routed()
    link, other = ends(broker, client, towards)
    link.detach()
    link.client.end(link.link.session)
    other.detach()
    router.core.watch_links(1000.0)
    router.pump()
    assert (router.core.links, broker.faults, client.faults) == ({}, [], [])
    assert (other.client.server.link_count, link.client.server.link_count) == (0, 0)


def test_both_ends_detach_at_once() -> None:
    router, broker, client = routed()
    link, other = ends(broker, client, "container")
    for each, word in ((link, "client"), (other, "container")):
        each.link.awaited = True
        each.link.detach(True, Error("a:b", word))
    router.pump()
    assert (link.error, other.error) == (Error("a:b", "container"), Error("a:b", "client"))
    assert (broker.server.link_count, client.server.link_count) == (0, 0)


def test_messages_sent_before_a_detach_reach_the_container_before_the_detach() -> None:
    router = MemoryRouter()
    routes(router, *both())
    small = replace(LIMITS, session_window_bytes=65536)
    broker = router.connect(client_limits=small, container_id="B", role="route-container")
    sender = router.connect(container_id="C").sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(10)
    router.pump()
    broker.stalled = True
    for number in range(10):
        sender.send(compose(bytes([number]) * 30_000), settled=True)
    router.pump()
    sender.detach()
    assert sender.detached is None
    broker.stalled = False
    router.pump()
    assert [body[:1] for body in end.bodies] == [bytes([number]) for number in range(10)]
    assert end.detached is not None
    assert sender.detached is not None


def test_a_detach_waits_a_bounded_time_for_messages_that_a_container_never_takes() -> None:
    router, broker, client = routed()
    sender: Any = client.sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(3)
    router.pump()
    broker.stalled = True
    for _ in range(3):
        sender.send(compose(bytes(1_000_000)), settled=True)
    router.pump()
    sender.detach()
    assert [sender.detached] == [None]
    router.core.watch_links(PATIENCE_S)
    router.pump()
    assert sender.detached is not None
    broker.stalled = False
    router.pump()
    assert end.detached is not None
    assert router.held_bytes() == 0


def test_a_half_sent_message_is_aborted_before_the_detach() -> None:
    router, sender, end = sending()
    sender.begin(compose(b"z" * 300_000)[:200_000])
    router.pump()
    sender.detach()
    assert end.received[0].aborted
    assert end.detached is not None


# --- several containers


def test_containers_take_turns() -> None:
    router, first, client = routed()
    second = router.connect(container_id="B", role="route-container")
    for _ in range(4):
        client.sender("broker.q")
    assert (len(first.attached), len(second.attached)) == (2, 2)
    first.drop()
    client.sender("broker.q")
    assert len(second.attached) == 3


def test_a_connection_is_known_by_its_connectors_name_too() -> None:
    router = MemoryRouter()
    routes(router, *both(container_id="", connection="to-broker"))
    router.connect(container_id="B", role="route-container", name="other")
    named = router.connect(container_id="B", role="route-container", name="to-broker")
    router.connect().sender("broker.q")
    assert len(named.attached) == 1


def test_only_route_containers_get_configured_routes() -> None:
    router = MemoryRouter()
    routes(router, *both())
    normal = router.connect(container_id="B")
    router.core.container_came(normal.as_container())
    assert router.connect().sender("broker.q").error == NO_ROUTE


def test_routes_of_equal_patterns_share_one_address() -> None:
    router = MemoryRouter()
    one = LinkRoute("a.b", "in", is_prefix=True, container_id="B")
    two = LinkRoute("a/b/#", "in", container_id="D", add_prefix="x/")
    routes(router, one, two)
    assert [key for key in router.core.table.entries if key[0] in "CDEF"] == ["Ca.b"]
    first = router.connect(container_id="B", role="route-container")
    second = router.connect(container_id="D", role="route-container")
    client = router.connect()
    client.sender("a.b")
    client.sender("a.b")
    (there,) = second.attached
    assert there.attach is not None
    assert isinstance(there.attach.target, Target)
    assert there.attach.target.address == "x/a.b"
    assert len(first.attached) == 1
    router.core.routes.remove(one)
    client.sender("a.b")
    assert len(second.attached) == 2
    router.core.routes.remove(two)
    assert "Ca.b" not in router.core.table.entries
    assert client.sender("a.b").attach is not None  # an ordinary address again


def test_links_outlive_their_link_route() -> None:
    carried = both()
    router, broker, client = routed(*carried)
    sender = client.sender("broker.q")
    end = broker.attached[0]
    assert isinstance(end, MemoryReceiver)
    for route in carried:
        router.core.routes.remove(route)
    end.grant(1)
    router.pump()
    sender.send(compose(b"still"))
    router.pump()
    assert end.bodies == [b"still"]


# --- routes of a connection's own


def test_a_connection_has_links_routed_to_itself() -> None:
    router = MemoryRouter()
    owner, client = router.connect(container_id="owner"), router.connect()
    container = owner.as_container()
    router.core.container_came(container)
    for number, way in enumerate(("in", "out"), 1):
        assert router.core.routes.add_scoped(container, LinkRoute("mine/*", way), number)
    sender, receiver = client.sender("mine.a"), client.receiver("mine.b", credit=3)
    takes, sends = owner.attached
    assert isinstance(takes, MemoryReceiver)
    assert isinstance(sends, MemorySender)
    takes.grant(1)
    router.pump()
    sender.send(compose(b"to"))
    sends.send(compose(b"from"))
    router.pump()
    assert (takes.bodies, receiver.bodies) == ([b"to"], [b"from"])
    router.core.routes.remove_scoped(1)
    assert client.sender("mine.a").attach is not None
    assert len(owner.attached) == 2
    owner.drop()
    assert receiver.error == LOST
    assert len(router.core.routes) == 0
    assert router.core.routes.scoped_routes() == {}


def test_a_connection_has_so_many_routes_and_no_more() -> None:
    router = MemoryRouter()
    container = router.connect().as_container()
    router.core.container_came(container)
    for number in range(MAX_SCOPED):
        assert router.core.routes.add_scoped(container, LinkRoute(f"p{number}", "in"), number)
    assert not router.core.routes.add_scoped(container, LinkRoute("last", "in"), MAX_SCOPED)
    router.core.routes.remove_scoped(0)
    assert router.core.routes.add_scoped(container, LinkRoute("last", "in"), MAX_SCOPED)


def test_an_address_that_takes_too_many_steps_to_find_is_refused() -> None:
    """A client's patterns, and an address of 2,000 tokens: all of the patterns' nodes are reached by each token."""
    router, broker, client = routed()
    container = client.as_container()
    for number in range(16):
        pattern = ".".join(["#.a" if number >> bit & 1 else "#.a.a" for bit in range(4)])
        assert router.core.routes.add_scoped(container, LinkRoute(f"{pattern}.b", "in"), number)
    other = router.connect()
    assert other.sender("a." * 2000 + "a").error == NO_ROUTE
    assert other.receiver("a." * 2000 + "a", credit=1).error is None
    sent = other.sender().send(compose(b"x", to="a." * 2000 + "a"))
    router.pump()
    assert sent.outcome == Released()
    assert other.sender("a." * 20 + "a").error is None
    other.sender("a.a.a.a.b")
    other.sender("broker.q")
    assert (len(client.attached), len(broker.attached)) == (1, 1)


# --- other routers


def test_link_routes_of_other_routers_are_known_by_their_keys() -> None:
    router = MemoryRouter()
    found = router.core.routes
    for key in ("Clr.one", "Da/b", "Ex.*.y", "F#", "", "C", "E...", "Mlr", "C" + "x" * 5000):
        found.add_remote(key, "R2")
    assert len(found) == 4
    assert router.connect().sender("lr.one.x").error == NO_ROUTE  # there is no path to R2
    found.add_remote("Clr/one", "R3")
    assert found.routers_of("Clr.one") == ["R2", "R3"]
    assert address_row(router.core, router.core.table.entries["Clr.one"])["remoteHostRouters"] == ["R2", "R3"]
    found.delete_remote("Clr.one", "R2")
    found.delete_remote("E...", "R2")
    found.forget_remote("R3")
    found.forget_remote("R2")
    assert len(found) == 0
    assert not [key for key in router.core.table.entries if key[0] in "CDEF"]


def test_other_routers_are_notified_of_the_first_container_and_of_the_loss_of_the_last() -> None:
    router = MemoryRouter()
    reported: list[tuple[str, int, bool]] = []
    router.core.network.local_listeners.add(lambda *what: reported.append(what))
    routes(router, *both("lr.one"), LinkRoute("a.*.b.#", "in", container_id="B"), LinkRoute("c/#", "out"))
    assert reported == []
    first = router.connect(container_id="B", role="route-container")
    second = router.connect(container_id="B", role="route-container")
    assert reported == [("Clr.one", 4, True), ("Dlr.one", 4, True), ("Ea.*.b.#", 4, True)]
    reported.clear()
    first.drop()
    assert reported == []
    second.drop()
    assert reported == [("Clr.one", 0, False), ("Dlr.one", 0, False), ("Ea.*.b.#", 0, False)]


# --- transactions


def test_a_coordinator_is_found_by_its_route() -> None:
    _, broker, client = routed(*both("$coordinator"))
    sender = client.sender(target=Coordinator(("amqp:local-transactions",)))
    attach = broker.attached[0].attach
    assert attach is not None
    assert attach.target == Coordinator(("amqp:local-transactions",))
    assert sender.attach is not None
    assert sender.attach.target == Coordinator(("amqp:local-transactions",))


def test_a_coordinator_without_its_container_is_refused() -> None:
    router = MemoryRouter()
    routes(router, *both("$coordinator"))
    assert router.connect().sender(target=Coordinator()).error == NO_ROUTE


# --- tenants


def test_a_tenants_links_go_to_routes_with_its_name() -> None:
    router = MemoryRouter()
    routes(router, *both("t1/broker"), *both("broker"))
    broker = router.connect(container_id="B", role="route-container")
    client = router.connect(PeerTerms(tenant=Tenant("t1")))
    receiver = client.receiver("broker.q")
    attach = broker.attached[0].attach
    assert attach is not None
    assert isinstance(attach.source, Source)
    assert attach.source.address == "t1/broker.q"
    assert receiver.address == "broker.q"
    other = router.connect(PeerTerms(tenant=Tenant("t2")))
    assert other.receiver("broker.q").attach is not None
    assert len(broker.attached) == 1


@pytest.mark.parametrize("pattern", ["example.com/broker", "#", "*/com/broker/#", "example.com.broker"])
def test_a_route_of_one_tenant_is_not_anothers(pattern: str) -> None:
    router = MemoryRouter()
    routes(router, LinkRoute(pattern, "in", is_prefix="#" not in pattern, container_id="B"))
    broker = router.connect(container_id="B", role="route-container")
    client = router.connect(PeerTerms(tenant=Tenant("example")))
    client.receiver("com/broker/q", credit=1)
    sender = client.sender("com/broker/q")
    assert broker.attached == []
    sender.send(compose(b"mine"))
    anonymous = client.sender().send(compose(b"mine too", to="com/broker/q"))
    router.pump()
    assert len(client.session.links.by_name) == 3
    assert anonymous.outcome is None  # with the tenant's own receiver
    owner = router.connect(PeerTerms(tenant=Tenant("example.com")))
    owner.sender("broker/q")
    assert len(broker.attached) == (pattern == "example.com/broker")


# --- policy


@pytest.mark.parametrize(
    ("name", "taken"), [(b"eve", True), (b"", True), (None, True), (b"adam", False), (b"ev", False)]
)
def test_a_forged_user_id_is_rejected(name: bytes | None, taken: bool) -> None:
    router = MemoryRouter()
    routes(router, *both())
    broker = router.connect(container_id="B", role="route-container")
    reported: list[tuple[str, str]] = []
    check = MessageCheck(b"eve", None, None, lambda *what: reported.append(what))
    sender = router.connect(PeerTerms(check=check)).sender("broker.q")
    (end,) = broker.attached
    assert isinstance(end, MemoryReceiver)
    end.grant(5)
    router.pump()
    sent = sender.send(compose(b"x", user_id=name, to="elsewhere"))
    router.pump()
    if taken:
        assert end.bodies == [b"x"]
        return
    assert end.received == []
    assert isinstance(sent.outcome, Rejected)
    assert sent.outcome.error == Error("amqp:unauthorized-access", "user_id proxy violation")
    assert len(reported) == 1
    assert sender.credit == 5


def test_anonymous_messages_do_not_enter_link_routes() -> None:
    route = both()[0]
    router, _, client = routed(route)
    client.receiver("broker.q", credit=1)
    anonymous = client.sender()
    sent = anonymous.send(compose(b"x", to="broker.q"))
    router.pump()
    assert sent.outcome == Released()
    router.core.routes.remove(route)
    sent = anonymous.send(compose(b"x", to="broker.q"))
    router.pump()
    assert sent.outcome is None  # it waits for the receiver's outcome


# --- rows in management


def test_rows_of_a_routed_link_and_its_address() -> None:
    router, broker, client = routed()
    sender = client.sender("broker.q")
    end = broker.attached[0]
    assert isinstance(end, MemoryReceiver)
    end.grant(3)
    router.pump()
    sender.send(compose(b"x"))
    router.pump()
    rows = [link_row(router.core, each) for each in router.core.links.values()]
    assert {row["owningAddr"] for row in rows} == {"M0broker.q"}
    assert [row["peer"] for row in rows] == [rows[1]["identity"], rows[0]["identity"]]
    assert {row["capacity"] for row in rows} == {0}
    address = address_row(router.core, router.core.table.entries["Cbroker"])
    shown = (
        "distribution",
        "containerCount",
        "deliveriesIngress",
        "deliveriesEgress",
        "deliveriesEgressRouteContainer",
    )
    assert [address[name] for name in shown] == ["linkBalanced", 1, 1, 1, 1]
    assert router_row(router.core)["deliveriesEgressRouteContainer"] == 1


def test_why_shows_where_links_go() -> None:
    route = both()[0]
    router = MemoryRouter()
    routes(router, route)
    reported = explain(router.core, "broker.q")
    assert reported.treatment == "linkBalanced"
    assert reported.verdict == "senders are refused: broker is routed, and its container is not connected"
    router.connect(container_id="B", role="route-container")
    assert explain(router.core, "broker.q").verdict == "senders are routed by broker to container B on connection 1"
    assert explain(router.core, "other").treatment == "balanced"
    router.core.routes.add_remote("Dbroker", "R9")
    assert explain(router.core, "broker.q").verdict.endswith("; receivers are routed by broker to router R9")


# --- bounds


def test_a_receiver_that_settles_nothing_gets_so_many_and_no_more() -> None:
    router = MemoryRouter()
    routes(router, *both())
    broker = router.connect(container_id="B", role="route-container")
    receiver = router.connect(PeerTerms(max_unsettled=2)).receiver("broker.q", credit=1000)
    end = broker.attached[0]
    assert isinstance(end, MemorySender)
    for _ in range(5):
        end.send(compose(b"m"))
    router.pump()
    assert len(receiver.received) == 2
    receiver.received[0].settle()
    router.pump()
    assert len(receiver.received) == 3


def test_an_attach_too_large_for_the_container_costs_the_peer_its_link_only() -> None:
    router = MemoryRouter()
    routes(router, *both())
    broker = router.connect(
        container_id="B", role="route-container", client_limits=replace(LIMITS, max_frame_bytes=512)
    )
    client = router.connect()
    source = Source("broker.q", filter={Symbol("s"): "x" * 1000})
    receiver = client.receiver(source=source)
    assert receiver.error is not None
    assert receiver.error.condition == "amqp:connection:framing-error"
    assert client.receiver("broker.q").attach is not None
    assert broker.closed is None


def test_an_answer_too_large_for_the_peer_closes_only_that_link() -> None:
    router = MemoryRouter()
    routes(router, *both())
    broker = router.connect(container_id="B", role="route-container")
    broker.answers = False
    client = router.connect(client_limits=replace(LIMITS, max_frame_bytes=512))
    receiver = client.receiver("broker.q")
    broker.attached[0].answer(source=Source("broker.q", filter={Symbol("s"): "x" * 1000}))
    router.pump()
    assert receiver.error is not None
    assert client.closed is None
    assert broker.attached[0].detached is not None


def test_a_container_without_handles_left_refuses() -> None:
    router = MemoryRouter()
    routes(router, *both())
    broker = router.connect(container_id="B", role="route-container", client_limits=replace(LIMITS, handle_max=2))
    client = router.connect()
    links = [client.sender("broker.q") for _ in range(5)]
    assert [link.error is None for link in links] == [True, True, True, False, False]
    assert links[-1].error == Error("amqp:resource-limit-exceeded", "the container accepts no more links or sessions")
    links[0].detach()
    assert client.sender("broker.q").error is None
    assert broker.closed is None


def with_channels(count: int) -> tuple[MemoryRouter, MemoryClient]:
    """Return a router, and a container that allows sessions on so many channels besides that of the test."""
    router = MemoryRouter()
    routes(router, *both())
    limits = replace(LIMITS, channel_max=count)
    return router, router.connect(container_id="B", role="route-container", client_limits=limits)


def sessions_there(broker: MemoryClient) -> list[int]:
    """Return the session of each link that the router attached, as a number."""
    sessions = [end.link.session for end in broker.attached]
    return [sessions.index(each) for each in sessions]


def test_clients_have_sessions_of_their_own_as_many_as_the_container_allows() -> None:
    router, broker = with_channels(100)
    clients = [router.connect() for _ in range(103)]
    for _ in range(2):
        for client in clients:
            client.sender("broker.q")
    sessions = sessions_there(broker)
    assert sessions[:100] == [*range(100)]
    assert set(sessions[100:103]) < {*range(100)}
    assert sessions[103:] == sessions[:103], "each client keeps to its session, shared or not"
    assert broker.closed is None


def own_sessions(broker: MemoryClient) -> int:
    """Return the number of open sessions on the container's connection, besides the one of the test."""
    return len(broker.server.sessions()) - 1


@pytest.mark.parametrize("how", ["detach", "close", "session", "connection", "drop"])
def test_the_session_of_a_client_ends_with_its_last_link(how: str) -> None:
    """What a client leaves there, a transaction for example, ends with it; the next client begins anew."""
    router, broker, client = routed()
    links = [client.sender("broker.q"), client.receiver("broker.q")]
    assert own_sessions(broker) == 1
    if how in ("detach", "close"):
        links[0].detach(how == "close")
        assert own_sessions(broker) == 1
        links[1].detach(how == "close")
    elif how == "session":
        client.end()
    elif how == "connection":
        client.close()
    else:
        client.drop()
    assert all(end.detached is not None for end in broker.attached), "the detach comes before the end"
    assert own_sessions(broker) == 0
    assert [event.error for event in broker.ended] == [None]
    assert router.connect().sender("broker.q").attach is not None
    assert sessions_there(broker) == [0, 0, 2]
    assert broker.faults == []


def test_a_session_outlives_the_links_of_one_client_while_another_shares_it() -> None:
    router, broker = with_channels(1)
    first, second = router.connect(), router.connect()
    links = [client.sender("broker.q") for client in (first, second)]
    links[0].detach()
    assert own_sessions(broker) == 1
    assert second.sender("broker.q").attach is not None
    second.close()
    assert own_sessions(broker) == 0
    assert router.connect().sender("broker.q").error is None


def test_the_session_ends_when_the_container_has_answered_the_detach() -> None:
    _, broker, client = routed()
    broker.answers_detaches = False
    sender = client.sender("broker.q")
    sender.detach()
    (end,) = broker.attached
    assert end.detached is not None
    assert own_sessions(broker) == 1
    again = client.sender("broker.q")
    end.detach()
    assert sender.detached is not None
    assert own_sessions(broker) == 1, "the client has another link by now"
    broker.answers_detaches = True
    again.detach()
    assert own_sessions(broker) == 0


def test_a_container_that_answers_no_detach_gets_the_end_of_the_session() -> None:
    router, broker, client = routed()
    broker.answers_detaches = False
    sender = client.sender("broker.q")
    sender.detach()
    router.core.watch_links(PATIENCE_S)
    router.pump()
    assert sender.detached is not None
    assert own_sessions(broker) == 0
    broker.attached[0].detach()
    assert (broker.faults, broker.closed, broker.server.link_count) == ([], None, 0)


@pytest.mark.parametrize("how", ["detach", "drop"])
def test_a_client_that_gives_up_before_the_session_is_begun_leaves_none(how: str) -> None:
    """What it has detached itself goes to the container all the same."""
    router, broker, client = routed()
    broker.stalled = True
    sender = client.sender("broker.q", pump=False)
    client.write()
    if how == "detach":
        sender.detach()
    else:
        client.drop()
    broker.stalled = False
    router.pump()
    assert own_sessions(broker) == 0
    assert [end.detached is not None for end in broker.attached] == ([True] if how == "detach" else [])
    assert router.connect().sender("broker.q").attach is not None
    assert broker.faults == client.faults == []


def test_a_link_that_does_not_fit_leaves_no_session() -> None:
    router = MemoryRouter()
    routes(router, *both())
    small = replace(LIMITS, max_frame_bytes=512)
    broker = router.connect(container_id="B", role="route-container", client_limits=small)
    for _ in range(2):
        assert router.connect().receiver(source=Source("broker.q", filter={Symbol("s"): "x" * 1000})).error is not None
        assert own_sessions(broker) == 0


@pytest.mark.parametrize("first", ["client", "container"])
def test_the_end_of_the_session_by_the_container_meets_the_end_by_the_router(first: str) -> None:
    """Both in the same moment, in either order."""
    router, broker, client = routed()
    sender = client.sender("broker.q")
    session = broker.attached[0].link.session
    broker.stalled = True
    if first == "client":
        client.close()
        session.end(Error("a:b", "container"))
    else:
        session.end(Error("a:b", "container"))
        sender.link.detach(True)
    broker.stalled = False
    router.pump()
    assert own_sessions(broker) == 0
    assert router.connect().sender("broker.q").attach is not None
    assert (broker.closed, broker.faults) == (None, [])


def test_a_container_that_allows_one_more_session_gets_only_one() -> None:
    router = MemoryRouter()
    routes(router, *both())
    limits = replace(LIMITS, channel_max=1)
    broker = router.connect(container_id="B", role="route-container", client_limits=limits, limits=limits)
    for _ in range(3):
        assert router.connect().sender("broker.q").error is None
    assert len({id(end.link.session) for end in broker.attached}) == 1


def test_a_receiver_that_takes_nothing_in_holds_up_no_other() -> None:
    """The window of its session closes, and the bytes kept for it are bounded; links of other clients go on."""
    router = MemoryRouter()
    routes(router, *both())
    limits = EngineLimits(session_window_bytes=65536, max_frame_bytes=4096, idle_timeout_s=0.0)
    broker = router.connect(container_id="B", role="route-container", limits=limits, client_limits=LIMITS)
    stalled, other = router.connect(), router.connect()
    stalled.receiver("broker.q", credit=1000)
    receiver = other.receiver("broker.q", credit=1000)
    stalled.stalled = True
    first, second = broker.attached
    assert isinstance(first, MemorySender)
    assert isinstance(second, MemorySender)
    for _ in range(200):
        first.send(compose(b"x" * 10_000))
    router.pump()
    for _ in range(50):
        second.send(compose(b"y" * 10_000))
    router.pump()
    assert len(receiver.bodies) == 50
    assert router.held_bytes() <= 65536 + 10_000

"""Auto links (routing.md 6.1, 6.2): attached when their container connects, tried again when they fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trouter.core.autolinks import Activation, AutoLink, AutoLinkRule
from trouter.core.observer import RouterObserver
from trouter.core.routes import LinkRoute
from trouter.core.table import AddressRule
from trouter.testing.memory import LIMITS, MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.wire.performatives import Accepted, Error, Released, Source, Target

WAYPOINT = AddressRule("q", is_prefix=True, ingress_phase=0, egress_phase=1)
IN = AutoLinkRule("q", "in", phase=1, container_id="B", name="in")
OUT = AutoLinkRule("q", "out", phase=0, container_id="B", name="out")


class Observer(RouterObserver):
    """An observer that records failures, and retries them when the test calls it."""

    def __init__(self) -> None:
        self.due: list[Activation] = []
        self.waits: list[float] = []

    def note_failed(self, activation: Activation) -> None:
        self.due.append(activation)
        self.waits.append(activation.auto.next_retry_s())

    def note_idle(self, activation: Activation) -> None:
        if activation in self.due:
            self.due.remove(activation)

    def retry(self) -> None:
        due, self.due = self.due, []
        for each in due:
            each.retry_link()


def room(*rules: AutoLinkRule, addresses: tuple[AddressRule, ...] = (WAYPOINT,), **fields: Any) -> Room:
    return Room(rules, addresses, fields)


class Room:
    """A router with auto links, its observer, and a broker called B if the test needs one."""

    def __init__(self, rules: tuple[AutoLinkRule, ...], addresses: tuple[AddressRule, ...], fields: Any) -> None:
        self.router = MemoryRouter(addresses, **fields)
        self.observer = self.router.core.observer = Observer()
        self.autos: list[AutoLink] = [self.router.core.auto_links.add_rule(rule) for rule in rules]

    def broker(self, *, answers: bool = True, **fields: Any) -> MemoryClient:
        fields.setdefault("container_id", "B")
        made = self.router.connect(**fields)
        made.answers = answers
        self.router.core.container_came(replace_role(made))
        self.router.pump()
        return made


def replace_role(client: MemoryClient) -> Any:
    client.terms = replace(client.terms, role="route-container")
    return client.as_container()


def test_links_are_attached_when_the_container_comes() -> None:
    here = room(IN, OUT)
    assert [auto.state for auto in here.autos] == ["inactive", "inactive"]
    broker = here.broker()
    sends, receives = broker.attached
    assert isinstance(sends, MemorySender)
    assert isinstance(receives, MemoryReceiver)
    assert sends.attach is not None
    assert receives.attach is not None
    assert sends.attach.source == Source("q", expiry_policy="link-detach")
    assert sends.attach.target == Target(expiry_policy="link-detach")
    assert receives.attach.target == Target("q", expiry_policy="link-detach")
    assert sends.link.name.startswith("qdlink.")
    assert len(sends.link.name) == len("qdlink.") + 15
    assert [auto.state for auto in here.autos] == ["active", "active"]
    assert sorted(here.router.core.links) == [auto.identity for auto in here.autos]


def test_they_are_on_one_session_apart_from_routed_links() -> None:
    here = room(IN, OUT)
    broker = here.broker()
    assert broker.attached[0].link.session is broker.attached[1].link.session


def end_session(end: MemorySender | MemoryReceiver, error: Error) -> None:
    """End the session of a link, as a broker does."""
    session: Any = end.link.session
    session.end(error)


def test_a_broker_that_ends_the_session_for_one_queue_takes_no_other_along_twice() -> None:
    """RabbitMQ ends the session, and not the link, when a queue is not there."""
    here = room(AutoLinkRule("q1", "out", container_id="B"), AutoLinkRule("q2", "out", container_id="B"))
    broker = here.broker()
    missing = Error("amqp:not-found", "NOT_FOUND - no queue 'q2' in vhost '/'")
    end_session(broker.attached[0], missing)
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["failed", "failed"]
    assert here.autos[1].last_error == "NOT_FOUND - no queue 'q2' in vhost '/'"
    before = len(broker.attached)
    here.observer.retry()
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["active", "active"]
    first, second = broker.attached[before:]
    assert first.link.session is not second.link.session
    end_session(second, missing)
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["active", "failed"]
    here.observer.retry()
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["active", "active"]


@pytest.mark.parametrize("clients", [2, 3, 9])
def test_clients_leave_a_session_for_an_auto_link_that_has_lost_its_own(clients: int) -> None:
    """The broker allows three sessions besides that of the test: one for the auto links, one for the first client."""
    here = room(AutoLinkRule("q1", "out", container_id="B"), AutoLinkRule("q2", "out", container_id="B"))
    broker = here.broker(client_limits=replace(LIMITS, channel_max=3))
    containers = here.router.core.containers.matching("B", "")
    here.router.core.routes.add(LinkRoute("broker", "in", is_prefix=True, container_id="B"), iter(containers))
    for _ in range(clients - 1):
        assert here.router.connect().sender("broker.q").error is None
    assert len(broker.attached) == len(here.autos) + clients - 1
    end_session(broker.attached[0], Error("amqp:not-found", "no queue 'q2'"))
    here.router.pump()
    assert here.router.connect().sender("broker.q").error is None
    here.observer.retry()
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["active", "active"]
    assert (broker.closed, broker.faults) == (None, [])


def test_a_message_takes_its_way_through_the_broker() -> None:
    here = room(IN, OUT)
    broker = here.broker()
    sends, receives = broker.attached
    assert isinstance(sends, MemorySender)
    assert isinstance(receives, MemoryReceiver)
    receives.grant(10)
    client = here.router.connect()
    receiver, sender = client.receiver("q", credit=5), client.sender("q")
    sent = sender.send(compose(b"job"))
    here.router.pump()
    assert receives.bodies == [b"job"]
    receives.received[0].settle()
    here.router.pump()
    assert sent.outcome == Accepted()
    forwarded = sends.send(compose(b"job"))
    here.router.pump()
    assert receiver.bodies == [b"job"]
    receiver.received[0].settle()
    here.router.pump()
    assert forwarded.outcome == Accepted()
    record = here.router.core.table.entries["M1q"]
    assert (record.counters.ingress_container, record.counters.egress) == (1, 1)
    assert here.router.core.table.entries["M0q"].counters.egress_container == 1


def test_senders_get_credit_from_the_broker_and_the_broker_gets_credit_from_consumers() -> None:
    here = room(IN, OUT)
    client = here.router.connect()
    sender = client.sender("q")
    assert sender.credit == 0
    broker = here.broker()
    sends = broker.attached[0]
    assert isinstance(sends, MemorySender)
    assert (sender.credit, sends.credit) == (250, 0)
    receiver = client.receiver("q")
    here.router.pump()
    assert sends.credit == 250
    receiver.detach()
    late = sends.send(compose(b"x"))
    here.router.pump()
    assert late.outcome == Released()
    assert sends.drains == [249]


@pytest.mark.parametrize("direction", ["in", "out"])
def test_the_broker_has_a_name_of_its_own_for_the_address(direction: str) -> None:
    here = room(AutoLinkRule("q", direction, external_address="jobs/q", container_id="B"), addresses=())
    (end,) = here.broker().attached
    attach = end.attach
    assert attach is not None
    terminus = attach.source if direction == "in" else attach.target
    assert isinstance(terminus, Source | Target)
    assert terminus.address == "jobs/q"
    assert "M0q" in here.router.core.table.entries


def test_a_fallback_takes_messages_without_a_consumer() -> None:
    rule = AddressRule("q", is_prefix=True, enable_fallback=True)
    here = room(AutoLinkRule("q", "out", container_id="B", fallback=True), addresses=(rule,))
    (end,) = here.broker().attached
    assert isinstance(end, MemoryReceiver)
    end.grant(5)
    here.router.pump()
    client = here.router.connect()
    client.sender("q").send(compose(b"x"))
    here.router.pump()
    assert end.bodies == [b"x"]


def test_an_address_without_configuration_is_balanced() -> None:
    here = room(AutoLinkRule("q", "out", container_id="B"), addresses=(), default_distribution="unavailable")
    here.broker()
    assert here.router.core.table.entries["M0q"].treatment == "balanced"


def test_an_unavailable_default_leaves_the_addresses_of_auto_links() -> None:
    """The addresses exist before their container connects, and no longer than they are configured."""
    here = room(AutoLinkRule("q", "out", container_id="B"), addresses=(), default_distribution="unavailable")
    client = here.router.connect()
    sender = client.sender("q")
    assert (sender.error, client.receiver("q").error) == (None, None)
    client.drop()
    sent = here.router.connect().sender().send(compose(b"x", to="q"))
    here.router.pump()
    assert sent.outcome == Released()
    here.router.core.auto_links.remove_rule(here.autos[0])
    assert here.router.connect().sender("q").error is not None


def test_an_address_that_is_unavailable_fails_with_a_reason() -> None:
    here = room(IN, addresses=(AddressRule("q", distribution="unavailable"),))
    broker = here.broker()
    assert broker.attached == []
    (auto,) = here.autos
    assert (auto.state, auto.last_error) == ("failed", "the address is unavailable by configuration")


def test_each_connection_of_a_container_has_its_links() -> None:
    here = room(OUT)
    first, second = here.broker(), here.broker()
    assert (len(first.attached), len(second.attached)) == (1, 1)
    assert len(here.router.core.table.entries["M0q"].forwarder.consumers) == 2
    first.drop()
    assert here.autos[0].state == "active"
    second.drop()
    assert here.autos[0].state == "inactive"
    assert here.router.core.links == {}


def test_a_link_that_the_peer_refuses_is_attached_again() -> None:
    here = room(OUT)
    broker = here.broker(answers=False)
    (auto,) = here.autos
    assert auto.state == "attaching"
    broker.attached[0].answer(target=None)
    here.router.pump()
    assert auto.state == "attaching"  # no address: the refusal follows
    broker.attached[0].detach(True, Error("amqp:not-found", "Node not found"))
    assert (auto.state, auto.last_error, auto.identity) == ("failed", "Node not found", 0)
    assert here.observer.waits == [2.0]
    broker.answers = True
    here.observer.retry()
    here.router.pump()
    assert (auto.state, auto.last_error) == ("active", "")
    broker.attached[1].detach(False)
    assert (auto.state, auto.last_error) == ("failed", "")
    assert here.observer.waits == [2.0, 5.0]
    here.observer.retry()
    here.router.pump()
    assert auto.state == "active"


def test_a_session_that_the_peer_ends_is_a_failure_of_its_links() -> None:
    here = room(IN, OUT)
    broker = here.broker()
    broker.end(broker.attached[0].link.session)
    assert [auto.state for auto in here.autos] == ["failed", "failed"]
    here.observer.retry()
    here.router.pump()
    assert [auto.state for auto in here.autos] == ["active", "active"]
    assert len(broker.attached) == 4


def test_nothing_is_tried_again_on_a_connection_that_is_gone() -> None:
    here = room(OUT)
    broker = here.broker()
    broker.attached[0].detach()
    due = list(here.observer.due)
    broker.drop()
    assert here.observer.due == []
    again = here.broker()
    for each in due:
        each.retry_link()
    here.router.pump()
    assert len(again.attached) == 1
    assert here.observer.waits == [2.0]
    again.attached[0].detach()
    assert here.observer.waits == [2.0, 5.0]


def test_a_deleted_auto_link_is_detached_without_an_error() -> None:
    here = room(IN, OUT)
    broker = here.broker()
    for auto in here.autos:
        here.router.core.auto_links.remove_rule(auto)
    here.router.pump()
    for end in broker.attached:
        assert end.detached is not None
        assert (end.detached.closed, end.error) == (True, None)
    assert here.router.core.links == {}
    assert here.observer.due == []


def test_an_auto_link_deleted_while_waiting_is_not_attached_again() -> None:
    here = room(OUT)
    broker = here.broker()
    broker.attached[0].detach()
    (due,) = here.observer.due
    here.router.core.auto_links.remove_rule(here.autos[0])
    due.retry_link()
    here.router.pump()
    assert len(broker.attached) == 1


def test_one_created_late_is_attached_at_once() -> None:
    here = room()
    broker = here.broker()
    here.router.core.auto_links.add_rule(OUT)
    here.router.pump()
    assert len(broker.attached) == 1


def test_a_peer_without_handles_left_fails_the_rest() -> None:
    rules = tuple(replace(OUT, address=f"q.{number}") for number in range(4))
    here = room(*rules)
    broker = here.broker(client_limits=replace(LIMITS, handle_max=1))
    assert [auto.state for auto in here.autos] == ["active", "active", "failed", "failed"]
    assert here.autos[3].last_error == "the container accepts no more links or sessions"
    broker.attached[0].detach()
    here.observer.retry()
    here.router.pump()
    assert sorted(auto.state for auto in here.autos) == ["active", "active", "failed", "failed"]


def test_one_without_a_container_is_never_attached() -> None:
    here = room(AutoLinkRule("q", "in"))
    assert here.broker().attached == []
    assert here.autos[0].state == "inactive"

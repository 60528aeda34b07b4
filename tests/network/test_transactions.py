"""Transactions of a broker through link routes, over two routers: commit, rollback, and a connection lost between.

The broker is strict about part 4 of AMQP 1.0, among it that a transaction belongs to the session of its coordinator.
Where a session matters it has the habits of qpidd too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from proton import Delivery, Described, Message, Terminus, symbol, ulong
from proton.reactor import LinkOption

from tests.brokers import DECLARE, DECLARED, DISCHARGE, TRANSACTIONAL
from tests.e2e.by_proton import Client, Ear, said
from tests.networks import client_port, network, until_routed
from tests.routers import DEADLINE_S, RunningRouter
from tests.transactions import TransactionalBroker, transactional_broker

pytestmark = pytest.mark.slow

ACCEPTED = Described(ulong(0x24), [])


def _routes(connection: str) -> str:
    return "".join(
        f"linkRoute {{ prefix: {prefix}, direction: {way}, connection: {connection} }}\n"
        for prefix, ways in (("accounts", ("in", "out")), ("$coordinator", ("in",)))
        for way in ways
    )


@contextmanager
def _served(folder: Path) -> Iterator[tuple[TransactionalBroker, dict[str, RunningRouter]]]:
    """Run a broker, the router A beside it, and the router B beside the client."""
    with transactional_broker() as there:
        dial = (
            f"connector {{ name: c, role: route-container, host: 127.0.0.1, port: {there.port}, "
            "saslMechanisms: ANONYMOUS }\n"
        )
        with network(folder, {"A": (), "B": ("A",)}, {"A": dial + _routes("c")}) as routers:
            for key in ("Caccounts", "Daccounts", "C$coordinator"):
                until_routed(routers["B"], key)
            yield there, routers


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TransactionalBroker, dict[str, RunningRouter]]]:
    with _served(tmp_path_factory.mktemp("network")) as made:
        yield made


@pytest.fixture
def there(served: tuple[TransactionalBroker, dict[str, RunningRouter]]) -> TransactionalBroker:
    served[0].do(lambda broker: served[0].forget())
    return served[0]


@pytest.fixture
def routers(served: tuple[TransactionalBroker, dict[str, RunningRouter]]) -> dict[str, RunningRouter]:
    return served[1]


@pytest.fixture
def client(routers: dict[str, RunningRouter]) -> Iterator[Client]:
    made = Client(Ear(), client_port(routers["B"]))
    yield made
    made.close()


class _Coordinator(LinkOption):
    def apply(self, link: Any) -> None:
        link.target.type = Terminus.COORDINATOR
        link.target.capabilities.put_object(symbol("amqp:local-transactions"))


class Controller:
    """A client's link to the coordinator."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._link = client.create_sender(None, options=_Coordinator())

    def declare(self) -> bytes:
        """Declare a transaction; return its id."""
        declared = self._ask(Described(ulong(DECLARE), [None]))
        assert declared.remote_state == DECLARED
        return bytes(declared.remote.data[0])

    def discharge(self, name: bytes, failed: bool = False) -> str | None:
        """Commit a transaction, or roll it back; return the condition if the coordinator refuses."""
        answer = self._ask(Described(ulong(DISCHARGE), [name, failed]))
        if answer.remote_state == Delivery.ACCEPTED:
            return None
        reason = said(answer.remote.condition)
        assert reason is not None
        return reason.condition

    def _ask(self, body: Described) -> Any:
        delivery: Any = self._link.link.send(Message(body=body, inferred=True))
        self._client.wait(lambda: delivery.settled)
        return delivery

    def close(self) -> None:
        self._link.close()


def post(client: Client, sender: Any, name: bytes, body: str | int) -> None:
    """Send a message in a transaction, and wait for its provisional outcome."""
    delivery = sender.link.delivery(str(body))
    delivery.local.data = [name]
    delivery.update(TRANSACTIONAL)
    sender.link.stream(Message(body=body).encode())
    sender.link.advance()
    client.wait(lambda: delivery.settled)
    assert delivery.remote_state == TRANSACTIONAL
    assert bytes(delivery.remote.data[0]) == name


def retire(client: Client, receiver: Any, name: bytes) -> object:
    """Receive a message and accept it in a transaction; return its body once the broker has enlisted it."""
    message = receiver.receive(timeout=DEADLINE_S)
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.data = [name, ACCEPTED]
    delivery.update(TRANSACTIONAL)
    client.wait(lambda: delivery.remote_state == TRANSACTIONAL)
    return message.body


def bodies(there: TransactionalBroker, queue: str) -> list[object]:
    return [message.body for message in there.queues[queue]]


def test_what_was_sent_is_there_after_the_commit_and_not_before(client: Client, there: TransactionalBroker) -> None:
    control, sender = Controller(client), client.create_sender("accounts.in")
    name = control.declare()
    for number in range(3):
        post(client, sender, name, number)
    assert bodies(there, "accounts.in") == []
    assert control.discharge(name) is None
    assert bodies(there, "accounts.in") == [0, 1, 2]


def test_what_was_sent_is_forgotten_by_a_rollback(client: Client, there: TransactionalBroker) -> None:
    control, sender = Controller(client), client.create_sender("accounts.in")
    name = control.declare()
    post(client, sender, name, "never")
    assert control.discharge(name, failed=True) is None
    assert bodies(there, "accounts.in") == []
    assert (there.committed, there.rolled_back) == (0, 1)


def test_two_transactions_at_once_are_kept_apart(client: Client, there: TransactionalBroker) -> None:
    control, sender = Controller(client), client.create_sender("accounts.in")
    first, second = control.declare(), control.declare()
    post(client, sender, first, "first")
    post(client, sender, second, "second")
    assert control.discharge(second) is None
    assert control.discharge(first, failed=True) is None
    assert bodies(there, "accounts.in") == ["second"]


@pytest.mark.parametrize("failed", [False, True], ids=["committed", "rolled back"])
def test_a_message_moves_from_one_queue_to_another_or_not_at_all(
    client: Client, there: TransactionalBroker, failed: bool
) -> None:
    there.do(lambda b: b.put("accounts.in", Message(body="money")))
    control, sender = Controller(client), client.create_sender("accounts.out")
    receiver = client.create_receiver("accounts.in", credit=1)
    name = control.declare()
    assert retire(client, receiver, name) == "money"
    post(client, sender, name, "money")
    receiver.close()
    assert control.discharge(name, failed=failed) is None
    assert there.dispositions == []
    assert bodies(there, "accounts.in") == (["money"] if failed else [])
    assert bodies(there, "accounts.out") == ([] if failed else ["money"])


def test_a_commit_that_the_coordinator_refuses_is_rejected_with_its_reason(
    client: Client, there: TransactionalBroker
) -> None:
    control, sender = Controller(client), client.create_sender("accounts.in")
    name = control.declare()
    post(client, sender, name, "never")
    there.refuses_next_commit = True
    assert control.discharge(name) == "amqp:transaction:rollback"
    assert control.discharge(name) == "amqp:transaction:unknown-id"
    assert bodies(there, "accounts.in") == []


def test_a_message_of_an_unknown_transaction_ends_its_link_with_the_brokers_reason(client: Client) -> None:
    sender = client.create_sender("accounts.in")
    delivery: Any = sender.link.delivery("x")
    delivery.local.data = [b"no such transaction"]
    delivery.update(TRANSACTIONAL)
    sender.link.stream(Message(body="x").encode())
    sender.link.advance()
    assert client.refusal_of(lambda c: c.wait(lambda: False)).condition == "amqp:transaction:unknown-id"


def test_the_end_of_the_coordinators_link_rolls_back(client: Client, there: TransactionalBroker) -> None:
    control, sender = Controller(client), client.create_sender("accounts.in")
    post(client, sender, control.declare(), "never")
    control.close()
    there.wait(lambda b: there.abandoned == 1)
    assert bodies(there, "accounts.in") == []


@pytest.mark.parametrize("lost", ["client", "A", "B"])
def test_a_connection_that_is_lost_before_the_commit_rolls_back(tmp_path: Path, lost: str) -> None:
    """The client's connection is cut, or a router on the way is killed: the broker has all of the commit or nothing."""
    with _served(tmp_path) as (there, routers):
        there.do(lambda b: b.put("accounts.in", Message(body="money")))
        client = Client(Ear(), client_port(routers["B"]))
        control, sender = Controller(client), client.create_sender("accounts.out")
        receiver = client.create_receiver("accounts.in", credit=1)
        done = control.declare()
        post(client, sender, done, "before")
        assert control.discharge(done) is None
        name = control.declare()
        assert retire(client, receiver, name) == "money"
        post(client, sender, name, "money")
        if lost == "client":
            client.connection.transport._selectable._delegate.close()
        else:
            routers[lost].process.send_signal(signal.SIGKILL)
            routers[lost].wait()
        there.wait(lambda b: there.abandoned == 1)
        there.wait(lambda b: bodies(there, "accounts.in") == ["money"])
        assert bodies(there, "accounts.out") == ["before"]
        assert there.transactions == {}


ONE, OUTLIVES = "one transaction a session", "transactions outlive their links"


@pytest.fixture(params=[(ONE,), (OUTLIVES,), (ONE, OUTLIVES)], ids=" and ".join)
def habits(there: TransactionalBroker, request: pytest.FixtureRequest) -> TransactionalBroker:
    """The broker with one habit of qpidd or with both."""
    there.one_a_session, there.outlives_its_link = ONE in request.param, OUTLIVES in request.param
    return there


@pytest.mark.parametrize("how", ["detaches", "closes", "cut"])
@pytest.mark.parametrize("place", "AB")
def test_a_transaction_left_open_ends_with_its_client(
    routers: dict[str, RunningRouter], habits: TransactionalBroker, place: str, how: str
) -> None:
    """The next clients have transactions again, and nothing of the first one is committed."""
    habits.do(lambda b: b.put("accounts.in", Message(body="money")))
    client = Client(Ear(), client_port(routers[place]))
    control, sender = Controller(client), client.create_sender("accounts.out")
    receiver = client.create_receiver("accounts.in", credit=1)
    name = control.declare()
    assert retire(client, receiver, name) == "money"
    post(client, sender, name, "never")
    if how == "detaches":
        for link in (sender, receiver, control):
            link.close()
    elif how == "closes":
        client.close()
    else:
        client.connection.transport._selectable._delegate.close()
    habits.wait(lambda _: habits.abandoned == 1)
    for _ in range(2):
        other = Client(Ear(), client_port(routers[place]))
        control, sender = Controller(other), other.create_sender("accounts.out")
        name = control.declare()
        post(other, sender, name, "other")
        assert control.discharge(name) is None
        other.close()
    assert bodies(habits, "accounts.out") == ["other", "other"]
    assert bodies(habits, "accounts.in") == ["money"]
    if how == "detaches":
        client.close()


def test_clients_have_transactions_of_their_own(routers: dict[str, RunningRouter], there: TransactionalBroker) -> None:
    """Many clients at once, each with one: all of them commit only their own work."""
    there.one_a_session = True
    clients = [Client(Ear(), client_port(routers["AB"[number % 2]])) for number in range(40)]
    open_ones: list[tuple[Controller, bytes]] = []
    for number, client in enumerate(clients):
        control, sender = Controller(client), client.create_sender("accounts.in")
        name = control.declare()
        post(client, sender, name, number)
        open_ones.append((control, name))
    for number, (control, name) in enumerate(open_ones):
        assert control.discharge(name, failed=number % 3 == 0) is None
    assert bodies(there, "accounts.in") == [number for number in range(40) if number % 3]
    for client in clients:
        client.close()

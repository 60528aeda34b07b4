"""Clients that close their routed links and their connection at once, near the container and far from it.

The container answers the error of a link as handlers of Proton often do: it closes the connection, which all clients of
the router share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from tests.brokers import Broker, served
from tests.e2e.peer import Peer, message
from tests.interop.agents import agent
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, network, until_routed
from tests.routers import RunningRouter, running
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Attach,
    Close,
    Detach,
    End,
    Flow,
    Performative,
    Source,
    Target,
    Transfer,
    encode_performative,
)

pytestmark = pytest.mark.interop

ROUTES = """
linkRoute {{ prefix: b, direction: in, connection: c }}
linkRoute {{ prefix: b, direction: out, connection: c }}
connector {{ host: 127.0.0.1, port: {port}, role: route-container, name: c, saslMechanisms: ANONYMOUS }}
"""
#: The routers to which the clients connect: that of the container, the next one, and an edge router of each of them.
PLACES = ("B", "A", "EB", "EA")
COUNT = 3
NUMBERS = count()


class Offended(Broker):
    """A container that closes its connection if a link ends with an error."""

    def on_link_error(self, event: Any) -> None:
        super().on_link_error(event)
        event.connection.close()


@pytest.fixture(scope="module")
def there() -> Iterator[Broker]:
    made = Offended("B")
    with served(made):
        yield made


@pytest.fixture(scope="module")
def routers(there: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder = tmp_path_factory.mktemp("departures")
    more = {"A": EDGE_LISTENER, "B": EDGE_LISTENER + ROUTES.format(port=there.port)}
    with network(folder, {"A": (), "B": ("A",)}, more) as started, ExitStack() as stack:
        for above in ("A", "B"):
            until_routed(started[above], "Db")
        for name, above in (("EA", "A"), ("EB", "B")):
            started[name] = stack.enter_context(running(edge(name, [edge_port(started[above])]), folder))
            started[name].wait_for_line("to interior established")
        yield started


@pytest.fixture(params=PLACES)
def port(routers: dict[str, RunningRouter], request: pytest.FixtureRequest) -> int:
    return client_port(routers[request.param])


@pytest.fixture
def name() -> str:
    return f"sub{next(NUMBERS)}"


def heard(there: Broker, name: str, wanted: int) -> list[tuple[bool, str | None]]:
    """Wait for ``wanted`` detaches of the links called so; return whether each closed the link, and its condition."""

    def found(broker: Broker) -> list[tuple[bool, str | None]]:
        return [(closed, why) for link, closed, why in broker.detached if link.startswith(f"{name}-")]

    there.wait(lambda broker: len(found(broker)) >= wanted)
    return found(there)


def octets(*performatives: Performative) -> bytes:
    return b"".join(frame(0, encode_performative(each)) for each in performatives)


def subscription(name: str, handle: int = 0) -> Attach:
    source = Source("b.news", durable=2, expiry_policy="never")
    return Attach(f"{name}-{handle}", handle, True, source=source, target=Target())


@pytest.mark.parametrize("client", ["rhea", "proton"])
def test_a_stock_client_gives_its_durable_subscriptions_back(there: Broker, port: int, name: str, client: str) -> None:
    with agent(client, "leave", port, address="b.news", name=name, count=COUNT) as leaving:
        leaving.result()
    assert heard(there, name, COUNT) == [(True, None)] * COUNT


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("last", [(End(),), (Close(),), (End(), Close())], ids=["end", "close", "end-close"])
@pytest.mark.parametrize("at_once", [True, False])
def test_links_are_detached_as_the_client_said(
    there: Broker, port: int, name: str, last: tuple[Performative, ...], closed: bool, at_once: bool
) -> None:
    """Without ``at_once`` the octets come one by one, and the socket is closed behind the last."""
    with Peer(port) as peer:
        for handle in range(COUNT):
            peer.attach(subscription(name, handle))
        sent = octets(*(Detach(handle, closed) for handle in range(COUNT)), *last)
        for piece in [sent] if at_once else [bytes((octet,)) for octet in sent]:
            peer.raw(piece)
    assert heard(there, name, COUNT) == [(closed, None)] * COUNT


def test_a_link_that_is_attached_and_detached_at_once_is_given_back(there: Broker, port: int, name: str) -> None:
    with Peer(port) as peer:
        peer.raw(octets(subscription(name), Detach(0, True), End(), Close()))
    assert heard(there, name, 1) == [(True, None)]


def test_messages_before_the_detach_arrive(there: Broker, port: int, name: str) -> None:
    before = len(there.received)
    with Peer(port) as peer:
        attach = Attach(f"{name}-0", 0, False, source=Source(), target=Target("b.q"), initial_delivery_count=0)
        peer.attach(attach)
        while not peer.expect(Flow).link_credit:
            pass
        whole, part = message(b"one"), message(b"x" * 30_000)
        sent = [
            (Transfer(0, 0, b"0", 0), whole),
            (Transfer(0, 1, b"1", 0, more=True), part[:10_000]),
            (Transfer(0, more=True), part[10_000:20_000]),
            (Transfer(0), part[20_000:]),
        ]
        transfers = b"".join(frame(0, encode_performative(each) + payload) for each, payload in sent)
        peer.raw(transfers + octets(Detach(0, True), End(), Close()))
    assert heard(there, name, 1) == [(True, None)]
    there.wait(lambda broker: len(broker.received) >= before + 2)
    bodies: list[Any] = [each.body for each in there.received[before:]]
    assert list(map(len, bodies)) == [3, 30_000]

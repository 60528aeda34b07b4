"""The tests' own broker: a test that waits for it fails at once when its thread ends, and with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.brokers import Broker, served
from tests.transactions import TransactionalBroker
from trouter.client import ConnectionClosed, Message, connect


class _Faulty(Broker):
    def on_message(self, event: Any) -> None:
        raise KeyError("an outcome that nobody awaits")


@pytest.mark.parametrize("kind", [Broker, TransactionalBroker])
def test_an_order_that_fails_fails_its_test(kind: type[Broker]) -> None:
    made = kind("B")

    def fail(_: Broker) -> None:
        raise ValueError("an order that fails")

    with pytest.raises(AssertionError, match="an order that fails"), served(made):
        made.do(fail)


async def _send(port: int) -> None:
    async with connect(f"amqp://127.0.0.1:{port}") as connection, connection.open_sender("x") as sender:
        await sender.send(Message(b"one"))


@pytest.fixture
def faulty() -> Iterator[Broker]:
    """Run a broker whose thread ends with the first message; the end of the block fails, too."""
    made = _Faulty("B")
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(AssertionError, match="an outcome that nobody awaits"))
        stack.enter_context(served(made))
        yield made


async def test_a_handler_that_fails_ends_a_wait_and_closes_the_connections(faulty: Broker) -> None:
    with pytest.raises(ConnectionClosed):
        await _send(faulty.port)
    with pytest.raises(AssertionError, match="an outcome that nobody awaits"):
        faulty.wait(lambda broker: broker.received)

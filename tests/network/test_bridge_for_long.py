"""Two brokers joined by auto links: a ledger of all messages while each broker and the router is killed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.network.test_rabbitmq import addresses, auto_links
from tests.rabbitmq import V3, V4, RabbitMQ, Version, connector, needs_rabbitmq, needs_rabbitmq4, nodes
from tests.routers import DEADLINE_S, running
from tests.waiting import until
from trouter.client import ACCEPTED, Message, connect
from trouter.wire.message import Header

pytestmark = [pytest.mark.long, pytest.mark.interop, needs_rabbitmq, needs_rabbitmq4]

QUEUE: Final = "orders"
#: Messages that wait in the source before each of the three kills.
PORTION: Final = 7_000
COUNT: Final = 3 * PORTION
IN_FLIGHT: Final = 500
#: Messages of a portion that pass before the kill.
BEFORE: Final = 500
#: The body of the message that follows all others.
END: Final = -1


class Bridge:
    """A source broker, a target broker, and the router between them, which may each be killed."""

    def __init__(self, source: RabbitMQ, target: RabbitMQ, folder: Path, stack: ExitStack) -> None:
        self.source, self.target = source, target
        self._folder, self._stack = folder, stack
        self._text = f"""
            router {{ mode: interior, id: Between }}
            listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
            {connector("source", source)}
            {connector("target", target)}
            autoLink {{ addr: bridge, externalAddr: {source.address(QUEUE)}, dir: in, phase: 0, connection: source }}
            autoLink {{ addr: bridge, externalAddr: {target.address(QUEUE)}, dir: out, connection: target }}
        """

    def start_router(self) -> None:
        """Start the router, and wait until both auto links are active."""
        self.router = self._stack.enter_context(running(self._text, self._folder))
        self.until_active()

    def stop_router(self) -> None:
        """Stop the router as an operator does."""
        assert self.router.stop() == 0

    def kill_router(self) -> None:
        """Kill the router; another one takes its place."""
        self.router.process.send_signal(signal.SIGKILL)
        self.router.wait()
        self.start_router()

    def kill(self, broker: RabbitMQ) -> None:
        """Kill a broker, wait until its auto link is inactive, and start it again."""
        broker.kill()
        until(lambda: "inactive" in {state for state, _ in auto_links(self.router).values()}, "its end")
        broker.start()
        self.until_active()

    def until_active(self) -> None:
        """Wait until both auto links are active."""
        until(lambda: set(auto_links(self.router).values()) == {("active", "")}, "auto links")

    def passed(self) -> int:
        """Return the count of messages that this router sent to the target."""
        return addresses(self.router, "bridge").get(0, (0, 0, 0))[2]

    def until_passed(self, count: int) -> None:
        """Wait until this router has passed ``count`` messages on."""
        until(lambda: self.passed() >= count, f"{count:,} messages")


async def fill(broker: RabbitMQ, bodies: range) -> int:
    """Send these numbers to the queue; return the count of those that the broker accepted."""
    accepted = 0
    async with (
        connect(f"amqp://127.0.0.1:{broker.port}") as connection,
        connection.open_sender(broker.address(QUEUE)) as sender,
    ):
        messages = [Message(body, header=Header(durable=True)) for body in bodies]
        async for _, outcome in sender.send_all(messages, in_flight=IN_FLIGHT):
            accepted += outcome == ACCEPTED
    return accepted


async def drain(broker: RabbitMQ) -> Counter[int]:
    """Receive all messages up to the last one; return how often each number came."""
    came: Counter[int] = Counter()
    async with (
        connect(f"amqp://127.0.0.1:{broker.port}") as connection,
        connection.open_receiver(broker.address(QUEUE), credit=IN_FLIGHT) as receiver,
    ):
        while True:
            delivery = await receiver.receive()
            number = delivery.message.body
            await delivery.accept()
            assert isinstance(number, int)
            if number == END:
                return came
            came[number] += 1


@pytest.mark.parametrize(
    ("source", "target"), [pytest.param(V3, V4, id="3.10 to 4.0"), pytest.param(V4, V3, id="4.0 to 3.10")]
)
async def test_every_accepted_message_passes_the_bridge_although_each_part_is_killed(
    source: Version, target: Version, tmp_path: Path
) -> None:
    """The source accepts a third of the messages, the router starts, and a part is killed as they pass; three times."""
    in_thread = trio.to_thread.run_sync
    with ExitStack() as stack, trio.fail_after(2 * DEADLINE_S):
        brokers = stack.enter_context(nodes(tmp_path / "brokers", source, target, queues=[QUEUE]))
        bridge = Bridge(brokers[0], brokers[1], tmp_path, stack)
        kills: list[Callable[[], None]] = [
            lambda: bridge.kill(bridge.source),
            lambda: bridge.kill(bridge.target),
            bridge.kill_router,
        ]
        for number, kill in enumerate(kills):
            if number:
                await in_thread(bridge.stop_router)
            begin = number * PORTION
            assert await fill(brokers[0], range(begin, begin + PORTION)) == PORTION
            await in_thread(bridge.start_router)
            await in_thread(bridge.until_passed, BEFORE)
            await in_thread(kill)
        assert await fill(brokers[0], range(END, END + 1)) == 1
        came = await drain(brokers[1])
        twice = sum(came.values()) - len(came)
        print(f"\n{source.name} to {target.name}: {len(came):,} came, {twice:,} twice")  # noqa: T201 - seen with -s
        assert set(came) == set(range(COUNT))
        bridge.router.assert_no_fault_of_ours()

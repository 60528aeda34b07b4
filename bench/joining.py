"""How fast routers find each other, how regular their hellos are on a busy machine, how long a dead one is listed.

`python -m bench.joining two|line|triangle|hellos [SECONDS]` measures one of these alone, and prints one JSON object.
All routers are processes of their own.

- two, line: two or five routers run, with a receiver on the first, and a sender on the last that waits for credit; then
  management makes each but the first dial the one before it. The time runs from the last TCP connection that is
  accepted between routers to the arrival of the sender's message.
- triangle: one of three fully connected routers is killed; the time runs until neither of the others lists it.
- hellos: two routers whose connection passes through a relay that records each hello, while a pair uses the first
  router at full speed and as many processes spin as there are processors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import trio

from trouter.client import Message, connect
from trouter.load.plan import Load
from trouter.tools.node import NodeClient, open_node
from trouter.tools.options import ConnectionOptions

from .measure import pair
from .servers import Router, free_port

ADDRESS: Final = "far.away"
#: Seconds that only a hang takes, besides measurements of a given time.
HANG_S: Final = 60.0
#: Seconds between two queries.
LOOK_S: Final = 0.002
#: Seconds that a network runs undisturbed before a change, so that its start has no effect any more.
SETTLE_S: Final = 3.0
_ACCEPTED: Final = re.compile(r"^(\S+ \S+ \S+) SERVER \(info\) \[C\d+\] Accepted connection to 127\.0\.0\.1:(\d+) ")
_HELLO: Final = b"HELLO"
_READ_BYTES: Final = 1 << 16
_DIALS: Final = "role: inter-router, saslMechanisms: ANONYMOUS"


class Member(Router):
    """An interior router with a listener for others, which dials those at ``dials``."""

    def __init__(self, folder: Path, name: str, dials: tuple[int, ...] = ()) -> None:
        self.id = name
        self.router_port = free_port()
        self._log = folder / "server.log"
        more = f"listener {{ host: 127.0.0.1, port: {self.router_port}, {_DIALS}, allowInsecureRole: yes }}\n"
        more += "".join(f"connector {{ host: 127.0.0.1, port: {port}, {_DIALS} }}\n" for port in dials)
        more += f"log {{ module: SERVER, enable: info+, outputFile: {self._log} }}\n"
        super().__init__(folder, mode="interior", router_id=name, more=more)

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    def accepted_s(self) -> list[float]:
        """Return the times when connections of other routers were accepted, in seconds of the wall clock."""
        lines = [_ACCEPTED.match(line) for line in self._log.read_text(encoding="utf-8").splitlines()]
        return [
            datetime.strptime(line[1], "%Y-%m-%d %H:%M:%S.%f %z").timestamp()
            for line in lines
            if line is not None and int(line[2]) == self.router_port
        ]


@contextmanager
def members(count: int) -> Iterator[list[Member]]:
    """Run ``count`` routers that are not connected."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield [stack.enter_context(Member(Path(folder) / f"R{number}", f"R{number}")) for number in range(count)]


@asynccontextmanager
async def nodes(found: list[Member]) -> AsyncIterator[list[NodeClient]]:
    """Connect to the management of each router."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(open_node(ConnectionOptions(host="127.0.0.1", port=each.port)))
            for each in found
        ]


async def dial(node: NodeClient, port: int) -> None:
    """Make a router dial another."""
    wanted = {"host": "127.0.0.1", "port": str(port), "role": "inter-router", "saslMechanisms": "ANONYMOUS"}
    await node.call("CREATE", type="org.apache.qpid.dispatch.connector", name=f"to-{port}", body=wanted)


async def first_message_ms(count: int) -> float:
    """Return the milliseconds from the last connection in a line of routers to the first message through it."""
    with members(count) as found, trio.fail_after(HANG_S):
        async with (
            connect(found[0].url) as receiving,
            receiving.open_receiver(ADDRESS) as receiver,
            connect(found[-1].url) as sending,
            sending.open_sender(ADDRESS) as sender,
            nodes(found[1:]) as dialling,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(sender.send, Message("here"))
            for node, other in zip(dialling, found, strict=False):
                nursery.start_soon(dial, node, other.router_port)
            delivery = await receiver.receive()
            arrived_s = time.time()
            await delivery.accept()
        connected_s = max(moment_s for each in found for moment_s in each.accepted_s())
        return (arrived_s - connected_s) * 1e3


async def known(node: NodeClient) -> set[str]:
    """Return the routers that a router lists."""
    table = await node.query("org.apache.qpid.dispatch.router.node", ["id"])
    return {str(row[0]) for row in table.rows}


async def until_known(node: NodeClient, wanted: set[str]) -> None:
    while await known(node) != wanted:  # noqa: ASYNC110 - another process knows, and does not tell
        await trio.sleep(LOOK_S)


async def listed_after_death_ms() -> float:
    """Return how many milliseconds the others list a killed router of three."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, trio.fail_after(HANG_S):
        found: list[Member] = []
        for name in ("A", "B", "C"):
            ports = tuple(each.router_port for each in found)
            found.append(stack.enter_context(Member(Path(folder) / name, name, ports)))
        everybody = {each.id for each in found}
        async with nodes(found[:2]) as left:
            for node in left:
                await until_known(node, everybody)
            await trio.sleep(SETTLE_S)
            began_s = time.perf_counter()
            found[2].process.kill()
            async with trio.open_nursery() as nursery:
                for node in left:
                    nursery.start_soon(until_known, node, everybody - {"C"})
            return (time.perf_counter() - began_s) * 1e3


class Relay:
    """Relay the bytes of one connection between two routers, and record the time of each hello, by direction."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.hellos_s: tuple[list[float], list[float]] = ([], [])

    async def serve(self, near: trio.SocketStream) -> None:
        far = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with near, far, trio.open_nursery() as nursery:
            nursery.start_soon(self._carry, near, far, self.hellos_s[0])
            nursery.start_soon(self._carry, far, near, self.hellos_s[1])

    async def _carry(self, source: trio.SocketStream, sink: trio.SocketStream, seen_s: list[float]) -> None:
        before = b""
        while data := await source.receive_some(_READ_BYTES):
            before += data
            seen_s.extend([time.perf_counter()] * before.count(_HELLO))
            before = before[before.rfind(_HELLO) + len(_HELLO) :] if _HELLO in before else before[1 - len(_HELLO) :]
            await sink.send_all(data)


@contextmanager
def spinning() -> Iterator[None]:
    """Run a process that spins for each processor."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in spinners:
            each.kill()
            each.wait()


async def hello_periods(seconds: float) -> list[list[float]]:
    """Return the seconds between hellos of each of two routers, beside ``seconds`` of other work."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, trio.fail_after(HANG_S + seconds):
        first = stack.enter_context(Member(Path(folder) / "A", "A"))
        relay = Relay(first.router_port)
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, relay.serve, listeners)
            port = listeners[0].socket.getsockname()[1]
            # waited for elsewhere, because the relay has to run meanwhile
            second = Member(Path(folder) / "B", "B", (port,))
            stack.callback(second.stop)
            await trio.to_thread.run_sync(second.__enter__)
            await trio.sleep(SETTLE_S)
            with spinning():
                for seen in relay.hellos_s:
                    seen.clear()
                await trio.to_thread.run_sync(partial(pair, first, replace(Load(), seconds=seconds)))
            nursery.cancel_scope.cancel()
        return [[later - earlier for earlier, later in pairwise(seen)] for seen in relay.hellos_s]


def hellos(seconds: float) -> list[float]:
    """Return, for each router, the deviation of the mean period from 1 s in hundredths; then the longest, in s."""
    periods = trio.run(hello_periods, seconds)
    return [*(abs(sum(each) / len(each) - 1.0) * 100 for each in periods), max(map(max, periods))]


def main() -> None:
    what = sys.argv[1]
    if what == "hellos":
        values = hellos(float(sys.argv[2]))
    elif what == "triangle":
        values = [trio.run(listed_after_death_ms)]
    else:
        values = [trio.run(first_message_ms, {"two": 2, "line": 5}[what])]
    print(json.dumps({what: values}))


if __name__ == "__main__":
    main()

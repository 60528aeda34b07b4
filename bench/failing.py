"""How long messages wait for another path when the router on theirs is killed or stops answering.

`python -m bench.failing` measures this alone, and prints one JSON object. Four routers form a ring: a sender at one
end, a receiver at the other, and between them a cheap path over one router and an expensive one over another. The
router on the cheap path is stopped (SIGSTOP: its connections stay open and silent) or killed, each in a ring of its
own. Each message has the time when it was sent; the first one sent after the fault that arrives has taken the other
path.
"""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import trio

from trouter.client import Message, Receiver, Sender, connect

from .servers import Router, free_port

ENDS: Final = ("A", "D")
#: The routers between the ends, with the cost of each of their connections.
BETWEEN: Final = {"B": 1, "C": 2}
ADDRESS: Final = "on.the.way"
EVERY_S: Final = 0.004
#: Seconds that the ring runs undisturbed first, so that its start has no effect any more.
SETTLE_S: Final = 6.0
#: Seconds that only a hang takes.
HANG_S: Final = 60.0
_NOTICED: Final = re.compile(r"^(\S+ \S+ \S+) ROUTER_HELLO \(info\) router B is no longer a neighbour", re.MULTILINE)


class Ring:
    """The routers, and the log of the router at the sender's end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        ports = {name: free_port() for name in ENDS}
        self.log = folder / "network.log"
        self.routers: dict[str, Router] = {}
        for name in (*ENDS, *BETWEEN):
            more = "".join(
                f"connector {{ host: 127.0.0.1, port: {port}, role: inter-router, saslMechanisms: ANONYMOUS, "
                f"cost: {BETWEEN[name]} }}\n"
                for port in (ports.values() if name in BETWEEN else ())
            )
            if name in ENDS:
                more = (
                    f"listener {{ host: 127.0.0.1, port: {ports[name]}, role: inter-router, allowInsecureRole: yes, "
                    "saslMechanisms: ANONYMOUS }\n"
                )
            if name == "A":
                more += f"log {{ module: ROUTER_HELLO, enable: info+, outputFile: {self.log} }}\n"
            router = Router(folder / name, mode="interior", router_id=name, more=more)
            self.routers[name] = stack.enter_context(router)

    def noticed_s(self) -> float:
        """Return the time when the sender's router dropped the router between, in seconds of the wall clock."""
        found = _NOTICED.search(self.log.read_text(encoding="utf-8"))
        assert found is not None, "it was not given up"
        return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S.%f %z").timestamp()

    def url(self, name: str) -> str:
        return f"amqp://127.0.0.1:{self.routers[name].port}"


@contextmanager
def ring() -> Iterator[Ring]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Ring(Path(folder), stack)


@asynccontextmanager
async def ends(found: Ring) -> AsyncIterator[tuple[Sender, Receiver]]:
    async with (
        connect(found.url("D")) as receiving,
        receiving.open_receiver(ADDRESS, credit=1000) as receiver,
        connect(found.url("A")) as sending,
        sending.open_sender(ADDRESS) as sender,
    ):
        yield sender, receiver


async def waited(happens: Callable[[Ring], None]) -> tuple[float, float, float]:
    """Return the times of the fault, of its detection, and of the first message over the other path, in seconds."""
    with ring() as found, trio.fail_after(HANG_S):
        async with ends(found) as (sender, receiver), trio.open_nursery() as nursery:
            nursery.start_soon(_send, sender)
            await _until_sent_after(receiver, time.time() + SETTLE_S)
            began_s = time.time()
            happens(found)
            await _until_sent_after(receiver, began_s)
            arrived_s = time.time()
            nursery.cancel_scope.cancel()
        return began_s, found.noticed_s(), arrived_s


async def _send(sender: Sender) -> None:
    while True:
        await sender.send(Message(time.time()), settled=True)
        await trio.sleep(EVERY_S)


async def _until_sent_after(receiver: Receiver, moment_s: float) -> None:
    async for delivery in receiver:
        if delivery.message.body > moment_s:
            return


def stop(found: Ring) -> None:
    os.kill(found.routers["B"].process.pid, signal.SIGSTOP)


def kill(found: Ring) -> None:
    found.routers["B"].process.kill()


def main() -> None:
    began_s, _, arrived_s = trio.run(waited, kill)
    silent_s, noticed_s, resumed_s = trio.run(waited, stop)
    told = {
        "killed_ms": (arrived_s - began_s) * 1e3,
        "noticed_s": noticed_s - silent_s,
        "resumed_ms": (resumed_s - noticed_s) * 1e3,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()

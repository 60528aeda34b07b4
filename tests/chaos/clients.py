"""Traffic of clients in processes of their own, and the scenario that kills these processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

from tests.routers import ROOT

from .ledger import Heard
from .traffic import Traffic, Way

if TYPE_CHECKING:
    from .worlds import World

_OUTCOMES: Final = {"=": Heard.ACCEPTED, "-": Heard.RETURNED}


class ProcessTraffic(Traffic):
    """Traffic of clients in processes; a client that is killed is started again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._running: defaultdict[str, list[trio.Process]] = defaultdict(list)
        self._names = count()
        #: Attempts by the text of their messages. A receiver's line may be read before the sender's line for the same
        #: message.
        self._numbers: dict[str, int] = {}

    def kill(self, role: str) -> None:
        """Kill one of the senders ("send") or one of the receivers ("receive") with SIGKILL."""
        self._running[role][0].kill()

    def _number(self, key: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = self.ledger.attempt()
        return self._numbers[key]

    async def _send(self, way: Way) -> None:
        def take(sign: str, key: str) -> None:
            number = self._number(key)
            mine.append(number)
            if sign in _OUTCOMES:
                self._hear(number, _OUTCOMES[sign])

        while not self._over:
            mine: list[int] = []
            await self._run("send", way, take)
            for number in mine:
                if self.ledger.heard[number] == Heard.NOTHING:
                    self._hear(number, Heard.CONNECTION_LOST)

    async def _receive(self, way: Way) -> None:
        def take(sign: str, key: str) -> None:
            if sign in _OUTCOMES:
                self.ledger.arrive(self._number(key), accepted=sign == "=")
            else:
                linked.append(key)
                self._receivers += 1
                self._change()

        while not self._over:
            linked: list[str] = []
            await self._run("receive", way, take)
            self._receivers -= len(linked)

    async def _run(self, role: str, way: Way, take: Callable[[str, str], None]) -> None:
        """Run one client until it ends, and pass each line that it prints to ``take``."""
        command = [sys.executable, "-m", "tests.chaos.client", role, way.url, self.address, str(next(self._names))]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        self._running[role].append(process)
        try:
            rest = ""
            async for octets in process.stdout:
                *lines, rest = (rest + octets.decode()).split("\n")
                for line in lines:
                    take(line[0], line[1:])
                if self._over and role == "send":
                    process.terminate()
            status = await process.wait()
            # SIGTERM ends a sender that has not started to send.
            assert status in {0, -signal.SIGKILL, -signal.SIGTERM}, f"a client ended with {status}"
        finally:
            process.kill()
            self._running[role].remove(process)
            self._change()

    async def _until_all_came(self) -> None:
        """Kill the receivers, and wait until their last lines are read."""
        for process in self._running["receive"]:
            process.kill()
        await self._until(lambda: not self._running["receive"])


async def client_killed(world: World, traffic: Traffic) -> None:
    """Clients are processes; one of the senders, then one of the receivers is killed, twice."""
    assert isinstance(traffic, ProcessTraffic)
    for number, role in enumerate(("send", "receive") * 2, 1):
        await traffic.until(number / 5)
        await traffic.until_all_receive()
        traffic.kill(role)
        traffic.fault()
        await traffic.until_recovered()

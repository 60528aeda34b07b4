"""A spool that receives from a router, and the scenarios in which its disk is full or its process is killed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.routers import ROOT, watched
from trouter.client import Message
from trouter_pipeline.spool import SpoolReader, parse_frames

from .ledger import Ledger
from .sites import Site
from .traffic import Traffic, run_blocking

if TYPE_CHECKING:
    from .worlds import World

ADDRESS: Final = "chaos.spool"
_LINKED: Final = rf"Link attached: dir=out source={{{ADDRESS} "


class SpoolProcess:
    """A folder, and the process of `trouter pipeline spool` that stores messages in it."""

    def __init__(self, site: Site, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._site = site
        self._stack = stack
        #: The sequence number up to which messages are in the ledger.
        self._entered = 0
        self.start()

    def start(self) -> None:
        """Start the process; return when the router has its link."""
        links = len(self._site.router.matching(_LINKED))
        where = ["--url", self._site.url, "--address", ADDRESS, "--dir", str(self.folder), "--segment-bytes", "1M"]
        command = [sys.executable, "-m", "trouter", "pipeline", "spool", *where]
        self._running = self._stack.enter_context(watched(command, self.folder, ROOT))
        self._site.router.wait_for_line(_LINKED, links + 1)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._running.process.kill()
        self._running.wait()

    def wait_for_full(self) -> None:
        """Wait until the process ends with the error that its disk is full."""
        status, said = self._running.wait(), self._running.text()
        assert (status, "No space left on device" in said) == (1, True), said

    def enter(self, ledger: Ledger) -> None:
        """Enter the messages that arrived since the last call, and report them as consumed."""
        reader = SpoolReader(self.folder)
        end = reader.durable()
        for block in reader.blocks(self._entered, end):
            for frame in parse_frames(block):
                number = Message.decode(frame.message).body
                assert isinstance(number, int)
                ledger.arrive(number, accepted=True)
        reader.consumed(end)
        self._entered = end


async def spool_killed(world: World, traffic: Traffic) -> None:
    """The process of the spool is killed twice and started again: the folder has each accepted message."""
    assert world.spool is not None
    for share in (0.3, 0.6):
        await traffic.until(share)
        world.spool.kill()
        traffic.fault()
        await run_blocking(world.spool.start)
        traffic.back()
        await traffic.until_recovered()


async def spool_disk_full(world: World, traffic: Traffic) -> None:
    """The disk of the spool is full: the process accepts nothing more and ends; with free space it is started again."""
    assert world.spool is not None
    await traffic.until(0.3)
    world.disks["spool"].fill()
    await run_blocking(world.spool.wait_for_full)
    traffic.fault()
    world.disks["spool"].make_room()
    await run_blocking(world.spool.start)
    traffic.back()
    await traffic.until_recovered()

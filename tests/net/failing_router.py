"""A router in which USR1 plants a bug that no connection owns: `python -m tests.net.failing_router SERVICE -c FILE`."""

from __future__ import annotations

import logging
import sys
from typing import NoReturn

import trio

from trouter.app.process import RouterProcess
from trouter.cli import main
from trouter.net.timers import TimerQueue


class NoRouter:
    """Stands for the router, and has nothing that the hub reads."""


def fail(*_: object) -> NoReturn:
    raise LookupError("a bug")


async def plant_in_sockets(process: RouterProcess) -> None:
    process.services.hub.router = NoRouter()  # type: ignore[assignment]


async def plant_in_timers(process: RouterProcess) -> None:
    setattr(TimerQueue, "do_due", fail)  # noqa: B010 - a bug
    process.services.timers.add("anything", lambda _: 0.0, trio.current_time())


async def plant(process: RouterProcess) -> None:
    """Plant the bug that the command line names."""
    await PLANTS[SERVICE](process)
    logging.getLogger("trouter.MAIN").info("planted")


PLANTS = {"sockets": plant_in_sockets, "timers": plant_in_timers}

if __name__ == "__main__":
    SERVICE = sys.argv.pop(1)
    setattr(RouterProcess, "_dump", plant)  # noqa: B010 - the test sends USR1
    sys.exit(main(["run", *sys.argv[1:]]))

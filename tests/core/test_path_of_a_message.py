"""A transfer and its settlement pass few modules, and few calls lie on one another, from the poller to the writer.

One message goes through a router in memory, whose calls are watched. Only the interpreted twin has calls that can be
watched, so beside the compiled twin the measuring runs in a process of its own. The modules that carry bytes between
the sockets and the engine are added: a router in memory has no sockets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

import trouter
from trouter import _twin
from trouter.testing import MemoryClient, MemoryRouter, compose

PACKAGE = Path(trouter.__file__).parent
#: On the way to and from a socket: what finds that it is readable, reads, and writes at the end of the pass.
CARRIERS = {"net.poller", "connections.stream", "net.hub"}
#: These only read numbers or copy bytes, or are written into their callers by the compiler.
LEAVES = {"wire.codec", *(name.removeprefix("trouter.") for name in _twin.INLINED)}
#: The calls in front of the engine: ``Poller._serve`` and ``Stream.on_readable``.
CALLS_IN_FRONT = 2
MAX_MODULES = {"transfer": 18, "settlement": 15}
#: From ``Poller._serve`` to ``write_first_frame``.
MAX_CALLS_ON_ONE_ANOTHER = 11


class Watch:
    """Notes the modules of the router whose functions are called, and the deepest call of the writer of transfers."""

    def __init__(self) -> None:
        self.modules = set(CARRIERS)
        self.depth = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        module = module_of(frame)
        if event != "call" or not module:
            return
        self.modules.add(module)
        if frame.f_code.co_qualname == "write_first_frame":
            self.depth = max(self.depth, CALLS_IN_FRONT + sum(map(bool, map(module_of, stack_of(frame)))))

    def receive(self, client: MemoryClient) -> None:
        """Let the router read what the client wrote, and write what it has to say, under watch."""
        client.connection.flush()
        data = bytes(client.connection.out)
        client.connection.out.clear()
        sys.setprofile(self)
        try:
            client.server.receive_data(data)
            client.router.flush()
        finally:
            sys.setprofile(None)


def module_of(frame: FrameType) -> str:
    """Return the module of the router that a call is in, empty for another."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(PACKAGE) or path.is_relative_to(PACKAGE / "testing"):
        return ""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def stack_of(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def measure() -> dict[str, list[str] | int]:
    """Return the modules of a transfer and of its settlement, and the calls on one another of the transfer."""
    router = MemoryRouter()
    sending, receiving = router.connect(), router.connect()
    receiver, sender = receiving.receiver("a", credit=10), sending.sender("a")
    for _ in range(2):  # the first message makes what later ones find
        transfer, settlement = Watch(), Watch()
        sender.send(compose(b"x"))
        transfer.receive(sending)
        receiving.read()
        receiver.received[-1].settle()
        settlement.receive(receiving)
        router.pump()
    return {
        "transfer": sorted(transfer.modules - LEAVES),
        "settlement": sorted(settlement.modules - LEAVES),
        "depth": transfer.depth,
    }


@pytest.fixture(scope="module")
def measured() -> dict[str, list[str] | int]:
    if _twin.running() == "interpreted":
        return measure()
    command = [sys.executable, "-m", __name__]
    root, environment = PACKAGE.parent, {**os.environ, "TROUTER_PURE": "1"}
    said = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, list[str] | int] = json.loads(said.stdout)
    return found


@pytest.mark.parametrize("what", MAX_MODULES)
def test_a_message_passes_few_modules(measured: dict[str, list[str]], what: str) -> None:
    passed = measured[what]
    assert CARRIERS | {"core.outgoing", "core.incoming", "engine.session"} <= set(passed)
    assert len(passed) <= MAX_MODULES[what], passed


def test_few_calls_lie_on_one_another(measured: dict[str, int]) -> None:
    assert CALLS_IN_FRONT < measured["depth"] <= MAX_CALLS_ON_ONE_ANOTHER


def test_the_carriers_are_modules() -> None:
    assert all((PACKAGE / f"{module.replace('.', '/')}.py").is_file() for module in CARRIERS)


if __name__ == "__main__":
    print(json.dumps(measure()))  # noqa: T201 - read by the fixture

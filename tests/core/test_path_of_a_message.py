"""A message is one argument on its way, and the calls that it makes lie on few others.

One message goes through a router in memory, whose calls are watched. Only the interpreted twin has calls that can be
watched, so beside the compiled twin the measuring runs in a process of its own.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

import trouter
from trouter import _twin
from trouter.engine.ports import LinkSink
from trouter.testing import MemoryClient, MemoryRouter, compose

PACKAGE = Path(trouter.__file__).parent
#: The rooms that a message crosses between the two engines, by the files in which it is read.
PATH = {"core.ingress", "core.by_address", "core.arrival", "core.forwarders", "core.egress"}
#: The octets of a message, as three arguments.
OCTETS = {"data", "start", "end"}


class Watch:
    """Notes the modules of the router whose functions are called."""

    def __init__(self) -> None:
        self.modules: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        module = module_of(frame)
        if event != "call" or not module:
            return
        self.modules.add(module)

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


def measure() -> dict[str, list[str]]:
    """Return the modules of a transfer and of its settlement."""
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
    return {"transfer": sorted(transfer.modules), "settlement": sorted(settlement.modules)}


def measured() -> dict[str, list[str]]:
    if _twin.running() == "interpreted":
        return measure()
    command = [sys.executable, "-m", __name__]
    root, environment = PACKAGE.parent, {**os.environ, "TROUTER_PURE": "1"}
    said = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    result: dict[str, list[str]] = json.loads(said.stdout)
    return result


def functions_of(path: Path) -> list[tuple[str, set[str]]]:
    """Return the functions of a module with the names of their arguments."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [
        (node.name, {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)})
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    ]


def test_a_message_is_read_in_the_files_that_the_pages_name() -> None:
    passed = set(measured()["transfer"])
    decides = {each for each in passed if each.startswith("core.")}
    assert decides >= PATH


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda path: path.stem)
def test_a_message_is_one_argument(path: Path) -> None:
    """Only the engine passes octets: to the sink of a link, which takes them in hand."""
    apart = [name for name, arguments in functions_of(path) if arguments >= OCTETS]
    assert set(apart) <= {"take", *vars(LinkSink)}


if __name__ == "__main__":
    print(json.dumps(measure()))  # noqa: T201 - read by the fixture

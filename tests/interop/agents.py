"""Stock clients as processes: each client is a program with the same roles that a test starts, controls and kills.

`ROLE JSON` stand on its command line; it prints one JSON object a line, and a line on its input makes it proceed from a
wait. Roles: `send` (`count` messages of `size` bytes, `settle`: settled, unsettled or mixed), `receive` (`count`
messages with `credit`, answered by `answers` in turn, `settle`: first, second or settled; waits when it holds message
number `hold`), `drain` (waits, drains `credit`, waits, receives `count` in all), `request` and `respond` (`count`
requests, replies to a dynamic address through an anonymous sender), `leave` (attaches `count` durable subscriptions
called `name`-0 and so on, and then closes them and the connection at once). The client `rhea-websocket` takes a
`subprotocol`.
rhea alone has the role `denied`: it attaches to a `terminus`, to receive if it `receives`, sends a `message` if there
is one, and reports the error of the refusal.
"""

from __future__ import annotations

import hashlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.routers import DEADLINE_S

HERE = Path(__file__).parent
COMMANDS = {
    "proton": [sys.executable, str(HERE / "clients" / "proton_agent.py")],
    "rhea": ["node", str(HERE / "rhea" / "agent.js")],
    "azure": [sys.executable, str(HERE / "clients" / "azure_agent.py")],
}
CLIENTS = tuple(COMMANDS)
#: rhea over a WebSocket.
COMMANDS["rhea-websocket"] = ["node", "--experimental-websocket", "--no-warnings", *COMMANDS["rhea"][1:]]
DEFAULTS = {"count": 1, "size": 100, "settle": "unsettled", "credit": 100, "answers": ["accepted"], "hold": 0}


class Agent:
    """A running client."""

    def __init__(self, client: str, role: str, process: subprocess.Popen[str]) -> None:
        self.name = f"{client} {role}"
        self.process = process
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: list[str] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def wait_for(self, wanted: str) -> dict[str, Any]:
        """Return the next event, which must be the ``wanted`` one."""
        try:
            event = self._events.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise AssertionError(f"{self.name}: no {wanted} in time") from None
        if event is None:
            self._threads[1].join(DEADLINE_S)
        errors = "".join(self._errors)
        assert event is not None, f"{self.name} ended before {wanted}: {errors}"
        assert event["event"] == wanted, f"{self.name}: {event} instead of {wanted}: {errors}"
        return event

    def go_on(self) -> None:
        """Make the client proceed from a wait."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """Return the client's last event; it must exit with status 0."""
        event = self.wait_for("done")
        assert self.process.wait(DEADLINE_S) == 0
        for thread in self._threads:
            thread.join(DEADLINE_S)
        assert "".join(self._errors) == ""
        assert self._events.get(timeout=DEADLINE_S) is None
        return event

    def kill(self) -> None:
        """Kill the client."""
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def end(self) -> None:
        """Kill the client, and read what it printed to the end."""
        self.kill()
        for thread in self._threads:
            thread.join(DEADLINE_S)


@contextmanager
def agent(client: str, role: str, port: int, **options: Any) -> Iterator[Agent]:
    """Start a client; kill it at the end if it still runs."""
    command = [*COMMANDS[client], role, json.dumps({**DEFAULTS, **options, "port": port})]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        started = Agent(client, role, process)
        try:
            yield started
        finally:
            started.end()


def message(number: int, size: int, settled: bool = False) -> list[object]:
    """Return the report of a receiver on message ``number``."""
    octets = (number.to_bytes(8, "big") + (bytes(range(256)) * (size // 256 + 1))[8:])[:size]
    return [number, size, hashlib.sha1(octets).hexdigest()[:12], settled]

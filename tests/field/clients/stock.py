"""Programs that the authors of clients ship, as they are; `FAMILY THING JSON` as ../programs.py describes them.

A family is `c` or `cpp`, of Debian's libqpid-proton11-dev-examples, or `cli`, of cli-proton-python.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "build" / "field"
FAMILY, THING, OPTIONS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
COUNT, ADDRESS = OPTIONS.get("count", 1), OPTIONS["address"]
_SEQUENCE = re.compile(r'"?sequence"?\D+(\d+)')


def report(event: str, **details: object) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def start(*words: str) -> subprocess.Popen[str]:
    """Start one of the programs, which ends with this one."""
    words = ("setpriv", "--pdeathsig", "KILL", "--", *words)
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    """Return the lines of a program that ends by itself."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    assert process.wait() == 0, lines
    return lines


def lines_of(process: subprocess.Popen[str], count: int, wanted: str) -> list[str]:
    """Return the next ``count`` lines with the ``wanted`` text of a program that goes on."""
    assert process.stdout is not None
    found: list[str] = []
    while len(found) < count:
        line = process.stdout.readline()
        assert line, "it ended"
        if wanted in line:
            found.append(line)
    return found


def url(end: dict[str, Any], address: str = ADDRESS) -> str:
    """Return the address as URL."""
    return f"{'amqps' if end['tls'] else 'amqp'}://{end['host']}:{end['port']}/{address}"


class C:
    """The examples of proton-C."""

    def receiver(self, end: dict[str, Any], count: int) -> subprocess.Popen[str]:
        """Start the receiver of ``count`` messages."""
        return start(str(BUILT / "c" / "receive"), end["host"], str(end["port"]), ADDRESS, str(count))

    def sender(self, end: dict[str, Any], count: int) -> subprocess.Popen[str]:
        """Start the sender of ``count`` messages, which ends when all are accepted."""
        return start(str(BUILT / "c" / "send"), end["host"], str(end["port"]), ADDRESS, str(count))

    def seen(self, lines: list[str]) -> dict[str, object]:
        """Return what a receiver reports of numbered messages."""
        numbers = [int(found[1]) for line in lines if (found := _SEQUENCE.search(line))]
        whole = sorted(numbers) == list(range(1, len(numbers) + 1))
        return {"received": len(numbers), "whole": whole, "in_order": numbers == sorted(numbers)}


class Cpp(C):
    """The examples of proton-C++."""

    def receiver(self, end: dict[str, Any], count: int) -> subprocess.Popen[str]:
        return start(str(BUILT / "cpp" / "simple_recv"), "-a", url(end), "-m", str(count))

    def sender(self, end: dict[str, Any], count: int) -> subprocess.Popen[str]:
        return start(str(BUILT / "cpp" / "simple_send"), "-a", url(end), "-m", str(count))

    def request(self) -> None:
        """Send the four requests of the example."""
        to = OPTIONS["to"]
        place = f"amqp://{to['host']}:{to['port']}"
        with start(str(BUILT / "cpp" / "server"), place, ADDRESS) as server:
            lines = finish(start(str(BUILT / "cpp" / "client"), "-a", url(OPTIONS["from"])))
            assert all(question.upper() == answer for question, answer in (line.split(" => ") for line in lines))
            assert len(lines) == 4
            server.kill()
        report("done", answered=COUNT)

    def browser(self) -> dict[str, object]:
        """Look at the messages of a queue; this example never ends."""
        end = OPTIONS["from"]
        words = (str(BUILT / "cpp" / "queue_browser"), f"amqp://{end['host']}:{end['port']}", ADDRESS)
        with start(*words) as process:
            browsed = self.seen(lines_of(process, COUNT, "sequence"))
            process.kill()
        return browsed

    def reconnect(self) -> None:
        """Send to itself before and after its router was killed."""
        end = OPTIONS["from"]
        place = f"amqp://{end['host']}:{end['port']}"
        with start(str(BUILT / "cpp" / "reconnect_client"), place, ADDRESS, "0", place) as process:
            lines_of(process, 1, "sequence")
            report("ready")
            lines_of(process, 1, "listening on")
            lines_of(process, 1, "sequence")
            process.kill()
        report("done")


class Cli(C):
    """The commands of cli-proton-python."""

    def _command(self, name: str, end: dict[str, Any], count: int, *more: str, address: str = ADDRESS) -> Any:
        program = str(BUILT / "venv" / "bin" / f"cli-proton-python-{name}")
        words = ("-b", url(end, address), "-c", str(count), "--conn-allowed-mechs", "ANONYMOUS", *more)
        return start(program, *words)

    def receiver(self, end: dict[str, Any], count: int, *more: str) -> subprocess.Popen[str]:
        prefetch = ("--reactor-prefetch", str(max(2, OPTIONS.get("credit", 10))), "--log-msgs", "body")
        return self._command("receiver", end, count, *prefetch, *more)  # type: ignore[no-any-return]

    def sender(self, end: dict[str, Any], count: int) -> subprocess.Popen[str]:
        with tempfile.NamedTemporaryFile("w", delete=False) as content:
            content.write("x" * OPTIONS.get("size", 8))
        return self._command("sender", end, count, "--msg-content-from-file", content.name)  # type: ignore[no-any-return]

    def seen(self, lines: list[str]) -> dict[str, object]:
        """All bodies are alike, so their order is unknown."""
        whole = {len(line.strip()) for line in lines} == {OPTIONS.get("size", 8)}
        return {"received": len(lines), "whole": whole, "in_order": True}

    def request(self) -> None:
        """Send requests with the address of another receiver to reply to."""
        replies = f"{ADDRESS}.replies"
        service = self._command("receiver", OPTIONS["to"], COUNT, "--process-reply-to")
        inbox = self._command("receiver", OPTIONS["from"], COUNT, "--log-msgs", "body", address=replies)
        content = ("--msg-content", "ping", "--msg-reply-to", replies)
        finish(self._command("sender", OPTIONS["from"], COUNT, *content))
        finish(service)
        assert finish(inbox) == ["ping"] * COUNT
        report("done", answered=COUNT)

    def browser(self) -> dict[str, object]:
        """Look at the messages of a queue."""
        return self.seen(finish(self.receiver(OPTIONS["from"], COUNT, "--recv-browse")))

    def reconnect(self) -> None:
        """Receive before and after its router was killed."""
        with self.receiver(OPTIONS["from"], 2) as receiving:
            finish(self.sender(OPTIONS["from"], 1))
            lines_of(receiving, 1, "x")
            report("ready")
            sys.stdin.readline()
            finish(self.sender(OPTIONS["from"], 1))
            lines_of(receiving, 1, "x")
        report("done")


def exchange(family: C) -> None:
    """Send from one router to another."""
    # What a receiver prints is read at once: a full pipe would stop it.
    with family.receiver(OPTIONS["to"], COUNT) as receiving, ThreadPoolExecutor() as pool:
        printed = pool.submit(finish, receiving)
        finish(family.sender(OPTIONS["from"], COUNT))
        report("done", **family.seen(_bodies(printed.result())), accepted=COUNT)


def browse(family: Any) -> None:
    """Look at messages, then receive them."""
    finish(family.sender(OPTIONS["from"], COUNT))
    browsed = family.browser()
    received = family.seen(_bodies(finish(family.receiver(OPTIONS["from"], COUNT))))
    report("done", browsed=browsed, **received)


def unsubscribe(family: C) -> None:
    """Receive one message, and leave with all that leaves in one write, as these programs do."""
    with family.receiver(OPTIONS["from"], 1) as receiving:
        finish(family.sender(OPTIONS["from"], 1))
        finish(receiving)
    report("done")


def _bodies(lines: list[str]) -> list[str]:
    return [line for line in lines if "messages" not in line]


family: Any = {"c": C, "cpp": Cpp, "cli": Cli}[FAMILY]()
shared: dict[str, Callable[[Any], None]] = {"exchange": exchange, "browse": browse, "unsubscribe": unsubscribe}
if THING in shared:
    shared[THING](family)
else:
    getattr(family, THING)()

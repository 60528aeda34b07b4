"""The transcript of an engine on an input, as text; the compiled and the interpreted twin must write the same.

Run as a program it is the other twin: it reads inputs from standard input, each behind its length in four bytes, and
writes the transcripts in the same form.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from fuzz import engine  # noqa: E402
from trouter import _twin  # noqa: E402
from trouter.engine.events import Event  # noqa: E402

#: Fields of events that the transcript contains.
SAID = ("mechanism", "response", "mechanisms", "challenge", "code", "open", "begin", "attach", "closed")


class Recorder(engine.Holder):
    """Record the events and the output of an engine."""

    def __init__(self, how: int) -> None:
        self.lines: list[str] = []
        super().__init__(how)

    def handle(self, event: Event) -> None:
        said = [f"{name}={getattr(event, name)!r}" for name in SAID if hasattr(event, name)]
        said += [f"{name}={getattr(event, name, None)}" for name in ("error", "fault")]
        self.lines.append(f"{type(event).__name__} {' '.join(said)}")
        super().handle(event)

    def look(self) -> None:
        self.connection.flush()
        if self.connection.out:
            self.lines.append(bytes(self.connection.out).hex())
        for session in self.connection.sessions():
            windows, unsettled = session.windows, session.deliveries.incoming.count
            self.lines.append(f"{windows.incoming_frames} {windows.outgoing_frames} {unsettled}")
        super().look()


def transcript(data: bytes) -> bytes:
    """Return the transcript, one line per event or output; the last line is an exception, if one was raised."""
    how, cut = (data[0], data[1]) if len(data) >= 2 else (0, 0)
    stream = data[2:]
    lines: list[str] = []
    try:
        recorder = Recorder(how)
        lines = recorder.lines
        step = cut or len(stream) or 1
        for start in range(0, len(stream), step):
            recorder.feed(stream[start : start + step])
        recorder.answer()
        recorder.connection.close()
        recorder.answer()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other twin must do the same
        lines.append(f"{type(error).__name__}: {error}")
    return "\n".join(lines).encode()


class Other:
    """A process that runs the other twin."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "TROUTER_PURE"}
        if not _twin.PURE:
            environment["TROUTER_PURE"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self.close)

    def transcript(self, data: bytes) -> bytes:
        """Return the other twin's transcript of an input; raise OSError when its process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        put(self._process.stdin, data)
        answer = take(self._process.stdout)
        if answer is None:
            raise OSError("the other twin is gone")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@cache
def other() -> Other:
    """Return the other twin; start its process on the first call."""
    return Other()


def put(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(4, "big") + data)
    stream.flush()


def take(stream: IO[bytes]) -> bytes | None:
    head = stream.read(4)
    return stream.read(int.from_bytes(head, "big")) if len(head) == 4 else None


def main() -> None:
    while (data := take(sys.stdin.buffer)) is not None:
        put(sys.stdout.buffer, transcript(data))


if __name__ == "__main__":
    main()

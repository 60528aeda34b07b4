"""The crash ledger: processes are killed in mid-stream, and no accepted message is lost or duplicated."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline.tests.ledger import REPORT_EVERY
from tests.chaos.sites import Site
from tests.routers import PLAIN_LISTENER, ROOT

MESSAGES = int(os.environ.get("TROUTER_LEDGER_MESSAGES", "200000"))
HANG_S = 1800.0
#: The processes to kill, each at an even distance from the others. The reader is the one that fills the spool.
RUNS = (
    ("jvm",),
    ("driver",),
    ("reader",),
    ("worker",),
    ("jvm", "driver", "reader", "router"),
    ("worker", "reader", "router", "jvm", "driver", "worker"),
)


def children(pid: int) -> Iterator[int]:
    """Yield the descendants of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from children(int(child))


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


class Landing:
    """`land`, started again whenever it ends, as an operator would run it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._command = [sys.executable, "-m", "pipeline.tests.ledger", "land", url, "ledger", str(folder)]
        self._folder = folder
        self._finishing = False
        self.starts = 0
        self.process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        log = (self._folder / f"land-{self.starts}.log").open("w")
        return subprocess.Popen(
            self._command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )

    def _keep(self) -> None:
        while True:
            self.process.wait()
            if self._finishing:
                return
            self.process = self._start()

    def victim(self, name: str) -> int:
        """Return the process of this name, once it runs."""
        pause = threading.Event()
        while True:
            if name == "driver":
                return self.process.pid
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                below = list(children(self.process.pid))
                if name == "reader":
                    reader = (self._folder / "spool" / "LOCK").read_text().split()
                    if reader and int(reader[0]) in below:
                        return int(reader[0])
                    found = []
                elif name == "jvm":
                    found = [pid for pid in below if "org.apache.spark" in command(pid)]
                else:
                    daemons = [pid for pid in below if "pyspark.daemon" in command(pid)]
                    found = [pid for daemon in daemons for pid in children(daemon) if "pyspark.daemon" in command(pid)]
                if found:
                    return found[0]
            pause.wait(0.01)

    def kill(self, name: str) -> None:
        """Kill the process with SIGKILL; the stream must go on."""
        os.kill(self.victim(name), signal.SIGKILL)

    def finish(self) -> dict[str, int]:
        """Let it land the rest; return its last report."""
        while True:
            process = self.process
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"finish\n")
                process.stdin.flush()
            for line in process.stdout:
                if b"sequences" in line:
                    self.end()
                    ledger: dict[str, int] = json.loads(line)
                    return ledger
            process.wait(HANG_S)
            assert process.returncode != 0, "it ended without a ledger"
            while process is self.process:
                self._keeper.join(0.05)

    def end(self) -> None:
        self._finishing = True
        self.process.kill()
        self._keeper.join(HANG_S)


@pytest.mark.slow
@pytest.mark.pipeline_long
@pytest.mark.parametrize("kills", RUNS, ids="-".join)
def test_every_accepted_message_lands_exactly_once(
    kills: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        router = Site("router", PLAIN_LISTENER, tmp_path, stack)
        url = f"127.0.0.1:{router.ports[0]}"
        landing = Landing(url, tmp_path)
        try:
            sending = [sys.executable, "-m", "pipeline.tests.ledger", "send", url, "ledger", str(MESSAGES)]
            with subprocess.Popen(sending, cwd=ROOT, stdout=subprocess.PIPE, text=True) as sender:
                assert sender.stdout is not None
                due = [MESSAGES * number // (len(kills) + 1) for number in range(1, len(kills) + 1)]
                for line in sender.stdout:
                    if line.startswith("{"):
                        sent = json.loads(line)
                        break
                    if due and int(line) >= due[0]:
                        victim = kills[len(kills) - len(due)]
                        router.restart() if victim == "router" else landing.kill(victim)
                        del due[0]
                assert not due, f"no more than {REPORT_EVERY} messages between kills: there is no middle of the stream"
            ledger = landing.finish()
        finally:
            landing.end()
    with capsys.disabled():  # the run is long, so it shows its progress
        sys.stdout.write(f"\n{'-'.join(kills)}: {json.dumps({'starts': landing.starts, **sent, **ledger})}\n")
    assert sent["accepted"] == MESSAGES
    assert ledger["ids"] == MESSAGES, "accepted and not landed"
    assert ledger["rows"] == ledger["sequences"] == ledger["last"] + 1, "landed twice, or a gap"
    assert ledger["errors"] == 0
    assert ledger["once"] == ledger["once_ids"] == MESSAGES, "twice after removing what came twice"

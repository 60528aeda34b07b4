"""A router as its users run it: a process of its own, configured by a text, stopped by a signal."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.forks import Forked, Process, serves_here
from trouter import _twin

ROOT = Path(__file__).parents[1]
#: Seconds that only a hang takes; no test waits for them to pass.
DEADLINE_S = 400.0
PLAIN_LISTENER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
#: The workers of each router, if not 1; `make test-workers` sets it.
WORKERS = int(os.environ.get("TROUTER_TEST_WORKERS", "1"))
#: The compiled router alone has workers.
HAS_WORKERS = _twin.is_compiled("trouter.net.tallies")
needs_workers = pytest.mark.skipif(not HAS_WORKERS, reason="the interpreted router has no workers")
_LISTENING = re.compile(r"SERVER \(notice\) (?:\[W1\] )?Listening on (\S+):(\d+)")
_OPERATIONAL = re.compile(r"SERVER \(notice\) Operational")
#: Of a router whose workers are not joined with each other.
_EDGE = re.compile(r"mode:\s*edge\b")
_SEVERAL = re.compile(r"^\s*workers: *[2-9]", re.MULTILINE)
_WORKER = re.compile(r"^(.*?\(\w+\) )\[W\d+\] ")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class RunningRouter:
    """A started router. ``ports`` are those of its listeners, in the order in which it opened them."""

    def __init__(self, process: Process, configuration: Path) -> None:
        self.process = process
        #: The file that it was started with.
        self.configuration = configuration
        self.ports: list[int] = []
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def port(self) -> int:
        """Return the port of the first listener."""
        return self.ports[0]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(_WORKER.sub(r"\1", line.rstrip("\n")) if WORKERS > 1 else line.rstrip("\n"))
                if listening := _LISTENING.search(line):
                    self.ports.append(int(listening[2]))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for_line(self, pattern: str, count: int = 1) -> re.Match[str]:
        """Wait until ``count`` log lines match; return the match of the last of these."""
        wanted = re.compile(pattern)
        found: list[re.Match[str]] = []

        def enough() -> bool:
            found[:] = [match for line in self.lines if (match := wanted.search(line))]
            return len(found) >= count or self._ended

        with self._changed:
            self._changed.wait_for(enough, DEADLINE_S)
        end = "\n".join(self.lines[-20:])
        assert len(found) >= count, f"{len(found)} of {count} lines match {pattern!r} in the log, which ends:\n{end}"
        return found[count - 1]

    def matching(self, pattern: str) -> list[str]:
        """Return the log lines so far that match."""
        wanted = re.compile(pattern)
        with self._changed:
            return [line for line in self.lines if wanted.search(line)]

    def text(self) -> str:
        """Return the whole log so far."""
        with self._changed:
            return "\n".join(self.lines)

    def wait(self) -> int:
        """Wait for the process to end and for the rest of its log; return its exit status."""
        status = self.process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        return status

    def stop(self) -> int:
        """Send SIGTERM and wait for the end; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def resident_bytes(self) -> int:
        """Return the resident memory of the process in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES

    def open_files(self) -> int:
        """Return the count of the process's open descriptors."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def assert_no_fault_of_ours(self, since: int = 0) -> None:
        """Check that the log has no traceback or internal error from line ``since`` on."""
        text = "\n".join(self.lines[since:])
        found = re.search(r"Traceback|internal error", text)
        assert found is None, text[max(0, found.start() - 500) : found.start() + 5_000]


@contextmanager
def watched(
    command: Sequence[str], configuration: Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> Iterator[RunningRouter]:
    """Run a command and read its log; kill it at the end if it still runs."""
    with _watched(
        subprocess.Popen(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True), configuration
    ) as router:
        yield router


@contextmanager
def _watched(process: Process, configuration: Path) -> Iterator[RunningRouter]:
    with process:
        router = RunningRouter(process, configuration)
        try:
            yield router
        finally:
            if process.poll() is None:
                process.kill()
            router.wait()


@contextmanager
def _started(configuration: Path) -> Iterator[RunningRouter]:
    """Start a router as `trouter run` does: forked, unless the test has changed its environment or network."""
    words = [str(Path(sys.executable).with_name("trouter")), "run", "-c", str(configuration)]
    if WORKERS > 1:
        words += ["--workers", str(WORKERS)]
    with _watched(Forked(words), configuration) if serves_here() else watched(words, configuration) as router:
        yield router


@contextmanager
def stopped_cleanly(router: RunningRouter) -> Iterator[None]:
    """Check at the end of the block that the router stops cleanly; stop it if it still runs."""
    yield
    if router.process.poll() is None:
        assert router.stop() == 0, router.text()
    router.assert_no_fault_of_ours()


@contextmanager
def process(configuration: str, folder: Path, suffix: str = ".conf") -> Iterator[RunningRouter]:
    """Run a router process with ``configuration``; kill it at the end if it still runs."""
    check_twin()
    if _SEVERAL.search(configuration) and not HAS_WORKERS:
        pytest.skip("the interpreted router has no workers")
    path = folder / f"trouter-{len(list(folder.iterdir()))}{suffix}"
    path.write_text(configuration, encoding="utf-8")
    with _started(path) as router:
        yield router


@contextmanager
def running(configuration: str, folder: Path, suffix: str = ".conf") -> Iterator[RunningRouter]:
    """Run a router and wait until it listens. At the end it must stop cleanly, if the test has not stopped it."""
    with process(configuration, folder, suffix) as router:
        if WORKERS == 1:
            router.wait_for_line(_OPERATIONAL.pattern)
        else:
            router.wait_for_line(rf"MAIN \(notice\) {WORKERS} workers serve")
            if not _EDGE.search(configuration):
                router.wait_for_line(r"router \S+ is a neighbour", WORKERS * (WORKERS - 1))
        with stopped_cleanly(router):
            yield router


@cache
def check_twin() -> None:
    """Check that the routers that tests start run the same twin of the hot modules as the tests."""
    version = subprocess.run(
        [sys.executable, "-m", "trouter", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert f"({_twin.running()}," in version.stdout


def any_worker(router_id: str) -> str:
    """Return a pattern for the ids of a router's workers; of a router of one process for its own."""
    return re.escape(router_id) + (r"(?:\.\d+)?" if WORKERS > 1 else "")


def same_worker(port: int) -> int:
    """Return the port; the next connection there comes to the worker of the last one, for they come to all in turn."""
    for _ in range(WORKERS - 1):
        socket.create_connection(("127.0.0.1", port), DEADLINE_S).close()
    return port


StartRouter = Callable[[str], RunningRouter]


@pytest.fixture
def start_router(tmp_path: Path) -> Iterator[StartRouter]:
    """Start routers that live as long as the test and must then stop cleanly."""
    with ExitStack() as stack:
        yield lambda configuration: stack.enter_context(running(configuration, tmp_path))


@pytest.fixture
def router(start_router: StartRouter, tmp_path: Path) -> RunningRouter:
    """Return a router for this test alone, with one listener without logins; management may write files and listen."""
    allowed = f"router {{\n    id: R\n    logDir: {tmp_path}\n    allowedBindAddresses: *\n}}\n"
    return start_router(allowed + PLAIN_LISTENER.partition("\n")[2])

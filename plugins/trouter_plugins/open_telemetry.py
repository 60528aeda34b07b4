"""Exports a span of each hop of a message by OpenTelemetry, in a process of its own.

``pluginSettings: {"open_telemetry": {"endpoint": "http://127.0.0.1:4318/v1/traces", "ratio": 0.01}}``. The router makes
small tuples of the spans; a thread writes them to the exporting process, so neither a slow receiver nor the SDK takes
the router's time. What does not fit into the queue is dropped and counted.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

from trouter.hooks import ConfigurationRefused, EndedSpan, MessageTracer, RouterFacts, hookimpl

#: Spans that wait for the exporting process.
MAX_WAITING: Final = 16384
#: Seconds before an exporting process that has ended is started again.
RESTART_S: Final = 5.0
#: Seconds that the end of the router waits for the last spans.
LAST_S: Final = 3.0
_EXAMPLE: Final = '{"open_telemetry": {"endpoint": "http://127.0.0.1:4318/v1/traces", "ratio": 0.01}}'

log = logging.getLogger("trouter.PLUGIN")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the plugin, by their names in the file."""

    endpoint: str
    ratio: float = 1
    newTraces: float = 0  # noqa: N815 - the name in the file
    propagate: bool = False


class Exporter:
    """The exporting process, with the queue to it and the thread that starts it and writes to it.

    The process ends when its input does, so also when the router is killed.
    """

    def __init__(self, endpoint: str, router: str) -> None:
        self._hello = {"endpoint": endpoint, "router": router}
        self._queue: SimpleQueue[list[EndedSpan] | None] = SimpleQueue()
        #: Spans in the queue; the thread subtracts, the router's loop adds.
        self._put = self._taken = 0
        self._dropped = self._lost = 0
        #: The process that runs, or ran last; None before the first.
        self.process: subprocess.Popen[bytes] | None = None
        self._closing = Event()
        self._thread = Thread(target=self._serve, name="spans", daemon=True)
        self._thread.start()
        atexit.register(self._finish)

    def put(self, spans: Sequence[EndedSpan], dropped: int) -> None:
        """Queue spans; drop them if there is no room. ``dropped`` were lost before."""
        self._dropped += dropped
        if self._put - self._taken + len(spans) > MAX_WAITING:
            self._dropped += len(spans)
        elif spans:
            self._put += len(spans)
            self._queue.put(list(spans))

    @property
    def dropped(self) -> int:
        """Spans that were dropped, or lost with an exporting process."""
        return self._dropped + self._lost

    def close(self) -> None:
        """Let the process export what is queued, and end."""
        atexit.unregister(self._finish)
        self._queue.put(None)
        self._closing.set()

    def _finish(self) -> None:
        """Close, and wait for the last spans."""
        self.close()
        self._thread.join(LAST_S)

    def _serve(self) -> None:
        """Run exporting processes, one after the other, until closed."""
        while not self._run_process():
            self._closing.wait(RESTART_S)

    def _run_process(self) -> bool:
        """Write spans to a new process; return True once closed, False if it ends before, or cannot be started."""
        try:
            process = self._start()
        except OSError as error:
            log.error(
                "open_telemetry: no exporting process can be started, it is tried again after %d s: %s",
                RESTART_S,
                error,
            )
            return self._closing.is_set()
        return self._write_to(process)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a process, apart from the signals of the router's terminal."""
        words = [sys.executable, "-m", "trouter_plugins.span_exporter"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - no word of a stranger
        return self.process

    def _write_to(self, process: subprocess.Popen[bytes]) -> bool:
        """Write spans to a process; return True once closed, False if the process has ended."""
        batch: list[EndedSpan] | None = []
        told = self.dropped
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            with process.stdin as pipe:
                pipe.write(_line_of(self._hello))
                while (batch := self._queue.get()) is not None:
                    self._taken += len(batch)
                    pipe.write(_line_of(batch))
                    pipe.flush()
                    if self.dropped > told:
                        log.warning("open_telemetry: %d spans were dropped, because too many wait", self.dropped - told)
                        told = self.dropped
            process.wait(LAST_S)
        except OSError as error:
            self._lost += len(batch or ())
            log.error(
                "open_telemetry: the exporting process has ended, it is started again after %d s: %s", RESTART_S, error
            )
            process.wait()
            return False
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True


def _line_of(value: object) -> bytes:
    """Return a value for the exporting process: a line of JSON, in which each octet is a character."""
    return json.dumps(value, default=lambda octets: octets.decode("latin-1")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Tracer:
    """The tracer of one router."""

    exporter: Exporter
    ratio: float
    one_in: int
    propagates: bool

    def export(self, spans: Sequence[EndedSpan], dropped: int) -> None:
        """See ``MessageTracer``."""
        self.exporter.put(spans, dropped)


class Plugin:
    """The tracer of one router; it traces nothing unless it is configured."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._exporter: Exporter | None = None
        #: What the exporter was made for: the endpoint and the router.
        self._made_for = ("", "")

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        """Take the settings: where spans go, of which messages."""
        self._settings = read_settings(router.settings) if router.settings else None

    @hookimpl
    def message_tracer(self, router: RouterFacts) -> MessageTracer | None:
        settings = self._settings
        wanted = ("", "") if settings is None else (settings.endpoint, router.id)
        if self._exporter is not None and self._made_for != wanted:
            self._exporter.close()
            self._exporter = None
        if settings is None:
            return None
        if self._exporter is None:
            self._exporter, self._made_for = Exporter(*wanted), wanted
        one_in = round(1 / settings.newTraces) if settings.newTraces else 0
        return Tracer(self._exporter, settings.ratio, one_in, settings.propagate)


def read_settings(given: Mapping[str, object]) -> Settings:
    """Return the settings; ConfigurationRefused with all problems."""
    unknown = sorted(given.keys() - set(Settings.__dataclass_fields__))
    problems = [f"there is no setting {name}; write {_EXAMPLE}" for name in unknown]
    endpoint, propagate = given.get("endpoint", ""), given.get("propagate", False)
    if not isinstance(endpoint, str) or urlsplit(endpoint).scheme not in ("http", "https"):
        problems.append(f"endpoint must be the URL of a receiver of OTLP over HTTP; write {_EXAMPLE}")
    if not isinstance(propagate, bool):
        problems.append("propagate must be true or false")
    shares = {name: given.get(name, default) for name, default in (("ratio", 1), ("newTraces", 0))}
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            problems.append(f"{name} must be a number from 0 (none) to 1 (all)")
    if not problems and importlib.util.find_spec("opentelemetry") is None:
        problems.append("OpenTelemetry's SDK is missing: install trouter[otel]")
    if problems:
        raise ConfigurationRefused(*problems)
    return Settings(str(endpoint), float(str(shares["ratio"])), float(str(shares["newTraces"])), propagate is True)

"""The progress of a job on stderr: one changing line on a terminal, few lines elsewhere.

A job calls ``progress("reading 12 segments")`` at each step. While Spark works, `watching` adds the numbers of finished
tasks, and of a stream's batches and rows. Spark must be polled for its stages and reports batches in its own thread, so
a thread polls and prints; it ends with the block.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between polls of Spark on a terminal, and between lines elsewhere.
LOOK_S: Final = 0.5
LINE_S: Final = 10.0
_WIDTH: Final = 100


class Progress:
    """Prints progress. A terminal's last line is overwritten; elsewhere details come at most every ``LINE_S``.

    Call it with a text to begin a step. Any thread may call it.
    """

    def __init__(
        self,
        name: str,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._step = ""
        self._shown = ""
        self._next = 0.0
        self._open = False

    def __call__(self, step: str) -> None:
        """Begin a step."""
        with self._lock:
            self._end_line()
            self._step = step
            self._shown = ""
            self._next = self._clock() + LINE_S
            self._print(step)

    def detail(self, text: str) -> None:
        """Print how far the step is."""
        with self._lock:
            now = self._clock()
            if text == self._shown or (not self._terminal and now < self._next):
                return
            self._shown = text
            self._next = now + LINE_S
            self._print(f"{self._step}: {text}" if self._step else text)

    def close(self) -> None:
        """End the line, so that later output begins a new one."""
        with self._lock:
            self._end_line()

    def _end_line(self) -> None:
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
            self._open = False

    def _print(self, text: str) -> None:
        if self._quiet:
            return
        line = f"{self._name}: {text}"
        if self._terminal:
            self._stream.write(f"\r{line[:_WIDTH]}\x1b[K")
            self._open = True
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Print Spark's tasks and its streams' batches while the block runs."""
        if self._quiet:
            yield
            return
        done = threading.Event()
        listener = _listener(self)
        spark.streams.addListener(listener)
        thread = threading.Thread(target=self._look, args=(spark, done), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            spark.streams.removeListener(listener)
            self.close()

    def _look(self, spark: SparkSession, done: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not done.wait(LOOK_S):
            finished = total = 0
            try:
                for stage in tracker.getActiveStageIds():
                    if (info := tracker.getStageInfo(stage)) is not None:
                        finished += info.numCompletedTasks
                        total += info.numTasks
            except Exception as gone:  # noqa: BLE001  # py4j raises many types when the JVM is gone; the job reports it
                self.detail(f"Spark does not answer ({type(gone).__name__})")
                return
            if total:
                self.detail(f"{finished} of {total} tasks done")


def batch_line(progress: str) -> str | None:
    """Return a text for a batch by Spark's JSON of it; None for one without rows."""
    values: dict[str, Any] = json.loads(progress)
    rows = int(values.get("numInputRows") or 0)
    if not rows:
        return None
    name = values.get("name") or "stream"
    rate = values.get("processedRowsPerSecond")
    return f"{name}, batch {values['batchId']}: {rows:,} rows" + (f", {rate:,.0f} a second" if rate else "")


def _listener(progress: Progress) -> Any:
    """Return a listener that Spark calls in its own thread; exceptions in it reach only Spark's log."""
    from pyspark.sql.streaming.listener import StreamingQueryListener  # noqa: PLC0415  # Spark is here by now

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's names
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            if line := batch_line(event.progress.json):
                progress.detail(line)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            if event.exception:
                progress.detail("the stream failed")

    return Listener()

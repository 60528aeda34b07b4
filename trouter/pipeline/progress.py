"""What a job is at, told on stderr while it runs: one line that changes on a terminal, few lines elsewhere.

A job calls ``progress("reading 12 segments")`` at each of its steps. While Spark works, `watching` adds what Spark says
of itself: how many tasks of how many are done, and of streams the batches and rows. Spark tells of its stages only when
asked and of batches from a thread of its own, so a thread asks and prints; it ends with the block.
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

#: How often Spark is asked on a terminal, and how often a line is printed where there is none; seconds.
LOOK_S: Final = 0.5
LINE_S: Final = 10.0
_WIDTH: Final = 100


class Progress:
    """Tells people. On a terminal the last line is written anew; elsewhere details come at most each ``LINE_S``.

    Called with a text, it begins a step. Any thread may call it.
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
        self._told = ""
        self._next = 0.0
        self._open = False

    def __call__(self, step: str) -> None:
        """Begin a step."""
        with self._lock:
            self._end_line()
            self._step = step
            self._told = ""
            self._next = self._clock() + LINE_S
            self._print(step)

    def detail(self, text: str) -> None:
        """How far the step is."""
        with self._lock:
            now = self._clock()
            if text == self._told or (not self._terminal and now < self._next):
                return
            self._told = text
            self._next = now + LINE_S
            self._print(f"{self._step}: {text}" if self._step else text)

    def close(self) -> None:
        """What comes next stands on a line of its own."""
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
        """While the block runs, tell of Spark's tasks and of the batches of its streams."""
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
            except Exception as gone:  # noqa: BLE001  # py4j raises what it likes when the JVM is gone; the job tells of it
                self.detail(f"Spark does not answer ({type(gone).__name__})")
                return
            if total:
                self.detail(f"{finished} of {total} tasks done")


def batch_line(progress: str) -> str | None:
    """What is said of a batch, from Spark's JSON of it; None for one without rows."""
    said: dict[str, Any] = json.loads(progress)
    rows = int(said.get("numInputRows") or 0)
    if not rows:
        return None
    name = said.get("name") or "stream"
    rate = said.get("processedRowsPerSecond")
    return f"{name}, batch {said['batchId']}: {rows:,} rows" + (f", {rate:,.0f} a second" if rate else "")


def _listener(progress: Progress) -> Any:
    """A listener that Spark calls from a thread of its own; what it raises would end up in Spark's log only."""
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

"""The progress of a job: all of it on a terminal, little of it in a log."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.clock import Clock
from trouter_pipeline.progress import LINE_S, Progress, batch_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_each_step_and_details_from_time_to_time() -> None:
    log, clock = io.StringIO(), Clock()
    progress = Progress("meter", log, clock=clock)
    progress("reading")
    progress.detail("1 of 9 tasks done")
    clock.now_s = LINE_S
    progress.detail("5 of 9 tasks done")
    progress.detail("6 of 9 tasks done")
    progress("writing")
    progress.close()
    assert log.getvalue() == "meter: reading\nmeter: reading: 5 of 9 tasks done\nmeter: writing\n"


def test_a_terminal_gets_one_line_a_step_that_changes() -> None:
    screen = Terminal()
    progress = Progress("meter", screen, clock=Clock())
    progress("reading")
    progress.detail("1 of 9 tasks done")
    progress.detail("2 of 9 tasks done")
    progress("writing")
    progress.close()
    assert [line.split("\r")[-1].removesuffix("\x1b[K") for line in screen.getvalue().split("\n")] == [
        "meter: reading: 2 of 9 tasks done",
        "meter: writing",
        "",
    ]


def test_quiet_is_quiet() -> None:
    screen = Terminal()
    progress = Progress("meter", screen, quiet=True)
    progress("reading")
    progress.detail("1 of 9")
    progress.close()
    assert not screen.getvalue()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"name": "land", "batchId": 3, "numInputRows": 10000, "processedRowsPerSecond": 2345.6}',
         "land, batch 3: 10,000 rows, 2,346 a second"),
        ('{"name": null, "batchId": 0, "numInputRows": 1}', "stream, batch 0: 1 rows"),
        ('{"name": "land", "batchId": 4, "numInputRows": 0}', None),
    ],
)  # fmt: skip
def test_a_batch_is_reported_in_a_line_unless_the_batch_is_empty(text: str, line: str | None) -> None:
    assert batch_line(text) == line


def test_the_progress_shows_the_work_of_spark(spark: SparkSession) -> None:
    from pyspark.sql import DataFrame

    log = io.StringIO()
    clock = iter(range(0, 10**9, int(LINE_S)))
    progress = Progress("job", log, clock=lambda: next(clock))

    def land(frame: DataFrame, _: int) -> None:
        frame.count()

    with progress.watching(spark):
        query = (
            spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 7).load()
            .writeStream.queryName("sevens").trigger(processingTime="0 seconds").foreachBatch(land).start()
        )  # fmt: skip
        try:
            while "job: sevens, batch" not in log.getvalue():
                assert query.isActive
                query.awaitTermination(1)
        finally:
            query.stop()
    assert not [line for line in log.getvalue().splitlines() if "does not answer" in line]

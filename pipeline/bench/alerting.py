"""How many logins a second the judges take: alone, and with Spark around them, over a table and a stream."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.chapters import Bench
from bench.measure import Sample
from pipeline.tests.attacked import noisy_day
from pipeline.tests.generate import DAY, START, Scribe
from pipeline.tests.test_attacks import Key, Numbered, numbered, rows_of
from trouter_pipeline.attacks import Limits
from trouter_pipeline.compact import compact, here
from trouter_pipeline.datasets import Records, dataset
from trouter_pipeline.detector import judged_in_order, step
from trouter_pipeline.jobs import audit
from trouter_pipeline.session import session
from trouter_pipeline.streams import Pace, watch

#: Logins that a judge gets at once in a stream.
_BATCH: Final = 2000
_LATE_S: Final = 120


def alerts(bench: Bench) -> None:
    """Measure ordinary days, one after the other, with about 25,000 logins and denials each."""
    days = 8 if bench.extent.everything else 2
    records = numbered(record for day in range(days) for record in noisy_day(day, begin=START + day * DAY))
    bench.interleave(
        f"logins judged, {len(records)}",
        {"one piece": partial(_timed, len(records), partial(_judge, records)),
         "in batches": partial(_timed, len(records), partial(_judge_batches, records))},
    )  # fmt: skip
    folder = bench.new_folder("records")
    scribe = Scribe(folder)
    scribe.write_all([record for *_, record in records], 5000)
    scribe.stop()
    root = bench.new_folder("root")
    compact([folder], root, run=here)
    spark = session("bench", master="local[2]", settings={"spark.ui.enabled": "false"})
    try:
        bench.interleave(
            f"logins judged on Spark, {len(records)}",
            {"table": partial(_timed, len(records), partial(_table, spark, root)),
             "stream": partial(_timed, len(records), partial(_stream, spark, bench, folder))},
        )  # fmt: skip
    finally:
        spark.stop()


def _timed(count: int, work: Callable[[], None]) -> Sample:
    """Return the sample of some work; CPU is that of this process, which contains the judges without Spark."""
    cpu_ns, begun = time.process_time_ns(), time.perf_counter()
    work()
    took_s = time.perf_counter() - begun
    return Sample((time.process_time_ns() - cpu_ns) / 1e3 / count, count / took_s, count)


def _judge(records: list[Numbered]) -> None:
    detector = audit.Attacks(Limits())
    subjects: dict[Key, list[tuple[Any, ...]]] = defaultdict(list)
    for key, row in rows_of(records):
        subjects[key].append(row)
    for key, rows in subjects.items():
        for _ in judged_in_order(detector, key, sorted(rows)):
            pass


def _judge_batches(records: list[Numbered]) -> None:
    detector = audit.Attacks(Limits())
    kept: dict[Key, bytes | None] = {}
    watermark = 0
    for first in range(0, len(records), _BATCH):
        subjects: dict[Key, list[tuple[Any, ...]]] = defaultdict(list)
        for key, row in rows_of(records[first : first + _BATCH]):
            subjects[key].append(row)
        for key, rows in subjects.items():
            kept[key] = step(detector, key, kept.get(key), rows, watermark).kept
        watermark = records[min(first + _BATCH, len(records)) - 1][3].t - _LATE_S * 1_000_000


def _table(spark: Any, root: Path) -> None:
    frames = (dataset(spark, Records(root), kind) for kind in audit.KINDS)
    audit.alerts(audit.sightings(audit.of_data_sets(*frames)), Limits()).collect()


def _stream(spark: Any, bench: Bench, folder: Path) -> None:
    pace = Pace(late_s=_LATE_S)
    root = bench.new_folder("streamed")
    followed = audit.followed(spark, [folder])
    watch(lambda: audit.follow(followed, root, root / "checkpoint", audit.Parameters(pace=pace)), pace)

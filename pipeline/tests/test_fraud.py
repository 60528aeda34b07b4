"""Fraud: planted frauds are found among many payments, decoys are not, by join and by judge, in tables and streams."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from pipeline.tests.generate import HOUR, MINUTE, SECOND, START
from pipeline.tests.oracles.fraud import Paid, frauds
from trouter_pipeline.delta import BadTable
from trouter_pipeline.detector import judged_in_order, step
from trouter_pipeline.jobs import fraud
from trouter_pipeline.streams import Pace, watch
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id bigint, card string, t_us bigint, channel string, amount string, place string"
PLAIN = fraud.Pattern(place="place")


class Bank:
    """Payments, numbered."""

    def __init__(self) -> None:
        self.paid: list[Paid] = []

    def pay(self, card: str, t_us: int, channel: str, amount: str, place: str = "Graz") -> Paid:
        self.paid.append(Paid(len(self.paid), card, t_us, channel, amount, place))
        return self.paid[-1]


def day(seed: int, payments: int = 3000, planted: int = 40) -> tuple[list[Paid], set[tuple[str, int, int]]]:
    """Return ordinary payments of 500 cards with frauds in them, and with payments that only resemble one."""
    chance = random.Random(seed)
    bank = Bank()
    for _ in range(payments):
        channel = chance.choice(("online", "atm", "store"))
        amount = chance.choice(("3.10", "49.90", "120.00", "499.99", "800.00")) if channel != "atm" else "100.00"
        bank.pay(f"card-{chance.randrange(500)}", START + chance.randrange(20 * HOUR), channel, amount)
    cases = set()
    gaps = [0, 1, SECOND, 59 * MINUTE, HOUR - 1, HOUR]
    for number in range(planted):
        card, t = f"stolen-{number}", START + chance.randrange(20 * HOUR)
        small = bank.pay(card, t, "online", chance.choice(("2.00", "0.01", "1.99")))
        gap = gaps[number] if number < len(gaps) else chance.randrange(HOUR)
        large = bank.pay(
            card, t + gap, "atm", chance.choice(("500", "500.00", "2000")), chance.choice(("Graz", "Lima"))
        )
        cases.add((card, large.id, small.id))
    for number in range(planted):
        t, decoy = START + chance.randrange(20 * HOUR), f"decoy-{number}-"
        for name, (first, later, second) in {
            "reverse": (("atm", "900"), 5, ("online", "1.00")),
            "late": (("online", "1.00"), HOUR + 1, ("atm", "900")),
            "store": (("online", "1.00"), 5, ("store", "900")),
            "more": (("online", "2.01"), 5, ("atm", "900")),
            "less": (("online", "2.00"), 5, ("atm", "499.99")),
        }.items():
            bank.pay(decoy + name, t, *first)
            bank.pay(decoy + name, t + later, *second)
        bank.pay(decoy + "tester", t, "online", "1.00")
        bank.pay(decoy + "large", t, "atm", "900")
        bank.pay(f"mixed-{number}", t, "online", "1.00")
        bank.pay(f"unmixed-{number}", t + 5, "atm", "900")
    return bank.paid, cases


def judge(paid: Iterable[Paid], pattern: fraud.Pattern, batches: int = 0, seed: int = 0) -> set[tuple[str, int, int]]:
    """Return the judges' findings for each card, over a table, or over batches with rows up to two minutes late."""
    detector = fraud.Cards(pattern)
    rows = defaultdict(list)
    for each in paid:
        if (each.channel == "online" and Decimal(each.amount) <= 2) or (
            each.channel == "atm" and Decimal(each.amount) >= 500
        ):
            row = (each.t_us, each.channel == "atm", str(each.id), each.amount, each.place)
            rows[(each.card,)].append(row)
    found: list[tuple[Any, ...]] = []
    if not batches:
        for key, these in rows.items():
            found += judged_in_order(detector, key, sorted(these))
        return {(row[0], int(row[6]), int(row[2])) for row in found}
    chance = random.Random(seed)
    arriving = sorted(
        ((row[0] + chance.randrange(2 * MINUTE), key, row) for key, these in rows.items() for row in these * 2)
    )
    kept: dict[Any, bytes | None] = {}
    watermark, latest = 0, 0
    size = len(arriving) // batches + 1
    for number in range(batches + 1):
        batch = arriving[number * size : (number + 1) * size]
        subjects = defaultdict(list)
        for _, key, row in batch:
            if row[0] > watermark:
                subjects[key].append(row)
        for key in {*kept, *subjects}:
            done = step(detector, key, kept.get(key), subjects[key], watermark)
            found += done.rows
            kept[key] = done.kept
        latest = max([latest, *(row[0] for *_, row in batch)])
        watermark = latest - 2 * MINUTE
    for key, state in kept.items():
        found += step(detector, key, state, [], latest + 2 * HOUR).rows
        assert step(detector, key, state, [], latest + 2 * HOUR).kept is None
    return {(row[0], int(row[6]), int(row[2])) for row in found}


def test_a_judge_finds_exactly_the_planted_frauds() -> None:
    paid, cases = day(1)
    assert frauds(paid) == cases
    assert judge(paid, PLAIN) == cases
    assert judge([*paid, *paid[::3]], PLAIN, batches=7, seed=2) == cases


@pytest.mark.parametrize(
    ("pattern", "given"),
    [
        (replace(PLAIN, testers=2), {"testers": 2}),
        (replace(PLAIN, mute_s=1800), {"mute_us": 1800 * SECOND}),
        (replace(PLAIN, elsewhere=True), {"elsewhere": True}),
        (replace(PLAIN, testers=2, mute_s=60, elsewhere=True), {"testers": 2, "mute_us": MINUTE, "elsewhere": True}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_counts_muting_and_places_equal_the_oracle(pattern: fraud.Pattern, given: dict[str, Any], seed: int) -> None:
    chance = random.Random(seed)
    bank = Bank()
    for _ in range(600):
        kind = chance.choice((("online", "1.00"), ("atm", "600")))
        t = START + chance.choice((0, 30 * MINUTE, HOUR)) + chance.randrange(100) * chance.choice((MINUTE, 1))
        bank.pay(f"card-{chance.randrange(12)}", t, *kind, chance.choice(("Graz", "Lima")))
    expected = frauds(bank.paid, **given)
    assert expected
    assert judge(bank.paid, pattern) == expected
    assert judge(bank.paid, pattern, batches=5, seed=seed) == expected


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"tester_at_most": "two"}, "must be an amount"),
        ({"large_at_least": "NaN"}, "must be an amount"),
        ({"testers": 0}, "testers is 0"),
        ({"testers": 65}, "testers is 65"),
        ({"mute_s": -1}, "not negative"),
        ({"place": None, "elsewhere": True}, "column of the place"),
        ({"large": "online"}, "two kinds"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(PLAIN, **changed)


def stored(frame: DataFrame) -> list[tuple[str, int, int]]:
    rows: list[Any] = frame.collect()
    return sorted((row["key"], row["large_n"], int(row["tester_id"])) for row in rows)


def test_the_table_is_the_same_by_join_and_by_judge(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    paid, cases = day(1, payments=500)
    twice = spark.createDataFrame([tuple(each) for each in [*paid, *paid[::5]]], COLUMNS)
    broken = spark.createDataFrame(
        [(9_000_001, None, START, "atm", "600", "x"), (9_000_002, "c", START, "atm", "much", "x")], COLUMNS
    )
    events = twice.unionByName(broken).withColumn("t", F.timestamp_micros("t_us"))
    summary = fraud.run(tmp_path, events, PLAIN, lambda _: None, {"payments": 1})
    assert (summary.alerts, summary.unusable) == (len(cases), 2)
    table = Table(tmp_path, fraud.TABLE).read(spark)
    assert stored(table) == sorted(cases)
    assert all(isinstance(row["large_amount"], Decimal) for row in table.collect())
    assert stored(fraud.latest(fraud.judged(fraud.candidates(fraud.payments(events, PLAIN), PLAIN), PLAIN))) == sorted(
        cases
    )
    assert fraud.run(tmp_path, events, PLAIN, lambda _: None, {"payments": 1}).nothing is not None
    DeltaTable(str(Table(tmp_path, fraud.TABLE).folder)).delete()
    with pytest.raises(BadTable, match=r"DELETE of another program changed rows, .*`trouter pipeline fraud --again`"):
        fraud.run(tmp_path, events, PLAIN, lambda _: None, {"payments": 1})
    fraud.run(tmp_path, events, PLAIN, lambda _: None, {"payments": 1}, again=True)
    assert stored(Table(tmp_path, fraud.TABLE).read(spark)) == sorted(cases)
    abroad = replace(PLAIN, elsewhere=True)
    fraud.run(tmp_path, events, abroad, lambda _: None, {"payments": 1})
    assert stored(Table(tmp_path, fraud.TABLE).read(spark)) == sorted(frauds(paid, elsewhere=True))
    with pytest.raises(fraud.MissingColumn, match="no column 'pan'; they have id, card"):
        fraud.payments(events, replace(PLAIN, key="pan"))


@pytest.mark.pipeline_long
def test_a_stream_finds_them_whichever_came_first(spark: SparkSession, tmp_path: Path) -> None:
    """Bodies of JSON, in three batches; each withdrawal may come before the small payment, and some come twice."""
    from pyspark.sql import functions as F  # noqa: N812

    paid, cases = day(2, payments=200)
    chance = random.Random(2)
    arriving = sorted([*paid, *paid[::7]], key=lambda each: each.t_us + chance.randrange(2 * MINUTE))
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        part = arriving[number * len(arriving) // 3 : (number + 1) * len(arriving) // 3]
        lines = [json.dumps({"body": json.dumps(each._asdict())}) for each in part]
        (folder / f"{number}.json").write_text("\n".join(lines), encoding="utf-8")
    stream = spark.readStream.schema("body string").option("maxFilesPerTrigger", 1).json(str(folder))
    events = fraud.read_bodies(stream, "body", COLUMNS).withColumn("t", F.timestamp_micros("t_us"))
    pace = Pace(late_s=86_400)
    start = partial(fraud.follow, events, tmp_path / "root", tmp_path / "checkpoint", PLAIN, pace)
    assert watch(start, pace).late == 0
    assert stored(Table(tmp_path / "root", fraud.TABLE).read(spark)) == sorted(cases)

"""Repairs of the meter beside a walk over every record, with records lost and counts damaged at random."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from trouter_pipeline.gaps import Boot
from trouter_pipeline.metering.counters import COUNTED, HOUR_US, SUBJECTS
from trouter_pipeline.metering.engines import InProcess
from trouter_pipeline.metering.repairs import NO_END, Missing, stretches_of
from trouter_pipeline.metering.traffic import meter

pytestmark = pytest.mark.one_twin

COUNTERS = tuple(COUNTED.values())
FIRST_DAY = date(2026, 3, 1)
BEGIN_US = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
DAYS = [FIRST_DAY + timedelta(days=number) for number in range(3)]
PLAIN: dict[str, pa.DataType] = {
    "router": pa.string(), "boot": pa.int64(), "link": pa.int64(), "n": pa.int64(), "t_us": pa.int64(),
    "vhost": pa.string(), "user": pa.string(), "addr": pa.string(), "dir": pa.string(), "date": pa.date32(),
    "repeat": pa.int64(),
}  # fmt: skip
INTERVAL = PLAIN | {"t0": pa.int64(), "t1": pa.int64(), "final": pa.bool_()}
INTERVAL |= {f"{prefix}_{name}": pa.int64() for prefix in "dc" for name in COUNTERS}
Row = dict[str, Any]


@dataclass
class Recorded:
    """Records of a few links of a few starts of a router, of which some numbers are missing."""

    intervals: list[Row] = field(default_factory=list)
    attached: list[Row] = field(default_factory=list)
    detached: list[Row] = field(default_factory=list)
    missing: dict[Boot, list[Missing]] = field(default_factory=dict)

    def lose(self, boot: int, ranges: Iterable[tuple[int, int]]) -> None:
        self.missing["r", boot] = [Missing(*each) for each in ranges]
        for rows in (self.intervals, self.attached, self.detached):
            rows[:] = [
                row
                for row in rows
                if row["boot"] != boot or not any(a <= row["n"] <= b for a, b in self.missing["r", boot])
            ]


@dataclass
class Link:
    """What a link has sent so far."""

    subjects: tuple[str, str | None, str, str]
    counts: dict[str, int]
    state: str
    t0: int


def recorded(random: Random) -> Recorded:
    found = Recorded()
    for boot in range(random.randint(1, 3)):
        _start(random, found, boot)
    return found


def _start(random: Random, found: Recorded, boot: int) -> None:
    t_us = BEGIN_US + random.randrange(3) * HOUR_US
    links = [
        Link(
            (
                f"v{random.randrange(2)}",
                random.choice(["u", None]),
                f"a{random.randrange(2)}",
                random.choice(["in", "out"]),
            ),
            {name: random.randrange(9) if older else 0 for name in COUNTERS},
            "on" if older else "new",
            t_us,
        )
        for older in (random.random() < 0.15 for _ in range(random.randint(1, 5)))
    ]
    n = 0
    for _ in range(random.randint(3, 40)):
        number = random.randrange(len(links))
        link = links[number]
        t_us += random.randrange(1, HOUR_US // 2)
        day = datetime.fromtimestamp(t_us / 1e6, UTC).date()
        row = {"router": "r", "boot": boot, "link": number, "n": n, "t_us": t_us, "date": day}
        row |= dict(zip(SUBJECTS, link.subjects, strict=True))
        if link.state == "new":
            found.attached.append(row)
            link.state, link.t0 = "on", t_us
        elif link.state == "on":
            if random.random() < 0.05:
                row["vhost"] = "another"
            moved = {name: random.choice([0, 0, 1, 5]) for name in COUNTERS}
            link.counts = {name: link.counts[name] + moved[name] for name in COUNTERS}
            ends = random.random() < 0.2
            row |= {"t0": link.t0, "t1": t_us, "final": ends}
            row |= {f"d_{name}": moved[name] for name in COUNTERS} | {
                f"c_{name}": link.counts[name] for name in COUNTERS
            }
            found.intervals.append(row)
            link.state, link.t0 = "final" if ends else "on", t_us
        elif link.state == "final":
            found.detached.append(row)
            link.state = "over"
        else:
            continue
        n += 1
    ranges, at = [], 0
    while at < n:
        last = min(n - 2, at + random.randrange(5))
        if random.random() < 0.12 and last >= at:
            ranges.append((at, last))
            at = last + 1
        at += 1
    if random.random() < 0.7:
        ranges.append((n, NO_END))
    if ranges:
        found.lose(boot, ranges)


# --- what the meter should say


def walked(found: Recorded) -> set[tuple[Any, ...]]:
    """Return the rows of the meter, from a walk over each link's records."""
    sums: defaultdict[tuple[Any, ...], dict[str, int]] = defaultdict(
        lambda: dict.fromkeys((*COUNTED, "rows", "estimated"), 0)
    )
    wrong: set[tuple[Any, ...]] = set()
    links: defaultdict[tuple[Any, ...], list[tuple[str, Row]]] = defaultdict(list)
    for row in found.intervals:
        key = _key(row["t0"], row)
        for name, source in COUNTED.items():
            sums[key][name] += row[f"d_{source}"]
        sums[key]["rows"] += 1
        links[row["router"], row["boot"], row["link"]].append(("final" if row["final"] else "interval", row))
    for what, rows in (("attached", found.attached), ("detached", found.detached)):
        for row in rows:
            links[row["router"], row["boot"], row["link"]].append((what, row | {"t0": row["t_us"]}))
    for (router, boot, _), events in links.items():
        if (router, boot) in found.missing and not _whole(events):
            _walk(sorted(events, key=lambda event: event[1]["n"]), found.missing[router, boot], sums, wrong)
    return {(*key, *values.values(), key not in wrong) for key, values in sums.items()}


def _key(moment_us: int, row: Row) -> tuple[Any, ...]:
    return moment_us - moment_us % HOUR_US, *(row[name] for name in SUBJECTS)


def _whole(events: list[tuple[str, Row]]) -> bool:
    """Return whether the counts of a link prove that all its records are there."""
    own = [row for what, row in events if what in {"interval", "final"}]
    if not own or not any(row["final"] for row in own):
        return False
    counts = [(_weighed("c", row), _weighed("d", row)) for row in own]
    proved: bool = sum(d for _, d in counts) == max(c for c, _ in counts) and min(c - d for c, d in counts) == 0
    return proved


def _weighed(prefix: str, row: Row) -> int:
    """Return one number of all counters, which differs for counts that only agree in sum."""
    return sum(weight * int(row[f"{prefix}_{name}"]) for weight, name in enumerate(COUNTERS, 1))


def _walk(
    events: list[tuple[str, Row]],
    missing: list[Missing],
    sums: defaultdict[tuple[Any, ...], dict[str, int]],
    wrong: set[tuple[Any, ...]],
) -> None:
    before: tuple[str, Row] | None = None
    for what, row in events:
        gap = any((-1 if before is None else before[1]["n"]) < each.from_n < row["n"] for each in missing)
        if what in {"interval", "final"}:
            known = before[1] if before is not None and before[0] in {"interval", "final"} else {}
            grown = {
                name: row[f"c_{source}"] - row[f"d_{source}"] - known.get(f"c_{source}", 0)
                for name, source in COUNTED.items()
            }
            key = _key(row["t0"], row)
            if min(grown.values()) < 0 or (any(grown.values()) and not gap and before is not None):
                wrong.add(key)
            elif any(grown.values()) and gap:
                for name, count in grown.items():
                    sums[key][name] += count
                sums[key]["estimated"] += grown["msgs"]
        last = before
        before = what, row
    what, row = events[-1]
    lost_after = any(each.from_n > row["n"] for each in missing)
    just_before = any(each.to_n == row["n"] - 1 for each in missing)
    if what == "detached":
        what_before = "attached" if last is None else last[0]
        if what_before == "interval" or (what_before == "attached" and just_before):
            wrong.add(_touched(sums, _key(row["t0"] if last is None else last[1]["t0"], row)))
    elif what != "final" and lost_after:
        wrong.add(_touched(sums, _key(row["t0"], row)))


def _touched(sums: defaultdict[tuple[Any, ...], dict[str, int]], key: tuple[Any, ...]) -> tuple[Any, ...]:
    sums[key]["rows"] += 0
    return key


# --- what it says


def metered(found: Recorded) -> set[tuple[Any, ...]]:
    engine = InProcess()
    engine.rows("intervals", pa.Table.from_pylist(found.intervals, pa.schema(INTERVAL)))
    for name, rows in (("attached", found.attached), ("detached", found.detached)):
        engine.rows(name, pa.Table.from_pylist(rows, pa.schema(PLAIN)))
    with engine.sized(len(found.intervals)):
        rows = meter(engine, found.missing, (), DAYS).to_pylist()
    names = (*SUBJECTS, *COUNTED, "rows", "estimated_msgs", "complete")
    return {(int(row["hour"].timestamp()) * 1_000_000, *(row[name] for name in names)) for row in rows}


@pytest.mark.parametrize("seed", range(40))
def test_the_meter_says_what_a_walk_over_every_record_says(seed: int) -> None:
    found = recorded(Random(seed))
    assert metered(found) == walked(found)


@pytest.mark.parametrize("seed", range(40, 60))
def test_a_damaged_count_is_noticed_wherever_it_is(seed: int) -> None:
    random = Random(seed)
    found = recorded(random)
    doubted = [row for row in found.intervals if ("r", row["boot"]) in found.missing]
    for row in doubted[: random.randrange(3)]:
        row[f"{random.choice('cd')}_{random.choice(COUNTERS)}"] += 1
    assert metered(found) == walked(found)


def test_stretches_lie_between_what_is_missing() -> None:
    missing = {
        ("a", 1): [Missing(3, 4), Missing(5, 6), Missing(9, NO_END)],
        ("b", 2): [Missing(0, 1), Missing(7, 7)],
    }
    rows = [tuple(row.values()) for row in stretches_of(missing).to_pylist()]
    assert rows == [("a", 1, 0, 0, 2), ("a", 1, 2, 7, 8), ("b", 2, 1, 2, 6), ("b", 2, 2, 8, NO_END)]

"""A log that keeps its oldest records has room for logins, denials, changes and alarms when links have filled it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.records.written import START, at, drops_of, lines_of, opened, taken
from trouter.records import Alarm, PolicyDecision, Record, SaslOutcomeRecord
from trouter.records.check import check_folder
from trouter.records.retention import RESERVE, Bounds
from trouter.records.stream import Taken
from trouter.records.writer import SegmentWriter

pytestmark = pytest.mark.attack

MAX_BYTES = 200_000


def login() -> Record:
    return SaslOutcomeRecord(
        t=START, conn=1, user="bob", mech="PLAIN", ok=True, code=0, reason="ok", delay_us=0, plugin="users_file"
    )


def decision(*, allow: bool) -> Record:
    return PolicyDecision(
        t=START, conn=1, user="bob", op="attach", allow=allow, rule="v:g:sources:1", reason="source", repeat=1
    )


def alarm() -> Record:
    return Alarm(t=START, name="quota", severity="warning", subject="x", state="raised")


def flooded(folder: Path, *, keeps_oldest: bool = True) -> SegmentWriter:
    """Return a writer for which records of links have come until it drops them."""
    writer = opened(folder, Bounds(max_bytes=MAX_BYTES, segment_bytes=20_000, keeps_oldest=keeps_oldest))
    for batch in range(60):
        writer.write(taken(50, batch * 50), at(batch * 0.01))
    return writer


def test_what_matters_most_is_written_when_links_have_filled_the_log(tmp_path: Path) -> None:
    writer = flooded(tmp_path)
    assert writer.dropped > 0
    assert MAX_BYTES - MAX_BYTES // RESERVE < writer.held_bytes < MAX_BYTES - MAX_BYTES // RESERVE // 2
    writer.write(
        Taken([login(), decision(allow=True), decision(allow=False), *taken(5).records, alarm()], Counter()), at(2)
    )
    writer.close(at(3))
    written = [line.record for line in lines_of(tmp_path)]
    assert [type(each) for each in written if not hasattr(each, "since")][:3] == [
        SaslOutcomeRecord,
        PolicyDecision,
        Alarm,
    ]
    assert [each.allow for each in written if isinstance(each, PolicyDecision)] == [False]
    assert sum(each.count for each in drops_of(tmp_path)) == writer.dropped
    assert check_folder(tmp_path).errors == []


def test_the_losses_of_a_log_in_its_reserve_are_reported_now_and_then(tmp_path: Path) -> None:
    writer = flooded(tmp_path)
    for batch in range(100):
        writer.write(taken(50), at(1 + batch * 0.1))
    assert 0 < len(drops_of(tmp_path)) <= 3
    assert [(news.state, news.value) for news in writer.news] == [("raised", "reserve")]
    writer.close(at(20))
    assert check_folder(tmp_path).errors == []


def test_a_log_that_deletes_its_oldest_records_keeps_no_reserve(tmp_path: Path) -> None:
    writer = flooded(tmp_path, keeps_oldest=False)
    assert writer.dropped == 0
    writer.close(at(3))

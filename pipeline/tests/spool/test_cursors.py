"""Several consumers of a spool: each has a cursor, and a message is deleted once every cursor has passed it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.tests.spool.support import fill, holds
from tests.waiting import until
from trouter.cli import main
from trouter_pipeline.spool import NoCursor, Spool, SpoolBusy, SpoolCorrupt, SpoolReader, cursors
from trouter_pipeline.spool.cursors import add_cursor, cursors_in, lags_of, remove_cursor

#: Seconds that only a hang takes.
PATIENCE_S = 120.0
#: A consumer: it reads behind the last number in its ledger, writes numbers into the ledger, and moves its cursor.
CONSUMER = """
import os, sys, time
from trouter_pipeline.spool import SpoolReader, parse_frames
folder, cursor, ledger, last = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
reader = SpoolReader(folder, cursor)
descriptor = os.open(ledger, os.O_RDWR | os.O_CREAT | os.O_APPEND)
position = os.fstat(descriptor).st_size // 8
assert reader.position <= position
while position < last:
    end = min(reader.durable(), position + 60)
    if end == position:
        time.sleep(0.001)
        continue
    frames = [frame for block in reader.blocks(position, end) for frame in parse_frames(block)]
    os.write(descriptor, b"".join(frame.message[5:13] for frame in frames))
    os.fsync(descriptor)
    position = end
    reader.consumed(position)
"""


def filled(folder: Path, *names: str) -> None:
    """Make a spool of four segments with five messages each."""
    with Spool.open(folder, segment_bytes=500, cursors=names) as spool:
        for _ in range(4):
            fill(spool, 5)


def positions(folder: Path) -> dict[str, int]:
    return {lag.cursor: lag.position for lag in lags_of(folder)}


def test_a_message_stays_until_every_cursor_has_passed_it(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500, cursors=["tables", "kafka"]) as spool:
        for _ in range(4):
            fill(spool, 5)
        tables, kafka = (SpoolReader(folder, name) for name in ("tables", "kafka"))
        tables.consumed(20)
        assert (spool.consumed, spool.slowest, spool.reap(), tables.first) == (0, "kafka", 0, 0)
        assert spool.backlog_bytes > 0
        kafka.consumed(11)
        assert (spool.consumed, spool.reap(), tables.first) == (11, 2, 10)
    kafka.consumed(16)  # no writer: the reader deletes
    assert (tables.first, tables.position, kafka.position) == (15, 20, 16)
    holds(folder, 15, 20)
    with Spool.open(folder) as spool:
        assert (spool.consumed, spool.next) == (16, 20)


def test_a_spool_without_names_has_the_default_cursor_and_the_files_of_before(folder: Path) -> None:
    filled(folder)
    assert cursors_in(folder) == ["default"]
    assert (folder / "consumed").exists()
    assert not list(folder.glob("*.cursor"))
    SpoolReader(folder).consumed(11)
    assert SpoolReader(folder).begin == 10  # as ever: the oldest message, also if it was consumed


def test_a_spool_made_with_cursors_has_only_these(folder: Path) -> None:
    filled(folder, "tables", "kafka")
    assert cursors_in(folder) == ["kafka", "tables"]
    with pytest.raises(NoCursor, match=r"has no cursor 'default' \(it has kafka, tables\): add it with `trouter"):
        SpoolReader(folder).consumed(5)
    with pytest.raises(NoCursor, match="no cursor 'tabels'"):
        _ = SpoolReader(folder, "tabels").begin
    with Spool.open(folder, cursors=["kafka", "lake"]):
        assert cursors_in(folder) == ["kafka", "lake", "tables"]


def test_a_cursor_that_is_added_has_what_is_there_or_only_what_comes(folder: Path) -> None:
    filled(folder)
    SpoolReader(folder).consumed(11)
    assert add_cursor(folder, "tables") == 10
    assert add_cursor(folder, "kafka", newest=True) == 20
    assert SpoolReader(folder, "kafka").begin == 20
    with Spool.open(folder, segment_bytes=500) as spool:
        SpoolReader(folder).consumed(20)
        assert (spool.reap(), spool.consumed, spool.slowest) == (0, 10, "tables")
        remove_cursor(folder, "tables")
        assert (spool.reap(), spool.consumed) == (2, 20)
        add_cursor(folder, "late")
        fill(spool, 5)
        SpoolReader(folder).consumed(25)
        SpoolReader(folder, "kafka").consumed(25)
        spool.reap()
        assert spool.consumed == SpoolReader(folder, "late").begin


def test_the_last_cursor_stays_and_names_are_plain(folder: Path) -> None:
    filled(folder)
    with pytest.raises(ValueError, match="'default' is the last cursor"):
        remove_cursor(folder, "default")
    with pytest.raises(ValueError, match="'default' already"):
        add_cursor(folder, "default")
    for name in ("", "../consumed", "a.b", "a" * 65, "-a", "a/b", "ä"):
        with pytest.raises(ValueError, match="no name of a cursor"):
            add_cursor(folder, name)
    with pytest.raises(NoCursor):
        remove_cursor(folder, "tables")
    for number in range(cursors.MAX_CURSORS - 1):
        add_cursor(folder, f"c{number}")
    with pytest.raises(ValueError, match="64 cursors"):
        add_cursor(folder, "more")


def test_nothing_is_deleted_while_cursors_are_changed(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(4):
            fill(spool, 5)
        with cursors.held(folder):
            SpoolReader(folder).consumed(11)
            assert spool.reap() == 0
            with pytest.raises(SpoolBusy, match=f"process {os.getpid()} has the cursors"):
                add_cursor(folder, "tables")
        assert spool.reap() == 2


def test_a_damaged_cursor_is_an_error_and_deletes_nothing(folder: Path) -> None:
    filled(folder, "tables", "kafka")
    (folder / "kafka.cursor").write_bytes(b"?" * 16)
    with pytest.raises(SpoolCorrupt, match=r"kafka\.cursor"):
        Spool.open(folder)
    with pytest.raises(SpoolCorrupt, match=r"kafka\.cursor"):
        SpoolReader(folder, "tables").consumed(20)
    holds(folder, 0, 20)


def test_lags_are_messages_bytes_and_the_arrival_of_the_oldest(folder: Path) -> None:
    filled(folder, "tables", "kafka")
    SpoolReader(folder, "tables").consumed(7)
    SpoolReader(folder, "kafka").consumed(20)
    kafka, tables = lags_of(folder)
    assert (kafka.cursor, kafka.position, kafka.messages, kafka.octets, kafka.oldest_us) == ("kafka", 20, 0, 0, 0)
    size = sum(path.stat().st_size - 64 for path in folder.glob("*.spool")) // 15  # the first segment is deleted
    assert (tables.cursor, tables.position, tables.messages, tables.oldest_us) == ("tables", 7, 13, 1_000_007)
    assert tables.octets == 13 * size


def test_the_command_shows_adds_and_removes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for shard in ("shard-000", "shard-001"):
        filled(folder / shard)
    assert main(["pipeline", "cursors", str(folder), "--add", "tables"]) == 0
    assert main(["pipeline", "cursors", str(folder / "shard-001"), "--add", "kafka", "--newest"]) == 0
    capsys.readouterr()
    assert main(["pipeline", "cursors", str(folder), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(Path(row["spool"]).name, row["cursor"], row["position"], row["messages"]) for row in rows] == [
        ("shard-000", "default", 0, 20),
        ("shard-000", "tables", 0, 20),
        ("shard-001", "default", 0, 20),
        ("shard-001", "kafka", 20, 0),
        ("shard-001", "tables", 0, 20),
    ]
    assert main(["pipeline", "cursors", str(folder), "--add", "kafka"]) == 0  # where it was missing
    assert main(["pipeline", "cursors", str(folder), "--add", "kafka"]) == 1
    assert main(["pipeline", "cursors", str(folder), "--remove", "kafka"]) == 0
    assert main(["pipeline", "cursors", str(folder), "--remove", "kafka"]) == 1
    assert main(["pipeline", "cursors", str(folder / "none")]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert "has a cursor 'kafka' already" in errors[0]
    assert errors[1].endswith("has no cursor 'kafka' (it has default, tables)")
    assert "there is no spool" in errors[2]


@pytest.mark.slow
def test_two_consumers_killed_again_and_again_have_each_message_once(folder: Path, tmp_path: Path) -> None:
    count, names = 3000, ("tables", "kafka")
    ledgers = {name: tmp_path / f"{name}.ledger" for name in names}
    chance = random.Random(7)

    def consume(name: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", CONSUMER, str(folder), name, str(ledgers[name]), str(count)]
        return subprocess.Popen(words)

    def written(name: str) -> int:
        return ledgers[name].stat().st_size // 8 if ledgers[name].exists() else 0

    with Spool.open(folder, segment_bytes=2000, cursors=names) as spool:
        for _ in range(6):
            name = chance.choice(names)
            wanted = written(name) + chance.randrange(50, 300)
            process = consume(name)
            while written(name) < wanted and process.poll() is None:
                if spool.next < count:
                    fill(spool, 5)
                spool.reap()
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
        while spool.next < count:
            fill(spool, 5)
        consumers = [consume(name) for name in names]
        assert [process.wait(PATIENCE_S) for process in consumers] == [0, 0]
        wanted_octets = b"".join(b"%08d" % number for number in range(count))
        assert all(ledger.read_bytes() == wanted_octets for ledger in ledgers.values())
        until(lambda: spool.reap() == 0 and spool.backlog_bytes == 0)
        assert positions(folder) == dict.fromkeys(names, count)
    assert len(list(folder.glob("*.spool"))) <= 2

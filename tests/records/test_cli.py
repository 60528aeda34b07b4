"""The command `trouter records`: it checks, prints and follows."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.records.written import SECOND, START, at, opened, taken
from trouter.cli import main
from trouter.records import SaslOutcomeRecord
from trouter.records.segments import segments_in
from trouter.records.stream import Taken
from trouter.records.writer import Bounds


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = opened(tmp_path)
    writer.write(taken(3), at(1))
    outcome = SaslOutcomeRecord(
        conn=7, mech="PLAIN", ok=False, code=1, reason="bad-credentials", delay_us=0, plugin="sasl_plain",
        user="mal lory", host="192.0.2.1", t=START + 100 * SECOND,
    )  # fmt: skip
    writer.write(Taken([outcome], taken(0).lost), at(100))
    writer.close(at(101))
    return tmp_path


def test_a_whole_folder_is_proved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "check", str(folder)]) == 0
    assert capsys.readouterr().out == "4 records in 1 segments, all proved\n"


def test_a_changed_octet_is_reported_with_its_file_and_offset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place,) = segments_in(folder)
    octets = place.path.read_bytes()
    place.path.write_bytes(octets.replace(b'"ok":false', b'"ok":true ', 1))
    assert main(["records", "check", str(place.path)]) == 1
    captured = capsys.readouterr()
    offset = octets.index(b'{"k":"segment.trailer"')
    assert captured.err.startswith(f"trouter records check: {place.path}: byte {offset}: the checksum")
    assert "1 errors" in captured.out


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "check", str(tmp_path / "none")]) == 1
    assert "none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ((), 4),
        (("--kind", "sasl.outcome"), 1),
        (("--kind", "audit"), 4),
        (("--kind", "telemetry"), 0),
        (("--kind", "sasl.outcome", "--kind", "link.stalled"), 4),
        (("--user", "mal lory"), 1),
        (("--user", "alice"), 0),
        (("--since", "2023-11-14T22:13:30"), 1),
        (("--until", "2023-11-14T22:13:30+00:00"), 3),
        (("--since", "1h"), 0),
    ],
)
def test_the_selected_records_are_printed(
    folder: Path, options: tuple[str, ...], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["records", "cat", str(folder), *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count
    assert main(["records", "cat", str(folder), "--json", *options]) == 0
    assert all(json.loads(line)["n"] >= 0 for line in capsys.readouterr().out.splitlines())


def test_a_row_is_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["records", "cat", str(folder), "--user", "mal lory"])
    row = capsys.readouterr().out
    assert row == (
        "2023-11-14 22:15:00.000000 sasl.outcome       [C7]    mal lory@192.0.2.1   "
        "mech=PLAIN ok=no code=1 reason=bad-credentials delay_us=0 plugin=sasl_plain\n"
    )


HOSTILE = {
    "the kind": (b'"t":1,"k":"x\\u001b[2J\\n"', True),
    "a name": (b'"t":1,"k":"x","a\\u001b[2J":1', True),
    "a connection": (b'"t":1,"k":"x","conn":"\\u001b[2J"', True),
    "a value": (b'"t":1,"k":"x","a":["\\u001b", "\xc2\x9b2J"]', True),
    "the last moment": (b'"t":253402300799000000,"k":"x"', True),
    "no moment": (b'"t":253402300800000000,"k":"x"', False),
    "no text": (b'"t":1,"k":"x","a":"\xff"', False),
    "no number": (b'"t":1,"k":"x","a":' + b"9" * 5000, False),
    "deep": (b'"t":1,"k":"x","a":' + b"[" * 5000 + b"]" * 5000, False),
}


@pytest.mark.parametrize(("fields", "readable"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_record_file_harms_no_reader(
    tmp_path: Path, fields: bytes, readable: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path).write(taken(1), at(1))
    (place,) = segments_in(tmp_path)
    with place.path.open("ab") as file:
        file.write(b'{"n":1,' + fields + b"}\n")
    for command in ("cat", "check"):
        assert main(["records", command, str(tmp_path)]) == (0 if readable else 1)
        captured = capsys.readouterr()
        assert all(line.isprintable() for line in (captured.out + captured.err).splitlines())
        assert "byte" in captured.err or readable
        assert command == "check" or len(captured.out.splitlines()) == 1 + readable


@pytest.mark.parametrize("words", [("--kind", "nonsense"), ("--since", "yesterday")])
def test_a_wrong_filter_is_an_error(folder: Path, words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["records", "cat", str(folder), *words])
    assert ended.value.code == 2
    assert words[0].lstrip("-") in capsys.readouterr().err


def test_records_are_followed_from_segment_to_segment(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(segment_bytes=5000))
    writer.write(taken(3), at(1))
    command = [sys.executable, "-m", "trouter", "records", "follow", "--json", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        try:
            seen: list[int] = []
            first = 3
            while not seen:  # until it has begun
                writer.write(taken(1, first), at(1))
                first += 1
                seen += _ready(follower.stdout.fileno())
            begun = seen[0]
            for _ in range(10):
                writer.write(taken(20, first), at(2))
                first += 20
            writer.close(at(3))
            assert len(segments_in(tmp_path)) > 3
            while seen[-1] < first - 1:
                seen += _lines(follower.stdout.fileno())
            assert seen == list(range(begun, first))
        finally:
            follower.kill()


def _ready(descriptor: int) -> list[int]:
    """Return the numbers of records that arrive within a moment."""
    return _lines(descriptor) if select.select([descriptor], [], [], 0.05)[0] else []


def _lines(descriptor: int) -> list[int]:
    """Return the numbers of the next records, in whole lines."""
    octets = os.read(descriptor, 1 << 16)
    while octets and not octets.endswith(b"\n"):
        octets += os.read(descriptor, 1 << 16)
    assert octets, "the follower has ended"
    return [json.loads(line)["n"] for line in octets.splitlines()]

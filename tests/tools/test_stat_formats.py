"""The text of single values, and the layout of a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

import pytest

from trouter.tools import formats
from trouter.tools.table import Grid, Style, TableCell, aligned, comma_separated
from trouter.wire.types import Symbol, UInt, ULong


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0, "0"),
        (UInt(7), "7"),
        (True, "True"),
        (Symbol("a"), "a"),
        (b"\x01\xff", "01ff"),
        ("naïve", "naïve"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("left\u202eright", "left\\u202eright"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_a_value_is_shown_without_control_characters(value: object, shown: str) -> None:
    assert formats.plain(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1.00 KiB"),
        (10 * 1024, "10.0 KiB"),
        (100 * 1024, "100 KiB"),
        (392 * 1024**2, "392 MiB"),
        (3 * 1024**3, "3.00 GiB"),
        (5000 * 1024**5, "5000 PiB"),
        (ULong(2048), "2.00 KiB"),
        (None, ""),
        ("?", "?"),
    ],
)
def test_a_size_has_three_digits(value: object, shown: str) -> None:
    assert formats.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "000:00:00:00"), (90_061, "001:01:01:01"), (UInt(59), "000:00:00:59"), (None, "-")]
)
def test_a_span_is_days_hours_minutes_seconds(value: object, shown: str) -> None:
    assert formats.span(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "-"), (None, "-"), (61, "00:01:01"), (90_000, "25:00:00")])
def test_time_without_credit_goes_on_beyond_a_day(value: object, shown: str) -> None:
    assert formats.blocked(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(-1, "-"), (None, "-"), (0, "0"), (9, "9")])
def test_a_priority_that_is_not_set_is_a_dash(value: object, shown: str) -> None:
    assert formats.dashed(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(ULong(1234567), "1,234,567"), (12, "12"), (None, ""), (True, "True")])
def test_counters_have_their_thousands_apart(value: object, shown: str) -> None:
    assert formats.commas(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.0, "0.0"), (3.14, "3.1"), (99.96, "100.0"), (12345.6, "12,346")]
)
def test_a_rate_is_short(value: object, shown: str) -> None:
    assert formats.rate(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(["B", Symbol("C")], "['B', 'C']"), ([], "[]"), (None, "[]")])
def test_a_list_has_quotes_and_brackets(value: object, shown: str) -> None:
    assert formats.listed(value) == shown


def test_a_path_that_is_not_set_is_nil() -> None:
    assert (formats.or_nil(""), formats.or_nil(None), formats.or_nil("/p")) == ("(nil)", "(nil)", "/p")


def test_log_times_are_local_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setitem(os.environ, "TZ", zone)
        time.tzset()
        assert formats.local_time(1_700_000_003.9) == time.ctime(1_700_000_003)
    monkeypatch.undo()
    time.tzset()
    assert formats.local_time("?") == "?"


def test_a_change_of_the_network_is_reported_in_the_same_words_everywhere() -> None:
    assert formats.topology_time(1_700_000_000) == "Tuesday Nov 14 22:13:20 2023 GMT"


GRID = Grid(
    "Fruit",
    ("name", "n", "note"),
    [
        [TableCell("apple"), TableCell("1,000", Style.ALARM), TableCell("")],
        [TableCell("fig"), TableCell("2"), TableCell('said "ripe", was')],
    ],
)


def test_columns_are_as_wide_as_needed_and_two_apart() -> None:
    assert list(aligned(GRID)) == [
        "Fruit",
        "  name   n      note",
        "  ================================",
        "  apple  1,000  ",
        '  fig    2      said "ripe", was',
    ]


def test_comma_separated_cells_are_quoted_and_empty_cells_are_left_empty() -> None:
    assert list(comma_separated(GRID)) == [
        "Fruit",
        '"name","n","note"',
        '"apple","1,000",',
        '"fig","2","said ""ripe"", was"',
    ]


@pytest.mark.parametrize("show", [aligned, comma_separated])
def test_a_table_without_rows_is_its_title(show: Callable[[Grid], Iterable[str]]) -> None:
    assert list(show(Grid("\nFruit", ("name",), []))) == ["", "Fruit"]


def test_colours_change_no_width() -> None:
    plain = list(aligned(GRID))
    painted = list(aligned(GRID, colour=True))
    assert painted != plain
    for style in Style:
        painted = [line.replace(style.value, "") if style.value else line for line in painted]
    assert [line.replace("\x1b[0m", "") for line in painted] == plain
    assert list(aligned(GRID, colour=True))[3] == "  apple  \x1b[31m1,000\x1b[0m  "

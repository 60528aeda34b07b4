"""The form of a line (docs/logging.md)."""

from __future__ import annotations

import json
import logging
import re
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.logs.talk import configured
from trouter import logs
from trouter._text import escape_unprintable
from trouter.config import Configuration, RouterEntity
from trouter.logs.book import LogLine
from trouter.logs.lines import MAX_TEXT, MAX_TRACEBACK, Clock, Shape, line_of

ROUTER = RouterEntity(id="r")
CLOCK = Clock(time.gmtime, "%H.%M (%%06lu)")


def test_a_line_has_its_time_module_level_and_text(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(Configuration(router=ROUTER))
    logs.of("SERVER").info("Listening on %s:%d", "127.0.0.1", 5672)
    line = capfd.readouterr().err
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} [+-]\d{4} SERVER \(info\) Listening on 127\.0\.0\.1:5672\n"
    assert re.fullmatch(pattern, line)


def test_times_are_shown_to_the_microsecond_in_the_configured_format() -> None:
    utc = configured("router { timestampsInUTC: yes }").state.clock
    assert utc.text(1_700_000_000.25) == "2023-11-14 22:13:20.250000 +0000"
    local = configured("router { timestampsInUTC: no }").state.clock
    assert local.text(0.000001) == time.strftime("%Y-%m-%d %H:%M:%S.000001 %z", time.localtime(0))
    own = configured("router { timestampsInUTC: yes, timestampFormat: %H.%M (%%06lu) }").state.clock
    assert own.text(3600.000007) == "01.00 (000007)"
    assert own.text(59.9999999) == "00.01 (000000)"


def test_the_source_on_demand_is_the_line_that_logged(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeSource: yes, includeTimestamp: no, enable: trace+ }")
    log = logs.of("ROUTER")
    for say in (log.debug, log.info, log.warning, log.error, log.critical):
        say("x")
    log.log(logs.NOTICE, "x")
    log.log(logs.TRACE, "x", stacklevel=1)
    line = test_the_source_on_demand_is_the_line_that_logged.__code__.co_firstlineno
    places = re.findall(r"x \(tests/logs/test_lines\.py:(\d+)\)\n", capfd.readouterr().err)
    assert [int(place) - line for place in places] == [4, 4, 4, 4, 4, 5, 6]


def test_text_of_a_peer_stays_on_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    logs.of("ROUTER").info("container %s", "a\nROUTER (info) forged\r\x1b[2J\x7f\x9b\0é\u2028\u202e\U000e0001\ud800")
    assert capfd.readouterr().err == (
        "ROUTER (info) container a\\nROUTER (info) forged\\r\\x1b[2J\\x7f\\x9b\\x00é\\u2028\\u202e\\U000e0001\\ud800\n"
    )


@given(st.text(st.characters()))
def test_any_text_becomes_printable_and_encodable(text: str) -> None:
    shown = escape_unprintable(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    if text.isprintable():
        assert shown == text


def test_a_long_text_is_cut(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    logs.of("ROUTER").info("%s", "\n" * 1_000_000)
    line = capfd.readouterr().err
    assert len(line) == len("ROUTER (info) \n") + MAX_TEXT
    assert line.endswith("...\n")


def test_a_traceback_follows_on_indented_lines_that_no_reader_takes_for_a_line_of_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    try:
        raise ValueError("x\nROUTER (info) forged \x1b[2J" + "y" * MAX_TRACEBACK)
    except ValueError:
        logs.of("SERVER").exception("dropped")
    lines = capfd.readouterr().err.splitlines()
    assert lines[:2] == ["SERVER (error) dropped", "  Traceback (most recent call last):"]
    assert lines[-2] == "  ValueError: x"
    assert lines[-1].startswith("  ROUTER (info) forged \\x1b[2Jyyy")
    assert lines[-1].endswith("y...")
    assert sum(map(len, lines)) < MAX_TRACEBACK + 200


def test_no_exception_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    logs.of("SERVER").error("odd", exc_info=True)
    assert capfd.readouterr().err == "SERVER (error) odd\n"


def test_arguments_that_do_not_fit_cost_the_arguments_alone(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    logs.of("ROUTER").info("%d links", "many")
    assert capfd.readouterr().err == "ROUTER (info) %d links [the arguments do not fit]\n"


def entry(text: str) -> LogLine:
    return LogLine("SERVER", "info", text, "trouter/connections/peer.py", 7, 1_700_000_000.25)


def test_a_json_line_is_one_object_with_the_same_fields() -> None:
    line = line_of(entry('[C7][L12] a "b" é'), "", Shape(timestamp=True, source=True, json=True), CLOCK)
    assert line.isascii()
    assert list(json.loads(line).items()) == [
        ("ts", "2023-11-14T22:13:20.250000+00:00"),
        ("module", "SERVER"),
        ("level", "info"),
        ("text", '[C7][L12] a "b" é'),
        ("connection", 7),
        ("link", 12),
        ("file", "trouter/connections/peer.py"),
        ("line", 7),
    ]


def test_a_json_line_leaves_out_absent_fields_and_fields_not_requested() -> None:
    shape = Shape(timestamp=False, source=False, json=True)
    assert json.loads(line_of(entry("Stopping"), "", shape, CLOCK)) == {
        "module": "SERVER",
        "level": "info",
        "text": "Stopping",
    }
    assert json.loads(line_of(entry("[C3] x"), "", shape, CLOCK))["connection"] == 3
    assert "link" not in json.loads(line_of(entry("[C3] x"), "", shape, CLOCK))
    assert "connection" not in json.loads(line_of(entry("said [C3]"), "", shape, CLOCK))


def test_a_traceback_stands_inside_its_json_line() -> None:
    line = line_of(entry("x"), "Traceback\nValueError: x", Shape(False, False, json=True), CLOCK)
    assert "\n" not in line
    assert json.loads(line)["traceback"] == "Traceback\nValueError: x"


@pytest.mark.parametrize(("zone", "offset"), [("UTC0", "+00:00"), ("XXX-5:30", "+05:30"), ("YYY3:30", "-03:30")])
def test_json_times_are_iso_8601_in_the_configured_zone(
    monkeypatch: pytest.MonkeyPatch, zone: str, offset: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        text = Clock(time.localtime, "").iso(1_700_000_000.25)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert text.endswith(f".250000{offset}")
    assert datetime.fromisoformat(text).timestamp() == 1_700_000_000.25


@given(st.text(st.characters()), st.booleans())
def test_any_text_gives_one_line(text: str, json_lines: bool) -> None:
    shown = line_of(entry(escape_unprintable(text)), "", Shape(True, True, json_lines), CLOCK)
    assert shown.isprintable()


def test_a_record_of_an_unknown_level_is_of_the_one_below(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no, enable: trace+ }")
    for number in (1, 17, logging.CRITICAL + 1):
        logs.of("ROUTER").log(number + 5, "x")
    assert re.findall(r"\((\w+)\) x", capfd.readouterr().err) == ["trace", "info", "critical"]

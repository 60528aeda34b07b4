"""Log lines, levels and outputs (configuration.md, section 8)."""

from __future__ import annotations

import logging
import re
import syslog
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trouter import logs
from trouter.config import Configuration, ConfigurationError, RouterEntity, load

ROUTER = RouterEntity(id="r")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger(logs.ROOT)
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    levels = {name: logger.level for name, logger in trouter_loggers()}
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.propagate = propagate
    root.setLevel(level)
    for name, logger in trouter_loggers():
        logger.setLevel(levels.get(name, logging.NOTSET))


def trouter_loggers() -> list[tuple[str, logging.Logger]]:
    known = logging.root.manager.loggerDict.items()
    return [
        (name, logger) for name, logger in known if name.startswith("trouter.") and isinstance(logger, logging.Logger)
    ]


def configured(text: str) -> logs.LogHandler:
    return logs.configure(load(text=text))


def say_everything(module: str) -> None:
    for number in sorted(logs.NAMES):
        logs.of(module).log(number, "at %s", logs.NAMES[number])


def levels_in(text: str) -> list[str]:
    return re.findall(r"\((\w+)\) at", text)


def test_a_line_says_when_who_how_grave_and_what(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(Configuration(ROUTER))
    logs.of("SERVER").info("Listening on %s:%d", "127.0.0.1", 5672)
    line = capfd.readouterr().err
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} [+-]\d{4} SERVER \(info\) Listening on 127\.0\.0\.1:5672\n"
    assert re.fullmatch(pattern, line)


def test_the_default_is_info_and_above(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(Configuration(ROUTER))
    say_everything("ROUTER")
    assert levels_in(capfd.readouterr().err) == ["info", "notice", "warning", "error", "critical"]


def test_times_are_told_to_the_microsecond_in_the_format_asked_for() -> None:
    utc = configured("router { timestampsInUTC: yes }")
    assert utc.timestamp(1_700_000_000.25) == "2023-11-14 22:13:20.250000 +0000"
    local = configured("router { timestampsInUTC: no }")
    assert local.timestamp(0.000001) == time.strftime("%Y-%m-%d %H:%M:%S.000001 %z", time.localtime(0))
    own = configured("router { timestampsInUTC: yes, timestampFormat: %H.%M (%%06lu) }")
    assert own.timestamp(3600.000007) == "01.00 (000007)"
    assert own.timestamp(59.9999999) == "00.01 (000000)"


ENABLE = {
    "trace+": ["trace", "debug", "info", "notice", "warning", "error", "critical"],
    "trace, error": ["trace", "error"],
    "none": [],
    "default": ["warning"],
    "debug default": ["debug", "warning"],
}


@pytest.mark.parametrize(("enable", "expected"), ENABLE.items())
def test_any_set_of_levels_can_be_on(capfd: pytest.CaptureFixture[str], enable: str, expected: list[str]) -> None:
    configured(f"log {{ module: DEFAULT, enable: warning }}\nlog {{\n module: AGENT\n enable: {enable}\n}}")
    say_everything("AGENT")
    assert levels_in(capfd.readouterr().err) == expected


def test_a_module_that_is_not_mentioned_follows_default(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: AGENT, enable: none }\nlog { module: DEFAULT, enable: debug, includeTimestamp: no }")
    say_everything("PLUGIN")
    say_everything("AGENT")
    assert capfd.readouterr().err == "PLUGIN (debug) at debug\n"


def test_a_logger_costs_nothing_where_nobody_listens() -> None:
    configured("log { module: PROTOCOL, enable: notice+ }\nlog { module: AGENT, enable: none }")
    assert not logs.of("PROTOCOL").isEnabledFor(logging.INFO)
    assert logs.of("PROTOCOL").isEnabledFor(logs.NOTICE)
    assert not logs.of("AGENT").isEnabledFor(logging.CRITICAL)


def test_the_source_is_told_on_demand(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeSource: yes, includeTimestamp: no }")
    logs.of("ROUTER").info("x")
    assert re.fullmatch(r"ROUTER \(info\) x \(.*test_logs\.py:\d+\)\n", capfd.readouterr().err)


def test_what_a_stranger_said_stays_on_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    logs.of("ROUTER").info("container %s", "a\nROUTER (info) forged\r\x1b[2J\x7f\x9b\0é")
    assert capfd.readouterr().err == "ROUTER (info) container a\\nROUTER (info) forged\\r\\x1b[2J\\x7f\\x9b\\x00é\n"


def test_a_traceback_follows_on_lines_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    try:
        raise ValueError("x")
    except ValueError:
        logs.of("SERVER").exception("dropped")
    lines = capfd.readouterr().err.splitlines()
    assert lines[:2] == ["SERVER (error) dropped", "Traceback (most recent call last):"]
    assert lines[-1] == "ValueError: x"


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, outputFile: stdout, includeTimestamp: no }")
    logs.of("ROUTER").info("x")
    assert capfd.readouterr() == ("ROUTER (info) x\n", "")


def test_modules_share_a_file_which_is_appended_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "router.log"
    path.write_text("before\n")
    text = f"log {{ module: ROUTER, outputFile: {path}, timestamp: no }}\n"
    configured(text + text.replace("ROUTER", "AGENT"))
    logs.of("ROUTER").info("a")
    logs.of("AGENT").info("b")
    assert path.read_text() == "before\nROUTER (info) a\nAGENT (info) b\n"
    assert capfd.readouterr().err == ""


def test_an_unencodable_text_is_written_escaped(tmp_path: Path) -> None:
    configured(f"log {{ module: ROUTER, outputFile: {tmp_path / 'x'}, timestamp: no }}")
    logs.of("ROUTER").info("a%sb", "\udc80")
    assert (tmp_path / "x").read_bytes() == b"ROUTER (info) a\\udc80b\n"


def test_a_file_that_cannot_be_opened_is_an_error_with_its_place(tmp_path: Path) -> None:
    before = logging.getLogger(logs.ROOT).handlers[:]
    with pytest.raises(ConfigurationError) as caught:
        configured(
            f"\nlog {{ module: ROUTER, outputFile: {tmp_path} }}\nlog {{ module: AGENT, outputFile: {tmp_path} }}"
        )
    assert [str(problem) for problem in caught.value.problems] == [
        f"(text):{line}:1: log.outputFile: this file cannot be opened: Is a directory: '{tmp_path}'" for line in (2, 3)
    ]
    assert logging.getLogger(logs.ROOT).handlers == before


def test_a_line_that_cannot_be_written_is_counted_and_not_fatal(capfd: pytest.CaptureFixture[str]) -> None:
    handler = configured("log { module: DEFAULT, outputFile: /dev/full }\nlog { module: AGENT, outputFile: stderr }")
    logs.of("ROUTER").info("lost")
    logs.of("ROUTER").info("lost %d", "too: the arguments do not fit")
    assert handler.lost_count == 2
    logs.of("AGENT").info("not lost")
    assert "not lost" in capfd.readouterr().err


def test_configuring_anew_closes_what_was_open_and_changes_every_module(tmp_path: Path) -> None:
    configured(f"log {{ module: ROUTER, enable: none, outputFile: {tmp_path / 'a'} }}")
    configured(f"log {{ module: DEFAULT, outputFile: {tmp_path / 'b'} }}")
    logs.of("ROUTER").info("x")
    assert (tmp_path / "a").read_text() == ""
    assert (tmp_path / "b").read_text().endswith("ROUTER (info) x\n")
    assert len([one for one in logging.getLogger(logs.ROOT).handlers if isinstance(one, logs.LogHandler)]) == 1


def test_syslog_gets_no_time_and_the_nearest_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, str]] = []
    write: Callable[[int, str], None] = lambda priority, text: sent.append((priority, text))  # noqa: E731
    monkeypatch.setattr(syslog, "syslog", write)
    configured("log { module: DEFAULT, outputFile: syslog, enable: trace debug notice }")
    say_everything("ROUTER")
    assert sent == [
        (syslog.LOG_DEBUG, "ROUTER (trace) at trace"),
        (syslog.LOG_DEBUG, "ROUTER (debug) at debug"),
        (syslog.LOG_NOTICE, "ROUTER (notice) at notice"),
    ]

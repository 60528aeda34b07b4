"""The contents of GET-LOG and logStats (management.md 6; docs/logging.md)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pytest

from tests.logs.talk import configured, say_everything
from trouter import logs
from trouter.logs.book import KEPT, MAX_TEXT_BYTES, LogBook, LogLine
from trouter.logs.levels import MODULES
from trouter.logs.loggers import CountingLogger

LEVELS = ["trace", "debug", "info", "notice", "warning", "error", "critical"]


def entry(number: int, module: str = "ROUTER") -> LogLine:
    return LogLine(module, "info", str(number), "x.py", 1, 0.0)


def test_the_last_lines_are_kept_oldest_first() -> None:
    book = LogBook()
    assert book.recent() == []
    for number in range(KEPT + 5):
        book.keep_line(entry(number))
    assert [int(each.text) for each in book.recent()] == list(range(5, KEPT + 5))


@pytest.mark.parametrize(("limit", "expected"), [(0, 20), (-3, 20), (1, 1), (7, 7), (20, 20), (99, 20)])
def test_a_limit_selects_the_newest_lines(limit: int, expected: int) -> None:
    book = LogBook()
    for number in range(20):
        book.keep_line(entry(number))
    assert [int(each.text) for each in book.recent(limit)] == list(range(20 - expected, 20))


def test_the_lines_of_one_module_can_be_selected() -> None:
    book = LogBook()
    for number in range(20):
        book.keep_line(entry(number, "AGENT" if number % 3 else "SERVER"))
    assert [each.text for each in book.recent(2, "SERVER")] == ["15", "18"]
    assert len(book.recent(module="AGENT")) == 13
    assert book.recent(module="agent") == []


@pytest.mark.parametrize(
    ("text", "octets"), [("x" * 2047, 2047), ("x" * 2048, 2047), ("é" * 1024, 2046), ("x" + "é" * 1024, 2047)]
)
def test_a_text_is_cut_at_2047_octets_between_characters(text: str, octets: int) -> None:
    book = LogBook()
    book.keep_line(LogLine("ROUTER", "info", text, "x.py", 1, 0.0))
    kept = book.recent()[0].text
    assert len(kept.encode()) == octets <= MAX_TEXT_BYTES
    assert text.startswith(kept)


def test_an_entry_shows_everything() -> None:
    configured("log { module: DEFAULT, includeTimestamp: no, outputFile: /dev/null }")
    before = time.time()
    logs.of("AGENT").error("%s\n", "x")
    (found,) = logs.book.recent(1)
    assert (found.module, found.level, found.text, found.file) == ("AGENT", "error", "x\\n", "tests/logs/test_book.py")
    assert found.line > 0
    assert before <= found.seconds <= time.time()


def test_a_disabled_level_is_not_kept() -> None:
    configured("log { module: DEFAULT, enable: debug error, outputFile: /dev/null }")
    say_everything("AGENT")
    assert [each.level for each in logs.book.recent(2)] == ["debug", "error"]


def test_a_line_that_could_not_be_written_is_kept() -> None:
    configured("log { module: DEFAULT, outputFile: /dev/full }")
    logs.of("AGENT").info("kept")
    assert logs.book.recent(1)[0].text == "kept"


def test_there_are_counts_for_20_modules_and_7_levels() -> None:
    counts = logs.book.counts()
    assert list(counts) == list(MODULES)
    assert len(counts) == 20
    assert all(list(each) == LEVELS for each in counts.values())


def grown(act: Callable[[], None]) -> dict[str, dict[str, int]]:
    """Return the counts that ``act`` increased, and by how much."""
    before = logs.book.counts()
    act()
    after = logs.book.counts()
    grown = {
        module: {
            level: after[module][level] - before[module][level]
            for level in LEVELS
            if after[module][level] != before[module][level]
        }
        for module in MODULES
    }
    return {module: each for module, each in grown.items() if each}


@pytest.mark.parametrize("enable", ["none", "trace+", "error", "debug critical"])
def test_every_event_is_counted_at_enabled_and_disabled_levels(enable: str) -> None:
    configured(f"log {{ module: DEFAULT, enable: {enable}, outputFile: /dev/null }}")
    assert grown(lambda: say_everything("AGENT")) == {"AGENT": dict.fromkeys(LEVELS, 1)}


def test_every_way_to_log_is_counted() -> None:
    configured("log { module: DEFAULT, enable: none }")
    log = logging.getLogger("trouter.SERVER")

    def act() -> None:
        log.debug("x")
        log.info("x")
        log.warning("x")
        log.error("x")
        log.exception("x")  # noqa: LOG004
        log.critical("x")
        log.log(logs.NOTICE, "x")
        log.log(logging.INFO + 1, "x")

    assert grown(act) == {"SERVER": {"debug": 1, "info": 2, "notice": 1, "warning": 1, "error": 2, "critical": 1}}


def test_a_guard_is_no_event() -> None:

    def act() -> None:
        logs.of("PROTOCOL").isEnabledFor(logs.TRACE)

    assert grown(act) == {}


def test_modules_without_a_name_of_their_own_count_as_default() -> None:
    configured("log { module: DEFAULT, enable: none }")
    assert grown(lambda: logging.getLogger("trouter.PLUGIN").warning("x")) == {"DEFAULT": {"warning": 1}}


def test_a_logger_that_existed_before_counts_as_well(request: pytest.FixtureRequest) -> None:
    name = "trouter.EARLY"
    early = logging.getLogger(name)
    request.addfinalizer(lambda: logging.root.manager.loggerDict.pop(name))
    assert not isinstance(early, CountingLogger)
    configured("log { module: DEFAULT, enable: none }")
    assert grown(lambda: early.warning("x")) == {"DEFAULT": {"warning": 1}}

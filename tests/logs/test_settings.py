"""The events that are logged, and changes to them while the router runs (docs/logging.md; management.md 6)."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from tests.logs.talk import configured, entities, levels_in, say_everything
from trouter import logs
from trouter.config import Configuration, ConfigurationError, RouterEntity

ROUTER = RouterEntity(id="r")
ALL = ["trace", "debug", "info", "notice", "warning", "error", "critical"]


def test_the_default_is_info_and_above(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(Configuration(router=ROUTER))
    say_everything("ROUTER")
    assert levels_in(capfd.readouterr().err) == ALL[2:]


ENABLE = {
    "trace+": ALL,
    "trace, error": ["trace", "error"],
    "TRACE , Error info": ["trace", "info", "error"],
    "info,critical": ["info", "critical"],
    "error:critical;debug": ["debug", "error", "critical"],
    "none": [],
    "default": ["warning"],
    "DEFAULT": ["warning"],
    "debug default": ["debug", "warning"],
    '""': [],
}


@pytest.mark.parametrize(("enable", "expected"), ENABLE.items())
def test_any_set_of_levels_can_be_on(capfd: pytest.CaptureFixture[str], enable: str, expected: list[str]) -> None:
    configured(f"log {{ module: DEFAULT, enable: warning }}\nlog {{\n module: AGENT\n enable: {enable}\n}}")
    say_everything("AGENT")
    assert levels_in(capfd.readouterr().err) == expected


@pytest.mark.parametrize(("enable", "expected"), ENABLE.items())
def test_the_levels_of_a_module_change_live(
    capfd: pytest.CaptureFixture[str], enable: str, expected: list[str]
) -> None:
    default = "log { module: DEFAULT, enable: warning }\n"
    configured(f"{default}log {{ module: AGENT, enable: trace+ }}")
    logs.apply(entities(f"{default}log {{\n module: AGENT\n enable: {enable}\n}}"), ROUTER)
    say_everything("AGENT")
    assert levels_in(capfd.readouterr().err) == expected


def test_a_module_that_is_not_mentioned_follows_default(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: AGENT, enable: none }\nlog { module: DEFAULT, enable: debug, includeTimestamp: no }")
    say_everything("PLUGIN")
    say_everything("AGENT")
    assert capfd.readouterr().err == "PLUGIN (debug) at debug\n"


def test_modules_without_settings_of_their_own_follow_a_change_of_default(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, enable: none }\nlog { module: AGENT, includeTimestamp: no }")
    logs.apply(entities("log { module: DEFAULT, enable: notice }\nlog { module: AGENT, includeTimestamp: no }"), ROUTER)
    say_everything("AGENT")
    say_everything("SERVER")
    assert levels_in(capfd.readouterr().err) == ["notice", "notice"]


def test_a_module_that_is_mentioned_no_more_follows_default_again(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: AGENT, enable: none }")
    logs.apply((), ROUTER)
    say_everything("AGENT")
    assert levels_in(capfd.readouterr().err) == ALL[2:]


def test_a_logger_costs_nothing_where_no_output_listens() -> None:
    configured("log { module: PROTOCOL, enable: notice+ }\nlog { module: AGENT, enable: none }")
    assert not logs.of("PROTOCOL").isEnabledFor(logging.INFO)
    assert logs.of("PROTOCOL").isEnabledFor(logs.NOTICE)
    assert not logs.of("AGENT").isEnabledFor(logging.CRITICAL)


def test_the_format_of_times_changes_live(capfd: pytest.CaptureFixture[str]) -> None:
    configured("router { id: r }")
    logs.apply((), RouterEntity(id="r", timestamps_in_utc=True, timestamp_format="day"))
    logs.of("SERVER").info("x")
    assert capfd.readouterr().err == "day SERVER (info) x\n"


def test_a_change_that_cannot_be_had_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    configured(f"log {{ module: DEFAULT, outputFile: {path}, includeTimestamp: no }}")
    with pytest.raises(ConfigurationError):
        logs.apply(
            entities(
                f"log {{ module: DEFAULT, enable: none }}\nlog {{ module: AGENT, outputFile: {tmp_path / 'new'} }}\n"
                f"log {{ module: SERVER, outputFile: {tmp_path} }}"
            ),
            ROUTER,
        )
    logs.of("AGENT").info("x")
    assert path.read_text() == "AGENT (info) x\n"


def test_prepared_settings_take_effect_when_applied(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no }")
    prepared = logs.prepare(entities("log { module: DEFAULT, includeTimestamp: no, enable: error }"), ROUTER)
    logs.of("SERVER").info("before")
    prepared.apply()
    logs.of("SERVER").info("after")
    assert capfd.readouterr().err == "SERVER (info) before\n"


def test_dropped_settings_leave_the_open_files_open(tmp_path: Path) -> None:
    kept, new = tmp_path / "kept", tmp_path / "new"
    text = f"log {{ module: DEFAULT, outputFile: {kept}, includeTimestamp: no }}"
    configured(text)
    logs.prepare(entities(f"{text}\nlog {{ module: AGENT, outputFile: {new} }}"), ROUTER).drop()
    logs.of("AGENT").info("x")
    assert kept.read_text() == "AGENT (info) x\n"
    assert new.read_text() == ""


def test_configuring_anew_changes_every_module(tmp_path: Path) -> None:
    configured(f"log {{ module: ROUTER, enable: none, outputFile: {tmp_path / 'a'} }}")
    configured(f"log {{ module: DEFAULT, outputFile: {tmp_path / 'b'} }}")
    logs.of("ROUTER").info("x")
    assert (tmp_path / "a").read_text() == ""
    assert (tmp_path / "b").read_text().endswith("ROUTER (info) x\n")
    assert len([one for one in logging.getLogger(logs.ROOT).handlers if isinstance(one, logs.LogHandler)]) == 1


def test_a_line_logged_always_ignores_the_enabled_levels(
    capfd: pytest.CaptureFixture[str],
) -> None:
    configured("log { module: DEFAULT, enable: none, includeTimestamp: no, includeSource: yes }")
    before = logs.book.counts()["PROTOCOL"]["trace"]
    logs.always("PROTOCOL", logs.TRACE, "[C5]: 100 %s\n")
    assert re.fullmatch(
        r"PROTOCOL \(trace\) \[C5\]: 100 %s\\n \(tests/logs/test_settings\.py:\d+\)\n", capfd.readouterr().err
    )
    assert logs.book.recent(1)[0].text == "[C5]: 100 %s\\n"
    assert logs.book.counts()["PROTOCOL"]["trace"] == before + 1


def test_a_module_may_have_json_lines_and_others_text(capfd: pytest.CaptureFixture[str]) -> None:
    configured(
        "log { module: DEFAULT, includeTimestamp: no }\nlog { module: ROUTER_CORE, format: json, includeSource: yes }"
    )
    logs.of("SERVER").info("Stopping")
    logs.of("ROUTER_CORE").info("[C1][L2] Link attached")
    text, line = capfd.readouterr().err.splitlines()
    assert text == "SERVER (info) Stopping"
    found = json.loads(line)
    assert isinstance(found.pop("line"), int)
    assert found == {
        "module": "ROUTER_CORE",
        "level": "info",
        "text": "[C1][L2] Link attached",
        "connection": 1,
        "link": 2,
        "file": "tests/logs/test_settings.py",
    }


def test_the_form_of_lines_is_as_defaults_and_changes_live(capfd: pytest.CaptureFixture[str]) -> None:
    configured("log { module: DEFAULT, includeTimestamp: no, format: json }\nlog { module: AGENT, format: text }")
    logs.of("SERVER").info("x")
    logs.of("AGENT").info("x")
    logs.apply(entities("log { module: DEFAULT, includeTimestamp: no }"), ROUTER)
    logs.of("SERVER").info("x")
    assert capfd.readouterr().err.splitlines() == [
        '{"module": "SERVER", "level": "info", "text": "x"}',
        "AGENT (info) x",
        "SERVER (info) x",
    ]

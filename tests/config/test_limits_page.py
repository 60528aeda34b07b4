"""The page on limits is written from the table, and the numbers of the table are those of the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from trouter.config.limits import LIMITS, Limit
from trouter.config.limits_page import attributes_of, conditions_of, page
from trouter.config.types import TYPES

ROOT = Path(__file__).resolve().parents[2]
NUMBERED = [limit for limit in LIMITS if limit.constants]
UNITS = {"KiB": 1024, "MiB": 1 << 20}
SHOWN = {attribute.name for kind in TYPES for attribute in kind.attributes}
KNOWN_CONDITIONS = re.compile(r"amqp:(connection:|session:|link:)?[a-z-]+")


def constant(name: str) -> float:
    """The value of a constant, or of a field's default."""
    module, _, path = name.partition(":")
    found = import_module(f"trouter.{module}")
    owner, _, field = path.rpartition(".")
    value = getattr(found, path) if not owner else getattr(found, owner).__dataclass_fields__[field].default
    assert isinstance(value, int | float)
    return value


def numbers_in(text: str) -> list[float]:
    """The numbers of a text, each in its unit of bytes."""
    found = re.findall(r"(\d[\d,]*)(?: (KiB|MiB))?", text)
    return [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in found]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "limits.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("limit", NUMBERED, ids=lambda limit: limit.name)
def test_a_number_of_the_table_is_that_of_the_code(limit: Limit) -> None:
    assert {constant(name) for name in limit.constants} <= set(numbers_in(limit.value))


def test_many_limits_are_held_to_the_code() -> None:
    assert len(NUMBERED) >= 20


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_what_a_limit_names_exists(limit: Limit) -> None:
    if "`" in limit.set_by:
        assert attributes_of(limit)
    for condition in conditions_of(limit):
        assert KNOWN_CONDITIONS.fullmatch(condition)
    manual = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for metric in re.findall(r"`(\w+)`", limit.metric):
        assert metric in (manual if metric.startswith("trouter_") else SHOWN)


def test_no_limit_stands_there_twice() -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)

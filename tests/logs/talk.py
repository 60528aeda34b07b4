"""Helpers of the tests of the log: a log from a configuration, and a line at every level."""

from __future__ import annotations

import re

from trouter import logs
from trouter.config import load
from trouter.config.entities import LogEntity


def configured(text: str) -> logs.LogHandler:
    return logs.configure(load(text=text))


def entities(text: str) -> tuple[LogEntity, ...]:
    return load(text=text).logs


def say_everything(module: str) -> None:
    for number in sorted(logs.NAMES):
        logs.of(module).log(number, "at %s", logs.NAMES[number])


def levels_in(text: str) -> list[str]:
    return re.findall(r"\((\w+)\) at", text)

"""Any text loads as a configuration or raises ConfigurationError with the line of each problem.

A configuration that loads and is compared with itself has no change. The text of each problem and finding is printable,
and the rest of a text with errors is evaluated, too.

Allowed: ConfigurationError with at least one problem, because most texts are no configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trouter.config import ConfigurationError, load
from trouter.config.compare import compare
from trouter.config.findings import evaluate, judged
from trouter.config.load import FaultyConfiguration
from trouter.config.problems import Problem
from trouter.testing.fuzz import text

MUTATOR = text
COVERS = ("trouter.config.conf_form", "trouter.config.reader", "trouter.config.draft", "trouter.config.rules")
FILES: Final = (Path("fuzzed.conf"), Path("fuzzed.json"))


def look(problem: Problem, lines: list[str]) -> None:
    assert str(problem).replace("\n", "").isprintable()
    assert 0 <= problem.place.line <= len(lines)


def check(data: bytes) -> None:
    words = data.decode("utf-8", "replace")
    file = FILES[words.lstrip()[:1] == "["]
    lines = words.split("\n")
    try:
        configuration = load(file, words)
    except ConfigurationError as error:
        problems = error.problems
        if isinstance(error, FaultyConfiguration):
            for finding in evaluate(error.partial):
                look(finding, lines)
    else:
        for finding in judged(configuration, list(evaluate(configuration))):
            look(finding, lines)
        changes = compare(configuration, load(file, words))
        assert (changes.created, changes.updated, changes.deleted) == ((), (), ())
        return
    assert problems
    for problem in problems:
        look(problem, lines)

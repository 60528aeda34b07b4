"""Checks a configuration that management sends, by the rules of a reload, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trouter.config import Configuration, ConfigurationError, Problem, compare, load
from trouter.config.changes import withheld_sources
from trouter.config.findings import evaluate, judged
from trouter.config.load import sections_of
from trouter.config.problems import Severity
from trouter.config.remote import beyond_management
from trouter.config.same_addresses import same_addresses
from trouter.config.types import type_of_section
from trouter.management.ports import PlanReport

from .reload_report import report_of


def check_text(present: Configuration, text: str, name: str) -> PlanReport:
    """Return what a reload of ``text`` would make of the configuration ``present``, and the findings about it.

    ``name`` is what the findings call the text. If it names files that management may not read, none is read.
    """
    try:
        if problems := list(withheld_in(present, text, name)):
            raise ConfigurationError(problems)
        wanted = load(Path(name), text)
        changes = compare(present, wanted)
    except ConfigurationError as error:
        return PlanReport(None, tuple(replace(problem, severity=Severity.PROBLEM) for problem in error.problems))
    whole = changes.configuration
    return PlanReport(
        report_of(changes),
        judged(whole, [*evaluate(whole), *same_addresses(whole)]),
        refusals=tuple(map(str, beyond_management(present, wanted))),
    )


def withheld_in(present: Configuration, text: str, name: str) -> Iterator[Problem]:
    """Yield a problem for each file or secret of a text that management may not have read; ConfigurationError."""
    for section in sections_of(text, str(Path(name))):
        if (kind := type_of_section(section.name)) is not None:
            for entry, reason in withheld_sources(present, kind, section.entries):
                yield Problem(entry.place, reason, section.name)

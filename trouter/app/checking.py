"""Checks a configuration that management sends, by the rules of a reload, and changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trouter.config import Configuration, ConfigurationError, compare, load
from trouter.config.findings import evaluate, judged
from trouter.config.problems import Severity
from trouter.config.same_addresses import same_addresses
from trouter.management.ports import PlanReport

from .reload_report import report_of


def check_text(present: Configuration, text: str, name: str) -> PlanReport:
    """Return what a reload of ``text`` would make of the configuration ``present``, and the findings about it.

    ``name`` is what the findings call the text.
    """
    try:
        changes = compare(present, load(Path(name), text))
    except ConfigurationError as error:
        return PlanReport(None, tuple(replace(problem, severity=Severity.PROBLEM) for problem in error.problems))
    whole = changes.configuration
    return PlanReport(report_of(changes), judged(whole, [*evaluate(whole), *same_addresses(whole)]))

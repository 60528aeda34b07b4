"""Checks a configuration that management sends, by the rules of a reload, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from trouter.app.service_findings import unknown_services
from trouter.config import Configuration, ConfigurationError, Problem, compare, load
from trouter.config.asked import UsedSources
from trouter.config.changes import withheld_sources
from trouter.config.findings import OF_MACHINE, evaluate, judged
from trouter.config.keepers import EVERYBODY
from trouter.config.nodes import Section
from trouter.config.policy_part import policy_only
from trouter.config.problems import Severity
from trouter.config.remote import beyond_management
from trouter.config.same_addresses import same_addresses
from trouter.config.types import type_of_section
from trouter.management.ports import PlanReport
from trouter.policy.configured import policy_of
from trouter.policy.expectation_file import expectations_in
from trouter.policy.expectations import hold

from .reload_report import report_of

#: The errors of a text after which it is not judged any further.
MOST_ERRORS: Final = 100


def check_text(present: Configuration, text: str, name: str, *, may_change: bool = True) -> PlanReport:
    """Return what a reload of ``text`` would make of the configuration ``present``, and the findings about it.

    ``name`` is what the findings call the text. If it names files that management may not read, none is read; one who
    may not change anything (``may_change``) may name only those that the router uses, and is told nothing about the
    rights to them.
    """
    try:
        return _report(present, load_asked(present, text, name, may_change=may_change), may_change=may_change)
    except ConfigurationError as error:
        return refused(error.problems)


def _report(
    present: Configuration, wanted: Configuration, *, may_change: bool = True, is_whole: bool = True
) -> PlanReport:
    """Return what a reload would make of a configuration, and the findings about it; ConfigurationError."""
    changes = compare(present, wanted)
    return PlanReport(
        report_of(changes),
        _findings(changes.configuration, may_change=may_change, is_whole=is_whole),
        refusals=tuple(map(str, beyond_management(present, wanted))),
    )


def _findings(whole: Configuration, *, may_change: bool = True, is_whole: bool = True) -> tuple[Problem, ...]:
    """Return the findings about a configuration; for one who may change nothing, those that its text alone shows.

    Unless the text is whole (``is_whole``), comments in it that accept other findings are not judged: what they are
    about may stand at another place.
    """
    found = [*evaluate(whole, is_file=False), *same_addresses(whole), *unknown_services(whole)]
    if may_change:
        return judged(whole, found, whole=is_whole)
    accepted = tuple(each for each in whole.acceptances if each.point not in OF_MACHINE)
    return judged(replace(whole, acceptances=accepted), [each for each in found if each.point not in OF_MACHINE])


def refused(problems: Iterable[Problem]) -> PlanReport:
    """Return the report about a text that cannot be used."""
    return PlanReport(None, tuple(replace(problem, severity=Severity.PROBLEM) for problem in problems))


def check_policy(present: Configuration, text: str, name: str, expectations: str) -> PlanReport:
    """Return the report about a text of which the policy would change, and hold that to a file of expectations.

    Its findings are those that the router does not have already. An expectation that does not hold is a reason to
    refuse the change; without ``expectations`` there are none.
    """
    try:
        wanted = policy_only(present, load_asked(present, text, name))
        report = _report(present, wanted, is_whole=False)
        expected = expectations_in(expectations, Path("expectations")) if expectations else None
    except ConfigurationError as error:
        return refused(error.problems)
    known = set(map(_about, _findings(present)))
    failures = () if expected is None else hold(expected, policy_of(wanted)).failures
    return replace(
        report,
        findings=tuple(each for each in report.findings if _about(each) not in known),
        refusals=(*report.refusals, *failures),
    )


def _about(finding: Problem) -> tuple[str, ...]:
    """Return what a finding says, wherever it stands in a text."""
    return finding.entity, finding.section, finding.key, finding.message


def load_asked(present: Configuration, text: str, name: str, *, may_change: bool = True) -> Configuration:
    """Return the configuration in a text, which names only files and secrets that management may have read.

    ConfigurationError with each other one, and then nothing is read; see ``check_text``.
    """
    withheld = partial(withheld_sources, present) if may_change else UsedSources(present).withheld

    def problems_in(sections: Iterable[Section]) -> Iterator[Problem]:
        for section in sections:
            if (kind := type_of_section(section.name)) is not None:
                for entry, reason in withheld(kind, section.entries):
                    yield Problem(entry.place, reason, section.name)

    return load(Path(name), text, None if may_change else EVERYBODY, MOST_ERRORS, problems_in)

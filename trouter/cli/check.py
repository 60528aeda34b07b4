"""`trouter check`: reports which parts of a configuration the router would not serve, and which are unsafe."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.app.privileges import PrivilegeError, account_of
from trouter.cli.startup import StartError, evaluation, existing_path, prepare
from trouter.config import Configuration, Problem
from trouter.config.findings import described
from trouter.config.keepers import Keepers, keepers_for_operator, keepers_of_process
from trouter.config.networks import remarks
from trouter.config.problems import ProblemKind, Severity
from trouter.tools.failures import print_problem
from trouter.tools.table import Style, may_colour

ALWAYS_SHOWN: Final = frozenset({"listener(s)", "address rule(s)", "warning(s)"})
#: The style of a finding on a terminal, by its severity.
_STYLES: Final = {
    Severity.PROBLEM: Style.ALARM,
    Severity.UNSAFE: Style.WARNING,
    Severity.NOTE: Style.QUIET,
    Severity.ACCEPTED: Style.QUIET,
}
_REMARKS: Final = {True: "network", False: "warning"}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result for one file. Without a ``configuration`` the router would not start; ``errors`` has the reasons."""

    path: Path
    configuration: Configuration | None = None
    findings: tuple[Problem, ...] = ()
    errors: tuple[Problem, ...] = ()
    #: The errors as lines, those without a place too.
    lines: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def verdict(self, *, strict: bool) -> str:
        """Return `not usable`, `problems`, `not safe` or `good`."""
        if self.configuration is None:
            return "not usable"
        if self.count(Severity.PROBLEM):
            return "problems"
        return "not safe" if strict and self.count(Severity.UNSAFE) else "good"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="check a configuration file",
        description="Load a configuration as `trouter run` does, and print each point that the router would not "
        "serve, that is unsafe, or that is worth knowing, with its place and a cure. A comment of its own line, "
        "`# trouter: accept POINT: REASON`, above a section or inside of it accepts a point; --json names the points. "
        "If the files of several routers of a network are given, check also that they agree.",
        epilog="The exit status is 0 for good files, 1 if the router would not serve a part of a file (and, "
        "with --strict, if a file is unsafe), 2 for a wrong command line.",
    )
    parser.add_argument("files", metavar="FILE", type=existing_path, nargs="+", help="the configuration to check")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for unsafe points, too")
    parser.add_argument(
        "--user",
        metavar="NAME",
        type=known_user,
        help="the user that the router runs as, a name or a number, who may own its files besides root and you; "
        "without it, also `trouter` and `qdrouterd`, if this machine has them",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document on standard output")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return the exit status."""
    strict: bool = arguments.strict
    keepers = keepers_for_operator() if arguments.user is None else keepers_of_process(arguments.user)
    checked = [_check(path, keepers) for path in arguments.files]
    found = [*remarks([each.configuration for each in checked if each.configuration is not None])]
    if arguments.json:
        document = {
            "files": [_document(each, strict=strict) for each in checked],
            "network": [{"severity": _REMARKS[remark.grave], "message": remark.text} for remark in found],
        }
        print(json.dumps(document, indent=2))
    else:
        for each in checked:
            _print(arguments, each, strict=strict)
        for remark in found:
            severity = Severity.PROBLEM if remark.grave else Severity.NOTE
            print(f"{_painted(severity, _REMARKS[remark.grave])}: {remark.text}", file=sys.stderr)
    bad = any(each.verdict(strict=strict) != "good" for each in checked) or any(remark.grave for remark in found)
    return 1 if bad else 0


def known_user(name: str) -> int:
    """Return the number of a user of the command line; argparse.ArgumentTypeError if there is none."""
    if name.isdecimal():
        return int(name)
    try:
        return account_of(name).uid
    except PrivilegeError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _check(path: Path, keepers: Keepers) -> Checked:
    """Return the result for one file."""
    try:
        configuration, plugins = prepare(path, keepers=keepers)
    except StartError as error:
        return Checked(path, None, error.others, error.problems, error.lines)
    return Checked(path, configuration, evaluation(configuration, plugins))


def _print(arguments: argparse.Namespace, checked: Checked, *, strict: bool) -> None:
    """Print the result for one file: findings on standard error, a good result on standard output."""
    path, configuration = checked.path, checked.configuration
    if configuration is None:
        print("\n".join(checked.lines), file=sys.stderr)
        _print_findings(checked)
        print_problem(arguments, f"{path}: not usable, {len(checked.lines)} error(s)")
        return
    _print_findings(checked)
    if checked.findings:
        print(f"{path}: {_summary(configuration, checked)}", file=sys.stderr)
    match checked.verdict(strict=strict):
        case "problems":
            count = checked.count(Severity.PROBLEM)
            print_problem(arguments, f"{path}: not served as written, {count} problem(s)")
        case "not safe":
            print_problem(arguments, f"{path}: not safe, {checked.count(Severity.UNSAFE)} finding(s)")
        case _:
            counts = _counts(configuration, checked)
            found = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what in ALWAYS_SHOWN)
            print(f"{configuration.source}: good, {found}")


def _print_findings(checked: Checked) -> None:
    """Print each finding, with the point by which a comment in the file can accept it."""
    for finding in checked.findings:
        point = f" [{finding.point}]" if finding.point else ""
        print(f"{_painted(finding.severity)}: {finding}{point}", file=sys.stderr)


def _painted(severity: Severity, word: str = "") -> str:
    """Return the severity, or the ``word`` for it, in its colour if standard error shows colours."""
    text = word or str(severity)
    return _STYLES[severity].paint(text) if may_colour(sys.stderr) else text


def _summary(configuration: Configuration, checked: Checked) -> str:
    """Return how many entities are served, and how much of the file is unsafe, renamed or unused."""
    broken = {finding.entity for finding in checked.findings if finding.severity is Severity.PROBLEM}
    entities = [entity for entity in configuration.entities if entity.place.line]  # those of the file
    served = sum(entity.identity not in broken for entity in entities)
    kinds = Counter(finding.kind for finding in checked.findings)
    return (
        f"{served} of {len(entities)} entities served, {checked.count(Severity.UNSAFE)} unsafe, "
        f"{kinds[ProblemKind.RENAMED]} renamed, {kinds[ProblemKind.UNUSED]} unused"
    )


def _counts(configuration: Configuration, checked: Checked) -> dict[str, int]:
    return {
        "listener(s)": len(configuration.listeners),
        "connector(s)": len(configuration.connectors),
        "address rule(s)": len(configuration.addresses),
        "vhost(s)": len(configuration.vhosts),
        "warning(s)": checked.count(Severity.NOTE),
        "unsafe": checked.count(Severity.UNSAFE),
        "accepted": checked.count(Severity.ACCEPTED),
    }


def _document(checked: Checked, *, strict: bool) -> dict[str, object]:
    """Return one file as JSON."""
    findings = [described(finding) for finding in (*checked.errors, *checked.findings)]
    findings += [{"severity": str(Severity.PROBLEM), "message": line} for line in checked.lines if not checked.errors]
    counts = Counter(str(finding["severity"]) for finding in findings)
    return {
        "file": str(checked.path),
        "verdict": checked.verdict(strict=strict),
        "counts": {str(severity): counts[str(severity)] for severity in Severity},
        "findings": findings,
    }

"""`trouter migrate`: writes an old configuration in today's form, and reports the changes with their reasons."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from trouter._text import escape_unprintable
from trouter.cli.migrate_interconnect import run_interconnect
from trouter.cli.startup import StartError, evaluation, existing_path, prepare
from trouter.config import ConfigurationError, Problem
from trouter.config.conf_form import parse_conf
from trouter.config.findings import described
from trouter.config.json_form import parse_json
from trouter.config.keepers import keepers_for_operator
from trouter.config.migrate import Edit, Migrated, migrated
from trouter.config.nodes import Scalar, squash
from trouter.config.problems import Findings, Severity
from trouter.config.strictness import POINTS
from trouter.tools.failures import UsageError, print_problem
from trouter.tools.files import replace

#: Other users must not read which users exist, or how the router is protected.
MODE: Final = 0o600
SUFFIXES: Final = (".conf", ".json")
DESCRIPTION: Final = """\
Write a configuration of Qpid Dispatch Router (0.x too), AMQ Interconnect or (in its JSON form) skupper-router with the
names of today, without what has no effect, comments kept, and report each change, what is unsafe, and what is not
supported. The router serves the old file and the new one alike, but refuses a file of 0.x."""
EPILOG: Final = """\
examples:
  trouter migrate --check qdrouterd.conf              what would change, and why
  trouter migrate qdrouterd.conf -o trouter.conf      write it, and report
  trouter migrate qdrouterd.conf --secure -o new.conf the same with secureDefaults: yes
  trouter migrate /etc/qpid-dispatch -o new           all files of a directory, policies in JSON too
  trouter migrate qdrouterd.conf >trouter.conf        the text alone; the report goes to standard error
  trouter migrate --interconnect cr.yaml -o v.yaml    an Interconnect of the old operator as Helm values

The exit status is 0 for files that are good, 1 for one that would not do what it says, that cannot be secure, or that
--check finds to be old or to leave something to do, 2 for a command line that makes no sense. The old file stays as it
is.
"""


@dataclass(slots=True)
class MigrationReport:
    """The report of one file. ``errors`` are the reasons why nothing was written for it."""

    path: Path
    result: Migrated | None = None
    written: Path | None = None
    findings: tuple[Problem, ...] = ()
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[Edit]:
        return self.result.changes if self.result else []

    @property
    def bad(self) -> bool:
        return bool(self.errors) or any(finding.severity is Severity.PROBLEM for finding in self.findings)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "migrate", help="convert an old configuration to the present names", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument(
        "old", metavar="OLD", nargs="?", type=existing_path, help="a file (.conf, .json), or a directory of them"
    )
    parser.add_argument(
        "--interconnect",
        metavar="FILE",
        type=existing_path,
        help="a manifest (YAML, JSON) of AMQ Interconnect's operator, to be made into values for the Helm chart",
    )
    parser.add_argument("-o", "--output", metavar="PATH", type=existing_path, help="the file or directory to write")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything would change")
    parser.add_argument("--secure", action="store_true", help="write secureDefaults: yes, or say why that cannot be")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    parser.add_argument("--json", action="store_true", help="print the report as JSON; needs -o or --check")
    parser.set_defaults(run=run, command_parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the new files and the report; return the exit status."""
    if arguments.interconnect is not None:
        return run_interconnect(arguments)
    if arguments.old is None:
        raise UsageError("name the file to convert: OLD, or --interconnect FILE")
    old: Path = arguments.old
    output: Path | None = arguments.output
    if arguments.check and output is not None:
        raise UsageError("--check writes nothing: leave out one of --check and -o")
    if output is None and not arguments.check and (old.is_dir() or arguments.json):
        raise UsageError(f"{'a directory' if old.is_dir() else '--json'} needs -o PATH, or --check")
    if output is not None and output.is_dir() and not old.is_dir():
        output /= old.name
    if output is not None and not old.is_dir():
        _check_form(old, output)
    reports = [*_reports(old, output, secure=arguments.secure, single=not old.is_dir())]
    if output is not None:
        for report in reports:
            _write(report, force=arguments.force)
    elif not arguments.check:
        sys.stdout.writelines(report.result.text for report in reports if report.result and not report.errors)
    if arguments.json:
        print(json.dumps({"files": [*map(_document, reports)]}, indent=2))
    else:
        _print(arguments, reports, sys.stdout if output is not None or arguments.check else sys.stderr)
    changed = any(report.changes for report in reports)
    return 1 if any(report.bad for report in reports) or (arguments.check and changed) else 0


def _check_form(old: Path, output: Path) -> None:
    """Check that the new name has the form of the old file; UsageError."""
    is_json = old.suffix == ".json"
    if is_json != (output.suffix == ".json"):
        right = output.with_suffix(".json" if is_json else ".conf")
        form = "is JSON" if is_json else "is not JSON"
        raise UsageError(f"{old} {form}, and the new file has the same form, which its name shows: write -o {right}")


# --- each file


def _reports(old: Path, output: Path | None, *, secure: bool, single: bool) -> Iterator[MigrationReport]:
    """Yield the report of a file, or of each file of a directory."""
    files = [old] if single else sorted(path for path in old.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not files:
        yield MigrationReport(old, errors=[f"no file of this directory ends in {' or '.join(SUFFIXES)}"])
    policies = {*_policy_folders(files)}
    for path in files:
        target = None if output is None else (output if single else output / path.relative_to(old))
        is_policy = path.resolve().parent in policies
        yield _report(path, target, secure=secure and not is_policy, single=single, is_policy=is_policy)


def _report(path: Path, target: Path | None, *, secure: bool, single: bool, is_policy: bool) -> MigrationReport:
    """Return the report of one file, with the result evaluated as by `trouter check`."""
    report = MigrationReport(path)
    try:
        text = path.read_text(encoding="utf-8")
        result = migrated(text, str(path), secure=secure)
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8 text"
        report.errors.append(f"{path}: cannot be read: {reason}")
        return report
    except ConfigurationError as error:
        report.errors += map(str, error.problems)
        return report
    if not result.recognized:
        if single:
            report.errors.append(f"{path}: it has no section of a router's configuration")
        else:
            report.notes.append("left alone: it has no section of a router's configuration")
        return report
    report.result, report.written = result, target
    if is_policy:
        report.notes.append(f"it is read where policyDir names its folder, {path.parent}")
        return report
    try:
        named = target or path.with_suffix(f".migrated{path.suffix}")
        configuration, plugins = prepare(named, result.text, keepers_for_operator())
    except StartError as error:
        report.errors += error.lines
    else:
        report.findings = evaluation(configuration, plugins)
        if secure:
            problems = [finding for finding in report.findings if finding.severity is Severity.PROBLEM]
            report.errors += map(str, problems)
            report.findings = tuple(finding for finding in report.findings if finding not in problems)
    if secure and report.errors:
        report.notes.append("cannot be secure yet, for the reasons above: cure them, or leave out --secure")
    return report


def _policy_folders(files: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that the configurations name as policyDir."""
    for path in files:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            form = parse_json if path.suffix == ".json" else parse_conf
            for section in form(path.read_text(encoding="utf-8"), str(path), Findings()):
                for entry in section.entries:
                    if squash(entry.key) == "policydir" and isinstance(entry.node, Scalar):
                        yield Path(str(entry.node.value)).resolve()


def _write(report: MigrationReport, *, force: bool) -> None:
    """Write the new file whole or not at all; without ``force``, leave an existing file and report an error."""
    target = report.written
    if report.result is None or target is None or report.errors:
        report.written = None
        return
    report.written = None
    if target.exists() and not force:
        report.errors.append(f"{target} exists already, and is left as it is (--force overwrites it)")
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(target, report.result.text.encode(), MODE, like=target.stat() if target.exists() else None)
    except OSError as failure:
        report.errors.append(f"{failure.filename or target} cannot be written: {failure.strerror}")
        return
    report.written = target


# --- output


def _print(arguments: argparse.Namespace, reports: list[MigrationReport], stream: TextIO) -> None:
    """Print the report in lines: problems on standard error, the rest on ``stream``."""
    write = partial(print, file=stream)
    for report in reports:
        for change in report.changes:
            kind = "unsupported" if change.unsupported else "changed"
            what = f"{change.old} -> {change.new or '(removed)'}"
            write(escape_unprintable(f"{kind}: {_place(change)}: {what}: {change.why}"))
        for finding in report.findings:
            grave = finding.severity is Severity.PROBLEM
            print(f"{finding.severity}: {finding}{_strict(finding)}", file=sys.stderr if grave else stream)
        for error in report.errors:
            print_problem(arguments, error)
        for note in report.notes:
            write(f"{report.path}: {note}")
        write(_summary(report))


def _place(change: Edit) -> str:
    return f"{change.place.file}:{change.place.line}"


def _strict(finding: Problem) -> str:
    """Return the effect of secureDefaults on a finding, as text; empty without one."""
    point = POINTS.get(finding.point)
    return f"; with secureDefaults: {point.strict}" if point is not None and point.strict else ""


def _summary(report: MigrationReport) -> str:
    unsupported = sum(change.unsupported for change in report.changes)
    unsafe = sum(finding.severity is Severity.UNSAFE for finding in report.findings)
    counts = f"{len(report.changes)} change(s), {unsupported} of them not supported, {unsafe} unsafe"
    if report.errors:
        return f"{report.path}: not written, {len(report.errors)} problem(s)"
    return f"{report.path}: {counts}{f'; written to {report.written}' if report.written else ''}"


def _document(report: MigrationReport) -> dict[str, object]:
    """Return one file as JSON."""
    return {
        "file": str(report.path),
        "written": str(report.written) if report.written else None,
        "changes": [
            {
                "line": change.place.line,
                "old": change.old,
                "new": change.new,
                "why": change.why,
                "supported": not change.unsupported,
            }
            for change in report.changes
        ],
        "findings": [
            {**described(finding), "strict": point.strict if (point := POINTS.get(finding.point)) else ""}
            for finding in report.findings
        ],
        "errors": report.errors,
        "notes": report.notes,
    }

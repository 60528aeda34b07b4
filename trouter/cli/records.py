"""`trouter records`: prove the segments that a router has recorded, print their records, and follow new ones."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final

from trouter.cli.record_keys import add_keys, key_in
from trouter.records.anchors import heads_in
from trouter.records.check import check_file, check_folder
from trouter.records.reader import Corrupt, RecordLine, SegmentReader, fields_of
from trouter.records.schema import AUDIT, KINDS, TELEMETRY
from trouter.records.segments import EMPTY, OPEN, SegmentPosition, opened, place_of, segments_in
from trouter.records.text import clean
from trouter.tools.failures import print_problem
from trouter.tools.options import moment
from trouter.tools.progress import progress

#: Seconds between two looks for new records.
LOOK_S: Final = 0.2
_GROUPS: Final = {"audit": AUDIT, "telemetry": TELEMETRY, "all": frozenset(KINDS)}
#: Fields of the envelope and of the peer, which have columns of their own in a row.
_PLACED: Final = frozenset({"n", "t", "k", "conn", "user", "host"})

Wanted = Callable[[RecordLine, dict[str, Any]], bool]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "records",
        help="prove, read and follow what a router has recorded",
        description="Prove, read and follow the records that a router keeps in the folder of a recordLog section.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="prove that nothing is missing or changed",
        description="Prove segments of records: that each is as it was written, that none is missing between the "
        "first and the last, and that a record reports every gap. Each fault is printed with its file and byte, and "
        "the exit status is then 1.",
    )
    check.add_argument("path", type=Path, metavar="DIR|FILE")
    check.add_argument("--json", action="store_true", help="one JSON object")
    check.add_argument(
        "--key",
        "-K",
        metavar="FILE|-",
        help="verify the seals with this verification key, from a file or the input",
    )
    check.add_argument(
        "--anchors",
        "-A",
        type=Path,
        metavar="FILE",
        help="compare the heads in this file, which `trouter receive` has written from the anchorAddress",
    )
    check.set_defaults(run=run_check)
    add_keys(actions)
    cat = actions.add_parser("cat", help="print records", description="Print records, the oldest first.")
    follow = actions.add_parser(
        "follow",
        help="print records as they are written",
        description="Print the records that are written from now on, across the ends of segments, until interrupted.",
    )
    for each, run in ((cat, run_cat), (follow, run_follow)):
        each.add_argument("path", type=Path, metavar="DIR" if each is follow else "DIR|FILE")
        each.add_argument("--kind", "-k", action="append", type=_kinds, help="only these: a kind, audit or telemetry")
        each.add_argument("--user", "-u", help="only what is about this user")
        each.add_argument("--json", action="store_true", help="the lines as they were written")
        each.set_defaults(run=run, since=None, until=None)
    for name, what in (("since", "from this moment on"), ("until", "before this moment")):
        cat.add_argument(f"--{name}", type=moment, help=f"only {what}: 2026-03-01T12:00 (UTC), or 90m, 2h, 7d ago")


def _kinds(text: str) -> frozenset[str]:
    if text in _GROUPS:
        return _GROUPS[text]
    if text not in KINDS:
        raise argparse.ArgumentTypeError(f"no such kind; there are: {', '.join((*_GROUPS, *KINDS))}")
    return frozenset({text})


def run_check(arguments: argparse.Namespace) -> int:
    """Print the faults and the contents of the records; return 1 if there are faults."""
    path: Path = arguments.path
    try:
        key = None if arguments.key is None else key_in(arguments.key)
        heads = None if arguments.anchors is None else heads_in(arguments.anchors)
        if (key is not None or heads is not None) and not path.is_dir():
            raise ValueError("seals and heads are verified in a whole folder: give the folder of the records, no file")
        if path.is_dir():
            with progress(f"checking {path}", len(segments_in(path)), " segments") as advance:
                report = check_folder(path, advance, key, heads, partial(print, file=sys.stderr))
        else:
            report = check_file(path)
    except (OSError, ValueError) as error:
        print_problem(arguments, error)
        return 1
    if arguments.json:
        counts = {"segments": report.segments, "records": report.records, "unproved": report.unproved}
        print(json.dumps({**counts, "errors": report.errors, "notes": report.notes}, indent=2))
        return 1 if report.errors else 0
    for fault in report.errors:
        print_problem(arguments, fault)
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    found = f"{report.records} records in {report.segments} segments"
    proved = f"{report.unproved} of them not proved" if report.unproved else "all proved"
    print(f"{found}, {len(report.errors)} errors" if report.errors else f"{found}, {proved}")
    return 1 if report.errors else 0


def run_cat(arguments: argparse.Namespace) -> int:
    """Print the chosen records; return 1 if a segment cannot be read to its end, else 0."""
    wanted = _wanted(arguments)
    show = _show_line if arguments.json else _show_row
    path: Path = arguments.path
    alone = SegmentPosition("", 0, 0, OPEN if path.name.endswith(OPEN) else "", path)
    places = segments_in(path) if path.is_dir() else [place_of(path) or alone]
    faults: list[Corrupt | OSError] = []
    streams = [_lines_of(list(of_router), faults) for _, of_router in groupby(places, key=lambda place: place.router)]
    for line in merge(*streams, key=lambda line: line.t):  # each router, or worker of one, has segments of its own
        if wanted(line, fields := fields_of(line.octets)):
            show(line, fields)
    for fault in faults:
        print_problem(arguments, fault)
    return 1 if faults else 0


def _lines_of(places: Iterable[SegmentPosition], faults: list[Corrupt | OSError]) -> Iterator[RecordLine]:
    """Yield the records of segments; add each fault to ``faults``, and go on with the next segment."""
    for place in places:
        if place.rest == EMPTY:
            continue
        try:
            with opened(place.path) as file:
                yield from SegmentReader(place.path, file, open_ended=place.rest == OPEN).lines()
        except (Corrupt, OSError) as error:  # a file may have been completed or deleted in between
            faults.append(error)


def run_follow(arguments: argparse.Namespace) -> int:
    """Print new records until interrupted; return 1 if the segments cannot be read, else 0."""
    wanted = _wanted(arguments)
    show = _show_line if arguments.json else _show_row
    try:
        for line in _Follower(arguments.path).lines():
            if wanted(line, fields := fields_of(line.octets)):
                show(line, fields)
                sys.stdout.flush()
    except (Corrupt, OSError) as error:
        print_problem(arguments, error)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


class _Follower:
    """Reads records that are added to the segments of a folder; a segment that is renamed stays open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: set[str] = set()
        self._reading: dict[str, tuple[BinaryIO, SegmentReader]] = {}
        for place in segments_in(folder):
            if place.rest != OPEN:
                self._done.add(place.name)
            elif reading := self._begin(place):
                for _ in reading.lines():  # the records that are there already
                    pass

    def lines(self) -> Iterator[RecordLine]:
        """Yield the lines of new records for ever; Corrupt, OSError."""
        while True:
            for place in segments_in(self._folder):
                name = place.name
                if place.rest != EMPTY and name not in self._done and name not in self._reading:
                    self._begin(place)
            for name, (file, reader) in list(self._reading.items()):
                yield from reader.lines()
                if reader.trailer is not None:
                    file.close()
                    del self._reading[name]
                    self._done.add(name)
            time.sleep(LOOK_S)

    def _begin(self, place: SegmentPosition) -> SegmentReader | None:
        try:
            file = opened(place.path)
        except FileNotFoundError:  # it has just been renamed: the next look finds the new name
            return None
        try:
            reader = SegmentReader(place.path, file, open_ended=True)
        except Corrupt:  # its header is not written yet
            file.close()
            return None
        self._reading[place.name] = (file, reader)
        return reader


def _wanted(arguments: argparse.Namespace) -> Wanted:
    kinds = None if arguments.kind is None else frozenset().union(*arguments.kind)
    user, since, until = arguments.user, arguments.since, arguments.until

    def wanted(line: RecordLine, fields: dict[str, Any]) -> bool:
        return (
            (kinds is None or line.kind in kinds)
            and (user is None or fields.get("user") == user)
            and (since is None or line.t >= since)
            and (until is None or line.t < until)
        )

    return wanted


def _show_line(line: RecordLine, _: dict[str, Any]) -> None:
    sys.stdout.write(line.octets.decode())


def _show_row(line: RecordLine, fields: dict[str, Any]) -> None:
    when = datetime.fromtimestamp(line.t / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    conn = clean(f"[C{fields['conn']}]") if "conn" in fields else ""
    who = "@".join(str(fields[name]) for name in ("user", "host") if name in fields)
    rest = " ".join(f"{clean(name)}={_shown(value)}" for name, value in fields.items() if name not in _PLACED)
    print(f"{when} {clean(line.kind):18} {conn:7} {clean(who):20} {rest}".rstrip())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = clean(str(value))
    return f'"{text}"' if " " in text or not text else text

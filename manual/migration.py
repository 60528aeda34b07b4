"""The manual's page on migration from Qpid Dispatch, written from the table of strictness (`make docs`)."""

from __future__ import annotations

import re
from typing import Final

from manual.stays import STAYS
from trouter.config.point import Point
from trouter.config.problems import Severity
from trouter.config.strictness import POINTS

INTRODUCTION: Final = """\
# From Qpid Dispatch

*This page is written from the table of strictness that the router decides by (`make docs`).*

The router serves a configuration of Apache Qpid Dispatch Router 1.19 unchanged, the way that router serves it, by the
same command line (`qdrouterd -c FILE`). A file of an earlier 1.x release is served without the sections that 1.19
lacks, such as `tcpListener`. A file of 0.x (`container`, `router-id`, `addr`, `fixed-address`, `on-demand`) is refused,
as by 1.19, with what each name is called today; `trouter migrate` writes the file of today.

The router reports what is unsafe about the file and does not refuse it: in the log at the start, by
`trouter check FILE`, by `trouter manage query --type finding`, and by `/metrics`. `secureDefaults: yes` in the router
section turns every point of the first table to its strict side; `trouter init` writes it into new files.

[The guide](migration-guide.md) goes from one to the other step by step, and
[the table of compatibility](compatibility.md) lists every name; [one more guide](from-skupper-router.md) begins at
skupper-router. In short:

1. Run `trouter check FILE`. Exit status 0 means that all of the file is served. Fix every line that starts with
   `problem:`.
2. Start trouter in the place of Qpid Dispatch. Tools, clients, brokers and neighbours stay as they are.
3. Run `trouter migrate FILE -o NEW`, which writes today's names and reports each change.
4. Run `trouter check --strict NEW`. Fix the lines that start with `unsafe:`, as far as the deployment needs it.
5. Run `trouter migrate NEW --secure -o SECURE`, which writes `secureDefaults: yes`, or reports why it cannot.
"""

TURNED: Final = """\
## What secureDefaults turns

| about | without it | with it | reported as |
|---|---|---|---|
"""

TOLD: Final = """\
## What is reported with it and without it

| about | what happens | reported as | cure |
|---|---|---|---|
"""

STAY: Final = """\
## What stays different

With the switch and without it, these are not as on Qpid Dispatch.

| what | Qpid Dispatch | here | why |
|---|---|---|---|
"""

DIFFERS: Final = """\
## What differs and is reported

Here the router reads a file otherwise than Qpid Dispatch, and allows more (*wider*), less (*narrower*) or something
else (*other*). `trouter check` reports each place in the file that this is about; what is wider is a `problem`. With
`secureDefaults` nothing is reported, as the file is written for this router.

| about | Qpid Dispatch | here | direction | reported as | cure |
|---|---|---|---|---|---|
"""

#: The placeholders in a finding.
_PLACES: Final = re.compile(r"\{(\w+)\}")
SHOWN: Final = {Severity.PROBLEM: "problem", Severity.UNSAFE: "unsafe", Severity.NOTE: "warning"}


def page() -> str:
    """Return the whole page."""
    turned = "".join(row_of(point) for point in POINTS.values() if point.strict)
    told = "".join(_reported(point) for point in POINTS.values() if not (point.strict or point.there))
    differs = "".join(_differs(point) for point in POINTS.values() if point.there)
    stay = "".join(f"| {each.what} | {each.there} | {each.here} | {each.why} |\n" for each in STAYS)
    return "\n".join([INTRODUCTION, TURNED + turned, TOLD + told, DIFFERS + differs, STAY + stay])


def _subject(point: Point) -> str:
    return f"[`{point.subject}`]({point.page})"


def row_of(point: Point) -> str:
    """Return the row of a point that the switch changes."""
    told = f"{SHOWN[point.severity]} `{point.name}`" if point.warning else ""
    return f"| {_subject(point)} | {point.compatible} | {point.strict} | {told} |\n"


def _reported(point: Point) -> str:
    return f"| {_subject(point)} | {point.compatible} | {SHOWN[point.severity]} `{point.name}` | {_cure(point)} |\n"


def _differs(point: Point) -> str:
    told = f"{point.direction} | {SHOWN[point.severity]} `{point.name}` | {_cure(point)}"
    return f"| {_subject(point)} | {point.there} | {point.compatible} | {told} |\n"


def _cure(point: Point) -> str:
    return _PLACES.sub(lambda place: place[1].upper(), point.cure)

"""The page of clients: what a run of these tests showed, client by thing; `python -m tests.field.page` writes it.

A run notes its results in build/field/results.json (``conftest.py``). The page comes from a whole run only: each client
on each thing and way. `make field-page` does both.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trouter
from tests.field.programs import BUILT, CLIENTS, Client
from tests.field.scene import WAYS
from tests.field.things import RECONNECT, THINGS
from trouter import _twin

RESULTS: Final = BUILT / "results.json"
PAGE: Final = Path(__file__).parents[2] / "docs" / "field.md"
#: The results of pytest, and how the page shows them.
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
#: (client, thing, way) -> the result.
Results = Mapping[tuple[str, str, str], str]
#: The column of a thing -> what it is.
COLUMNS: Final = {
    **{thing: str(work.__doc__).strip() for thing, work in THINGS.items()},
    RECONNECT: "Sends to itself again after its router was killed and started again.",
}
_HEAD: Final = """\
# Clients of other projects

This page is made of a run of `make test-field`: clients of other projects, unmodified and in fixed versions, work
through real routers. They run in network namespaces with addresses of their own, so that no limit exempts them as it
exempts clients on loopback. `make field-page` runs it and writes the page.
"""
_WAYS: Final = {
    "one router": "both ends at one interior router",
    "two routers": "from one interior router to another",
    "an edge": "from an edge router, through its interior router, to another one",
    "an edge, TLS": "the same; clients use TLS",
    "WebSockets": "from one interior router to another; over WebSockets within TLS, with the subprotocol "
    "`AMQPWSB10` and the origin of another site's page",
}


class NotWholeError(Exception):
    """A run lacks results."""


def cell(client: Client, thing: str, results: Results) -> str:
    """Return how a client did a thing: `yes`, `-` if it does no such thing, or the ways on which it failed.

    NotWholeError if the run did not try one of them.
    """
    done: list[str] = []
    failed: list[str] = []
    for way in WAYS if thing != RECONNECT else WAYS[:1]:
        if client.lacks.get(thing) or (thing != RECONNECT and client.why_without(thing, way)):
            continue
        result = results.get((client.name, thing, way))
        if result not in {PASSED, FAILED}:
            raise NotWholeError(f"{client.name}, {thing}, {way}: {result or 'not tried'}")
        (done if result == PASSED else failed).append(way)
    if failed:
        return f"no: {', '.join(failed)}"
    return "yes" if done else "-"


def page(results: Results, when: str, machine: str) -> str:
    """Return the text of the page; NotWholeError if the results are not those of a whole run."""
    lines = [_HEAD, f"The run: {when}, trouter {trouter.__version__} ({_twin.running()}), {machine}.", ""]
    lines += [f"| client | version | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for client in CLIENTS.values():
        cells = (cell(client, thing, results) for thing in COLUMNS)
        lines.append(f"| {client.name} | {client.version()} | {' | '.join(cells)} |")
    lines += ["", "`yes`: on every way below that the client knows. `-`: the client does no such thing.", ""]
    lines += ["## What they do", "", "| thing | what a client does |", "|---|---|"]
    lines += [f"| {thing} | {what} |" for thing, what in COLUMNS.items()]
    lines += [
        "",
        "The queues and topics are those of a container behind a route: `browse`, `unsubscribe` and `abrupt end` use",
    ]
    lines += ["routed links, and so does everything of `@azure/service-bus`, with its `$cbs` and `$management`.", ""]
    lines += ["## On which ways", "", "| way | what it is |", "|---|---|"]
    lines += [f"| {way} | {_WAYS[way]} |" for way in WAYS]
    lines += ["", "## What they do not do", "", "| client | thing or way | why |", "|---|---|---|"]
    lines += [
        f"| {client.name} | {what} | {why} |" for client in CLIENTS.values() for what, why in client.lacks.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write docs/field.md from the results of the last run; return 1 if it was not whole."""
    if not RESULTS.exists():
        sys.stderr.write("there are no results: `make test-field` makes them\n")
        return 1
    noted = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = {(client, thing, way): result for client, thing, way, result in noted["results"]}
    try:
        PAGE.write_text(page(results, noted["when"], noted["machine"]), encoding="utf-8")
    except NotWholeError as lack:
        sys.stderr.write(f"the last run is not whole: {lack}\n")
        return 1
    return 0


def note(results: Results) -> None:
    """Keep the results of a run."""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    rows = [[*key, result] for key, result in results.items()]
    noted = {"when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "machine": machine, "results": rows}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Run trouter's tools against running routers, in this process, and replace the parts of the output that vary."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import trio

from trouter.cli import main

#: Patterns of parts that vary from run to run, and their replacements, which keep the width of a column.
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC"), lambda _: "DATE UTC"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d{5}"), lambda _: "PPPPP"),
    (re.compile(r"temp\.[A-Za-z0-9+_]{22}"), lambda _: "temp." + "T" * 22),
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), lambda found: "U" * len(found[0])),
    (re.compile(r"\d{3}:\d\d:\d\d:\d\d"), lambda _: "ddd:hh:mm:ss"),
    (re.compile(r"\d+(\.\d+)? [KMGT]iB"), lambda _: "SIZE"),
    (re.compile(r"(?m)^(  Version +)\S+$"), lambda found: f"{found[1]}VERSION"),
    (re.compile(r"(?m)^(  Deliveries Delayed > 1sec +)\d+$"), lambda found: f"{found[1]}-"),
    # On a busy machine the look may come more than five seconds after the last message.
    (re.compile(r"(?m)^(  verdict +)ready: nothing is under way$"), lambda found: f"{found[1]}flowing"),
    # The tool's own requests: the router returns the credit for them at its own time.
    (re.compile(r'(\$management\b.*\D)2(?:4\d|50)(?=(?:",| +)"?-)'), lambda found: f"{found[1]}248"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """The status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


async def run(*words: str) -> Ran:
    """Run `trouter WORDS` while the caller's other tasks go on."""
    return await trio.to_thread.run_sync(_run, words)


def status_of(words: Sequence[str]) -> int:
    """Run `trouter WORDS` in this process; return its exit status."""
    try:
        return main(words)
    except SystemExit as ended:  # a wrong command line
        return int(ended.code or 0)


def _run(words: tuple[str, ...]) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = status_of(words)
    return Ran(status, out.getvalue(), err.getvalue())


#: Columns that depend on the speed of this machine.
_PACE = ("rate", "delay")


def steady(text: str) -> str:
    """Return the text without the parts that vary from run to run."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    for head in _PACE:
        text = without_column(text, head)
    return text


def without_column(text: str, head: str) -> str:
    """Return the text with a dash in every cell of a numeric column, if it has such a column."""
    lines = text.split("\n")
    found = next((line for line in lines if re.search(rf"(?<=[ \"]){head}(?=[ \"])", line)), None)
    if found is None:
        return text
    if found.startswith('"'):
        cells = rf'^((?:[^,]*,){{{found.split(",").index(chr(34) + head + chr(34))}}})"\d+"'
        return "\n".join(re.sub(cells, r'\1"-"', line) for line in lines)
    start = re.search(rf"(?<= ){head}(?= )", found).start()  # type: ignore[union-attr]
    cell = re.compile(r"\d+")
    return "\n".join(
        line[:start] + cell.sub(lambda number: "-" + " " * (len(number[0]) - 1), line[start:], count=1)
        if cell.match(line, start)
        else line
        for line in lines
    )


def without_numbers(text: str) -> str:
    """Return the words of a text without numbers, sizes, and the widths that follow from them."""
    text = re.sub(r"(?<![\w.])(?:\d[\d,]*(?:\.\d+)?|SIZE)(?![\w.])", "N", text)
    return re.sub(r"=+", "=", re.sub(r"(?<=\S) {2,}", "  ", text))

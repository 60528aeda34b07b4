"""Render the results as two tables in Markdown that are readable on a terminal too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .measure import Spread
from .results import Figure, Measurement, Results

BEGIN: Final = "<!-- bench: begin -->"
END: Final = "<!-- bench: end -->"


def render(results: Results) -> str:
    """Return all tables as text."""
    about = results.environment
    where = f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}, Python {about['python']}"
    what = f"trouter {about['trouter']} {about['commit']}, {about['haproxy']}, RabbitMQ {about['rabbitmq']}"
    how = f"{about['extent']} bench, {about['repetitions']} repetitions of {about['seconds']} s, {about['when']}"
    lines = [f"{where}; {what}; {how}"]
    for head, rows in (
        (("Figure", "min", "median", "max", "target", ""), [_figure(figure) for figure in results.figures]),
        (("Load", "Subject", "CPU/message", "min-max", "messages/s", "p50 latency"), _loads(results.measurements)),
    ):
        if rows:
            lines += ["", *_aligned(head, rows)]
    if results.remarks:
        lines += ["", *(f"- {remark}" for remark in results.remarks)]
    return "\n".join(lines)


def put_into(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace the text between the page's two marks; raise ValueError if it has none."""
    old = page.read_text(encoding="utf-8")
    before, begun, rest = old.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise ValueError(f"{page} has no {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def number_text(value: float) -> str:
    """Return a number with about three digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _loads(measurements: Sequence[Measurement]) -> list[tuple[str, ...]]:
    rows = list(dict.fromkeys(measurement.row for measurement in measurements))
    ordered = sorted(measurements, key=lambda measurement: rows.index(measurement.row))
    lines: list[tuple[str, ...]] = []
    previous = ""
    for measurement in ordered:
        cpu, latency = measurement.cpu_us, measurement.latency_us
        lines.append(
            (
                measurement.row if measurement.row != previous else "",
                measurement.subject,
                f"{number_text(cpu.middle)} us",
                f"{number_text(cpu.low)}-{number_text(cpu.high)}",
                f"{measurement.per_second.middle:,.0f}",
                f"{latency.middle:,.0f} us" if latency else "",
            )
        )
        previous = measurement.row
    return lines


def _figure(figure: Figure) -> tuple[str, ...]:
    value: Spread = figure.value
    target = ""
    if figure.target is not None:
        target = f"{'>=' if figure.at_least else '<='} {number_text(figure.target)} {figure.unit}"
    verdict = {True: "met", False: "NOT MET", None: ""}[figure.met]
    numbers = [number_text(number) for number in (value.low, value.middle, value.high)]
    return (figure.name, numbers[0], f"{numbers[1]} {figure.unit}", numbers[2], target, verdict)


def _aligned(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table with aligned columns; all but names are aligned to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    names = {column for column, title in enumerate(head) if title in {"Load", "Subject", "Figure", "target", ""}}

    def line(cells: tuple[str, ...]) -> str:
        set_out = [
            cell.ljust(width) if column in names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(set_out)} |"

    rule = [("-" * width if column in names else "-" * (width - 1) + ":") for column, width in enumerate(widths)]
    return [line(head), f"| {' | '.join(rule)} |", *(line(row) for row in rows)]

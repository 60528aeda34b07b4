"""Draw the results: CPU per message by load and subject, and every ratio beside its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from .results import Figure, Measurement, Results
from .table import number_text

_COLOURS: Final = {
    "HAProxy to a sink": "#bbbbbb",
    "HAProxy to the router": "#777777",
    "router": "#0072b2",
    "RabbitMQ 3.10": "#d55e00",
    "RabbitMQ 4.0": "#e69f00",
}
_GOOD: Final = "#009e73"
_BAD: Final = "#cc3311"
#: The share at which a value of nothing is drawn.
FAR: Final = 10.0


def draw(results: Results, folder: Path) -> list[Path]:
    """Write bench.png and bench.svg; return their paths. Raise ImportError without matplotlib."""
    import matplotlib as mpl  # noqa: PLC0415  # only a bench needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    loads = [measurement for measurement in results.measurements if measurement.subject in _COLOURS]
    compared = {measurement.row for measurement in loads if measurement.subject.startswith("HAProxy")}
    loads = [measurement for measurement in loads if measurement.row in compared]
    judged = [figure for figure in results.figures if figure.target is not None]
    canvas, (left, right) = plt.subplots(1, 2, figsize=(15, 0.4 * max(len(loads) / 1.5, len(judged)) + 2))
    _draw_loads(left, loads)
    _draw_figures(right, judged)
    about = results.environment
    canvas.suptitle(f"trouter {about['trouter']}, {about['processor']}, {about['cores']} cores, {about['when'][:10]}")
    canvas.tight_layout()
    paths = [folder / "bench.png", folder / "bench.svg"]
    for path in paths:
        canvas.savefig(path, dpi=110)
    plt.close(canvas)
    return paths


def _draw_loads(axes: Any, measurements: list[Measurement]) -> None:
    rows = list(dict.fromkeys(measurement.row for measurement in measurements))
    subjects = [subject for subject in _COLOURS if any(measurement.subject == subject for measurement in measurements)]
    height = 0.8 / max(len(subjects), 1)
    for measurement in measurements:
        cpu = measurement.cpu_us
        place = rows.index(measurement.row) + (subjects.index(measurement.subject) - (len(subjects) - 1) / 2) * height
        axes.barh(
            place,
            cpu.middle,
            height,
            xerr=[[cpu.middle - cpu.low], [cpu.high - cpu.middle]],
            color=_COLOURS[measurement.subject],
            label=measurement.subject if measurement.row == rows[0] else None,
        )
        axes.text(cpu.high * 1.08, place, number_text(cpu.middle), va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("CPU per message, microseconds (median, least to most)")
    if measurements:
        axes.legend(loc="lower right")


def _draw_figures(axes: Any, figures: list[Figure]) -> None:
    for place, figure in enumerate(figures):
        low, middle, high = shares(figure)
        colour = _GOOD if figure.met else _BAD
        axes.errorbar(middle, place, xerr=[[middle - low], [high - middle]], fmt="o", capsize=3, color=colour)
        axes.text(high + 0.03, place, f"{number_text(figure.value.middle)} {figure.unit}", va="center", fontsize=8)
    axes.axvline(1.0, color="black", linewidth=1)
    signs = {True: ">=", False: "<="}
    labels = [f"{figure.name} {signs[figure.at_least]} {figure.target:g} {figure.unit}" for figure in figures]
    axes.set_yticks(range(len(figures)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, max([1.0, *(shares(figure)[2] for figure in figures)]) * 1.2)
    axes.set_xlabel("share of what the target allows (median, least to most); left of the line is met")


def shares(figure: Figure) -> tuple[float, float, float]:
    """Return minimum, median and maximum as shares of the target; a share of 1 or less meets it.

    A value of nothing where there is to be something counts as ``FAR`` times the target.
    """
    target, value = figure.target or 1.0, figure.value
    if figure.at_least:
        least = target / FAR
        return (target / max(value.high, least), target / max(value.middle, least), target / max(value.low, least))
    return (value.low / target, value.middle / target, value.high / target)

"""Write the report of a soak: a page with plots, and the tables for the manual.

`python -m tests.soak.report FOLDER [--into PAGE]` writes both again from the figures in a folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.table import put_into
from trouter_pipeline.report.drawing import draw, legend, style_of
from trouter_pipeline.report.page import document
from trouter_pipeline.report.sections import Section

from .figures import LEAST_SPAN_S, Change, Figures, Slope, changes

BEGIN: Final = "<!-- soak: begin -->"
END: Final = "<!-- soak: end -->"
_MIB: Final = 1 << 20
#: The counts that measure memory in use, with their names in the report.
_IN_USE: Final = {"python.blocks": "blocks of Python", "malloc.bytes": "bytes of malloc"}


def write_report(figures: Figures, folder: Path) -> str:
    """Write soak.html and soak.md into the folder; return the text of soak.md."""
    sections = [_memory(figures), _counts(figures), _messages(figures), _churn(figures)]
    sections[0].attention = figures.problems()
    (folder / "soak.html").write_text(document("What a soak left", _when(figures), sections), encoding="utf-8")
    text = "\n".join(_markdown(figures, sections))
    (folder / "soak.md").write_text(f"{text}\n", encoding="utf-8")
    return text


def _when(figures: Figures) -> str:
    about, samples = figures.about, figures.samples
    minutes = samples[-1]["at_s"] / 60 if samples else 0.0
    return (
        f"trouter {about['trouter']} ({about['twin']}, Python {about['python']}), began {about['began']}: "
        f"{minutes:.0f} minutes after the rehearsal, the first {about['warm_up_s'] / 60:.0f} of them to warm up; "
        f"{_cores(figures):.0%} of a core for routers and clients."
    )


def _cores(figures: Figures) -> float:
    if len(figures.samples) < 2:
        return float("nan")
    first, last = figures.samples[0], figures.samples[-1]
    used = sum(last["cpu_s"].values()) - sum(first["cpu_s"].values())
    return float(used / (last["at_s"] - first["at_s"]))


def _markdown(figures: Figures, sections: Sequence[Section]) -> Iterator[str]:
    yield _when(figures)
    problems = figures.problems()
    yield ""
    yield "**Verdict:** everything returned to where it was." if not problems else "**Verdict:** not good."
    yield from (f"- {each}" for each in problems)
    for section in sections:
        yield ""
        yield f"{section.title}: {section.text}"
        if section.rows:
            yield ""
            yield from _table([section.head, *section.rows])


def _table(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    for place, row in enumerate(rows):
        cells = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]
        yield f"| {' | '.join(cells)} |"
        if place == 0:
            yield "|" + "".join("---:|" if isinstance(cell, int) else "---|" for cell in rows[-1])


def _memory(figures: Figures) -> Section:
    section = Section("memory", "Memory")
    slopes = figures.slopes()
    section.text = (
        "resident memory of each router, from the end of the warm-up to the end, and the slope of a line through it."
        if slopes
        else f"resident memory of each router. Less than {LEAST_SPAN_S / 60:.0f} minutes after the warm-up: no slope."
    )
    section.head = (
        "router", "after the warm-up, MiB", "at the end, MiB", "slope, KiB an hour", "95 % confidence",
        *(f"{what}, {when}" for what in _IN_USE.values() for when in ("before", "after")),
    )  # fmt: skip
    measured = figures.measured or figures.samples[-1:]
    for name in figures.before:
        ends = [f"{each['resident'][name] / _MIB:.1f}" for each in (*measured[:1], *measured[-1:])]
        used = [counts.get(name, {}).get(each, "") for each in _IN_USE for counts in (figures.before, figures.after)]
        section.rows.append((name, *ends, *_slope_text(slopes.get(name)), *used))
    section.svg = draw("memory-plot", "Memory over time", section.text, lambda figure: _paint(figure, figures, slopes))
    return section


def _slope_text(rise: Slope | None) -> tuple[str, str]:
    if rise is None:
        return "", ""
    middle, low, high = (number / 1024 for number in rise)
    return f"{middle:+,.0f}", f"{low:+,.0f} to {high:+,.0f}"


def _paint(figure: Any, figures: Figures, slopes: Mapping[str, Slope]) -> None:
    axes = figure.add_subplot()
    minutes = [each["at_s"] / 60 for each in figures.samples]
    for place, name in enumerate(figures.before):
        resident = [each["resident"][name] / _MIB for each in figures.samples]
        axes.plot(minutes, resident, label=f"router {name}", **style_of(place))
    if slopes:
        axes.axvspan(0, figures.about["warm_up_s"] / 60, color="#F3F5F6", label="warm-up")
    axes.set_xlabel("minutes")
    axes.set_ylabel("resident memory, MiB")
    legend(axes)


def _counts(figures: Figures) -> Section:
    section = Section("counts", "Objects")
    section.head = ("router", "class", "before the first client", "after the last", "")
    if not figures.after:
        section.text = "the soak was cut, and nothing was counted at its end."
        return section
    found = [each for each in changes(figures.before, figures.after) if each.judged]
    totals = [each for each in found if "." not in each.name]
    others = [each for each in found if "." in each.name and each.before != each.after]
    section.rows = [(each.router, each.name, each.before, each.after, _verdict(each)) for each in totals + others]
    same = len(found) - len(totals) - len(others)
    section.text = (
        f"what GET-MEMORY tells, descriptors, and the classes of which the number changed; of {same:,} more it did not."
    )
    return section


def _verdict(change: Change) -> str:
    if change.left_over:
        return "LEFT OVER"
    return "notes, bounded" if change.after > change.before else "returned"


def _messages(figures: Figures) -> Section:
    section = Section("messages", "Messages", head=("kind", "sent", "received", "begun again"))
    last = figures.samples[-1] if figures.samples else {"sent": {}, "received": {}, "interrupted": {}}
    for kind in figures.about["traffic"]:
        again = sum(count for text, count in last["interrupted"].items() if text.startswith(f"{kind}:"))
        section.rows.append((kind, last["sent"].get(kind, 0), last["received"].get(kind, 0), again))
    section.text = (
        "of each kind, at the last look, when some were under way; each multicast message goes to three receivers; "
        "clients that lost their link begin again."
    )
    return section


def _churn(figures: Figures) -> Section:
    section = Section("churn", "Churn", head=("what came and went", "times"))
    section.text = "beside the messages."
    last = figures.samples[-1]["churned"] if figures.samples else {}
    section.rows = sorted(last.items())
    return section


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every count returned to its first value, 1 if one did not."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.report", description="Write the report of a soak again."
    )
    parser.add_argument("folder", type=Path, help="where the soak left its figures")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the tables between the marks of a page, too")
    options = parser.parse_args(arguments)
    figures = Figures.read(options.folder)
    text = write_report(figures, options.folder)
    print(text)
    if options.into is not None:
        put_into(options.into, text, BEGIN, END)
    return int(bool(figures.problems()))


if __name__ == "__main__":
    sys.exit(main())

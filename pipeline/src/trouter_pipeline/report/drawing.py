"""Figures as SVG for a page: no script, nothing fetched, no id twice, whatever the labels say.

Labels come from peers: they are cut and shown as text, never as formulas, as matplotlib would do with dollar signs.
Colour-blind people can distinguish the colours, and lines also differ by their dashes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from trouter.records.text import clean

_SVG: Final = "http://www.w3.org/2000/svg"
_XLINK: Final = "http://www.w3.org/1999/xlink"
#: Okabe and Ito's, darkest first; black and yellow are left out.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5F6B73", "#7A4B00")
DASHES: Final = ("-", "--", "-.", ":")
#: Lines of one plot; the others are added up into one more.
MAX_LINES: Final = 7
_LABEL: Final = 36
_SETTINGS: Final[Any] = {
    "timezone": "UTC",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E6E8",
    "axes.edgecolor": "#8A9299",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "path.simplify": True,
}


def label(text: object) -> str:
    """Return ``text`` cleaned for an axis or a legend, since a peer may have chosen it."""
    shown = "(none)" if text is None or text == "" else clean(str(text))
    # Matplotlib's legend leaves out labels that begin with an underscore.
    shown = shown if len(shown) <= _LABEL else f"{shown[: _LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"\N{ZERO WIDTH SPACE}{shown}" if shown.startswith("_") else shown


def style_of(index: int) -> dict[str, Any]:
    """Return the style of the line with this index."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.4}


def draw(name: str, title: str, caption: str, paint: Callable[[Any], None], *, height: float = 2.8) -> str:
    """Return what ``paint`` draws on a matplotlib Figure, as one ``svg`` element with title and description.

    ``name`` is unique on the page, and a part of every id; ``height`` is in inches, of a width of nine.
    """
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the measuring font lacks, a tight layout
        figure = Figure(figsize=(9.0, height))
        FigureCanvasSVG(figure)
        paint(figure)
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _embedded(written.getvalue(), name, title, caption)


def _embedded(document: bytes, name: str, title: str, caption: str) -> str:
    """Return the root element with unique ids and without style sheets, which would affect the whole page."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(document)  # noqa: S314  # matplotlib's, written a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag not in {f"{{{_SVG}}}{kept}" for kept in _KEPT}:
                parent.remove(child)
    for element in root.iter():
        _rename(element, name)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    root.set("stroke-linejoin", "round")
    for place, (kind, text) in enumerate((("title", title), ("desc", caption))):
        element = ET.Element(f"{{{_SVG}}}{kind}", {"id": f"{name}-{kind}"})
        element.text = text
        root.insert(place, element)
    return ET.tostring(root, encoding="unicode")


#: Elements that draw; all others are removed.
_KEPT: Final = ("defs", "g", "path", "use", "text", "tspan", "clipPath", "rect", "image")
_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")


def _rename(element: ET.Element, name: str) -> None:
    for key, value in list(element.attrib.items()):
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key in {f"{{{_XLINK}}}href", "href"} and value.startswith("#"):
            element.set(key, f"#{name}-{value[1:]}")
        elif "url(#" in value:
            element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))


def times_below(axes: Any) -> None:
    """Set an axis of times."""
    locator = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def over_time(axes: Any, unit: str) -> None:
    """Set an axis of times below, and one from zero upwards at the side, with short thousands and millions."""
    times_below(axes)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(EngFormatter())


def legend(axes: Any) -> None:
    """Put the legend to the right of the plot, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, handlelength=2.4)


def strips(axes: Any, names: Sequence[str]) -> None:
    """Set one row for each name, the first at the top."""
    axes.set_yticks(range(len(names)), [label(each) for each in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def few() -> Any:
    """Return a locator of few numbers, for plots side by side."""
    return MaxNLocator(nbins=3)

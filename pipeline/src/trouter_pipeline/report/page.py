"""The page: a summary, points that need attention, and the sections, as HTML without scripts and external resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final, NamedTuple

from trouter_pipeline.places import Where
from trouter_pipeline.report.sections import MAX_ROWS, Question, Section, Tables, made
from trouter_pipeline.report.stored import Period

#: The page's content security policy: only its own styles and inline images.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2327; background: #fff; max-width: 64rem; margin: 2rem auto;
  padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0 }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem; border-top: 1px solid #d5dade; padding-top: 1rem }
.when { color: #5f6b73; margin: 0 }
.attention { border-left: 4px solid #d55e00; padding: .1rem 1rem; margin: 1rem 0; background: #fff6f0 }
.lacking { border-left: 4px solid #5f6b73; padding: .4rem 1rem; background: #f3f5f6 }
svg { width: 100%; height: auto; margin: .5rem 0 }
table { border-collapse: collapse; font-size: .85rem }
caption { text-align: left; color: #5f6b73 }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid #e3e6e8; overflow-wrap: anywhere }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto }
"""


class Report(NamedTuple):
    """``page`` is the HTML, ``lacking`` has sections without their table, ``broken`` unreadable tables with their
    files, ``attention`` the points for the operator.
    """

    page: str
    lacking: list[str]
    broken: list[str]
    attention: list[str]


def build(
    root: Where,
    period: Period,
    limits: Mapping[str, int],
    now: datetime,
    at: datetime | None = None,
    versions: Mapping[str, int] | None = None,
) -> Report:
    """Return the report of the tables under ``root``; ``limits`` has the connections that each tenant may have.

    ``at``: the tables are read as they were at this moment; None for their last versions. ``versions`` are those of
    single tables.
    """
    sections = made(Question(Tables(root, period, at, versions), limits))
    read = "" if at is None else f" The tables are those of {at:%Y-%m-%d %H:%M} UTC."
    read += "".join(f" Of {name} it is version {number}." for name, number in sorted((versions or {}).items()))
    when = f"{_span(period)}. Made {now:%Y-%m-%d %H:%M} UTC.{read} All times are UTC."
    return Report(
        document("What the routers carried", when, sections),
        [each.title for each in sections if each.lacking and not each.broken],
        [each.lacking for each in sections if each.broken],
        [text for each in sections for text in each.attention],
    )


def document(title: str, when: str, sections: Sequence[Section]) -> str:
    """Return a page of these sections, with the points that need attention before them."""
    return "\n".join(_page(title, when, sections)) + "\n"


def _page(title: str, when: str, sections: Sequence[Section]) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="when">{escape(when)}</p>'
    yield from _summary(sections)
    for section in sections:
        yield from _section(section)
    yield "</main></body></html>"


def _span(period: Period) -> str:
    if period.first is None and period.last is None:
        return "All dates that the tables have"
    first, last = (
        f"{end.astimezone(UTC):%Y-%m-%d %H:%M}" if isinstance(end, datetime) else end
        for end in (period.first, period.last)
    )
    return f"Dates from {first or 'the first'} to {last or 'the last'}"


def _summary(sections: Sequence[Section]) -> Iterator[str]:
    attention = [(each.name, text) for each in sections for text in each.attention]
    yield '<section aria-labelledby="summary"><h2 id="summary">Summary</h2>'
    if attention:
        yield '<div class="attention"><p><strong>These points need attention:</strong></p><ul>'
        for name, text in attention:
            yield f'<li>{escape(text)} <a href="#{name}">More</a></li>'
        yield "</ul></div>"
    elif not any(each.lacking for each in sections):
        yield "<p>Nothing needs attention.</p>"
    yield "<ul>"
    for section in sections:
        if not section.lacking:
            yield f'<li><a href="#{section.name}">{escape(section.title)}</a>: {escape(section.text)}</li>'
    yield "</ul>"
    if lacking := [each for each in sections if each.lacking]:
        yield '<div class="lacking"><p><strong>Not in this report:</strong></p><ul>'
        for section in lacking:
            yield f"<li>{escape(section.title)}: {escape(section.lacking)}</li>"
        yield "</ul></div>"
    yield "</section>"


def _section(section: Section) -> Iterator[str]:
    yield f'<section aria-labelledby="{section.name}"><h2 id="{section.name}">{escape(section.title)}</h2>'
    if section.lacking:
        yield f'<p class="lacking">{escape(section.lacking)}</p></section>'
        return
    yield f"<p>{escape(section.text)}</p>"
    if section.svg:
        yield section.svg
    if section.rows:
        yield from _table(section)
    yield "</section>"


def _table(section: Section) -> Iterator[str]:
    shown = section.rows[:MAX_ROWS]
    count = f"The first {len(shown)} of {len(section.rows)}" if len(section.rows) > len(shown) else "In numbers"
    yield f'<div class="scroll"><table><caption>{count}</caption><thead><tr>'
    numbers = [any(isinstance(row[place], int) for row in shown) for place in range(len(section.head))]
    for text, number in zip(section.head, numbers, strict=True):
        yield f'<th scope="col"{_CLASS[number]}>{escape(text)}</th>'
    yield "</tr></thead><tbody>"
    for row in shown:
        cells = "".join(
            f"<td{_CLASS[number]}>{escape(f'{value:,}' if isinstance(value, int) else str(value))}</td>"
            for value, number in zip(row, numbers, strict=True)
        )
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


_CLASS: Final = {True: ' class="number"', False: ""}

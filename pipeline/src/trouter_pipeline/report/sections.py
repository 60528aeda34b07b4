"""The sections of the report: plots, each with a sentence about it and a table of its main numbers.

A section's text is complete for readers that see no plot. Points that need the operator's attention are repeated at the
top of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import pyarrow.compute as pc

from trouter_pipeline.delta import BadTable
from trouter_pipeline.places import Where
from trouter_pipeline.report import drawing
from trouter_pipeline.report.drawing import (
    COLOURS,
    MAX_LINES,
    draw,
    label,
    legend,
    over_time,
    strips,
    style_of,
    times_below,
)
from trouter_pipeline.report.figures import Lines, added, counted, duration, latencies, lines_of, moment, short, steps
from trouter_pipeline.report.stored import NoTable, Period, read

#: Rows of one table of numbers; and bars or strips of one plot.
MAX_ROWS: Final = 20
MAX_STRIPS: Final = 24
#: The share of its limit from which a tenant is reported.
NEAR: Final = 0.9
_OUTCOMES: Final = ("accepted", "presettled", "released", "modified", "rejected", "dropped")


@dataclass
class Section:
    """A section: ``name`` is its anchor, ``text`` its text, ``svg`` its plot, ``lacking`` why it is empty."""

    name: str
    title: str
    text: str = ""
    svg: str = ""
    head: Sequence[str] = ()
    rows: list[Sequence[object]] = field(default_factory=list)
    lacking: str = ""
    attention: list[str] = field(default_factory=list)
    broken: bool = False


class Tables:
    """The tables of a folder, each read once; the error of an unreadable one is raised at each access."""

    def __init__(
        self, root: Where, period: Period, at: datetime | None = None, versions: Mapping[str, int] | None = None
    ) -> None:
        """``versions`` are the versions of single tables; others are read as they were ``at`` a moment, or are now."""
        self._root = root
        self._period = period
        self._at = at
        self._versions = versions or {}
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a table; NoTable, BadTable."""
        if name not in self._read:
            try:
                self._read[name] = read(self._root, name, self._period, self._versions.get(name, self._at))
            except (NoTable, BadTable) as error:
                self._read[name] = error
        found = self._read[name]
        if isinstance(found, Exception):
            raise found
        return found

    def get(self, name: str) -> Any:
        """Return the table, or None if it cannot be read, for sections that can do without."""
        try:
            return self[name]
        except (NoTable, BadTable):
            return None


@dataclass(frozen=True)
class Question:
    """The input of the report: the tables, and the configured limits of tenants' connections."""

    tables: Tables
    limits: Mapping[str, int]


def made(question: Question) -> list[Section]:
    """Return all sections in order; one whose table is missing says so."""
    sections = []
    for name, (title, maker, job) in SECTIONS.items():
        section = Section(name, title)
        try:
            maker(question, section)
        except NoTable as error:
            section.lacking = f"{error}. `trouter pipeline {job}` makes it."
        except BadTable as error:
            section.lacking = f"The table cannot be read: {error}."
            section.broken = True
        sections.append(section)
    return sections


def traffic(question: Question, section: Section) -> None:
    """Fill in the messages of each tenant over time, and the parts that are uncertain."""
    table, unit = steps(question.tables["meter"], "hour")
    if _nothing(table, section):
        return
    lines = lines_of(added(table, ["hour", "vhost"], ["msgs"]), "hour", "vhost", "msgs", unit, rest=True)
    totals = sorted(added(table, ["vhost"], ["msgs", "bytes", "estimated_msgs"]), key=_by("msgs", "vhost"))
    unsure = {
        row["vhost"]: row["complete_count"]
        for row in table.filter(pc.invert(table["complete"].fill_null(fill_value=False)))
        .group_by("vhost")
        .aggregate([("complete", "count")])
        .to_pylist()
    }
    section.text = (
        f"{short(sum(row['msgs'] for row in totals))} messages of {counted(len(totals), 'tenant')} in and out. "
        f"The busiest is {label(totals[0]['vhost'])} with {short(totals[0]['msgs'])}."
    )
    section.head = ("tenant", "messages", "bytes", "estimated", "rows not complete")
    section.rows = [
        (label(row["vhost"]), row["msgs"], row["bytes"], row["estimated_msgs"], unsure.get(row["vhost"], 0))
        for row in totals
    ]
    if unsure:
        names = ", ".join(label(each) for each in sorted(unsure, key=lambda key: key or "")[:5])
        section.attention.append(
            f"{sum(unsure.values())} of {table.num_rows} rows of the meter are not complete (tenants: {names}"
            f"{', ...' if len(unsure) > 5 else ''}), because records are missing: see the gaps."
        )
    if estimated := sum(row["estimated_msgs"] for row in totals):
        section.attention.append(
            f"{short(estimated)} messages are counted for certain, but the hour in which they passed is estimated."
        )
    section.svg = draw(section.name, section.title, section.text, _plotted(lines, f"messages per {unit}"))


def outcomes(question: Question, section: Section) -> None:
    """Fill in the shares of the outcomes."""
    table, unit = steps(question.tables["meter"], "hour")
    if _nothing(table, section):
        return
    rows = sorted(added(table, ["hour"], _OUTCOMES), key=lambda row: row["hour"])
    totals = {name: sum(row[name] for row in rows) for name in _OUTCOMES}
    everything = sum(totals.values())
    if not everything:
        section.text = "No delivery has an outcome."
        return
    section.text = (
        "Of all outcomes: " + ", ".join(f"{totals[name] / everything:.1%} {name}" for name in _OUTCOMES) + "."
    )
    section.head = ("outcome", "messages", "share")
    section.rows = [(name, totals[name], f"{totals[name] / everything:.2%}") for name in _OUTCOMES]
    times = [row["hour"] for row in rows]
    shares = [[row[name] / (sum(row[each] for each in _OUTCOMES) or 1) for row in rows] for name in _OUTCOMES]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        width = timedelta(hours=1) if unit == "hour" else timedelta(days=1)
        below = [0.0] * len(times)
        for index, (name, values) in enumerate(zip(_OUTCOMES, shares, strict=True)):
            axes.bar(times, values, width=width, bottom=below, align="edge", color=COLOURS[index], label=name)
            below = [a + b for a, b in zip(below, values, strict=True)]
        over_time(axes, "share")
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        legend(axes)

    section.svg = draw(section.name, section.title, section.text, paint)


def connections(question: Question, section: Section) -> None:
    """Fill in the peak connections of each tenant in each hour, and the limits."""
    table, unit = steps(question.tables["meter_conn"], "hour")
    if _nothing(table, section):
        return
    # Peaks of users may differ in time: their sum is an upper bound of the tenant's.
    hourly = added(question.tables["meter_conn"], ["hour", "vhost"], ["peak_connections", "connection_hours"])
    peaks: dict[tuple[datetime, str | None], int] = {}
    highest: dict[str | None, int] = {}
    hours: dict[str | None, float] = {}
    for row in hourly:
        when = row["hour"] if unit == "hour" else row["hour"].replace(hour=0)
        peaks[when, row["vhost"]] = max(peaks.get((when, row["vhost"]), 0), row["peak_connections"])
        highest[row["vhost"]] = max(highest.get(row["vhost"], 0), row["peak_connections"])
        hours[row["vhost"]] = hours.get(row["vhost"], 0.0) + row["connection_hours"]
    rows = [{"hour": when, "vhost": vhost, "peak": peak} for (when, vhost), peak in peaks.items()]
    lines = lines_of(rows, "hour", "vhost", "peak", unit, rest=False)
    ordered = sorted(highest, key=lambda vhost: (-highest[vhost], vhost or ""))
    section.text = f"{label(ordered[0])} had the most connections at once: {highest[ordered[0]]}." + (
        "" if question.limits else " `--config` with the router's configuration shows the limits."
    )
    section.head = ("tenant", "peak", "limit", "connection hours")
    section.rows = [
        (label(vhost), highest[vhost], question.limits.get(vhost or "", ""), f"{hours[vhost]:.1f}") for vhost in ordered
    ]
    for vhost in ordered:
        if (limit := question.limits.get(vhost or "")) and highest[vhost] >= NEAR * limit:
            section.attention.append(f"{label(vhost)} had up to {highest[vhost]} connections; its limit is {limit}.")

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for index, line in enumerate(lines.lines):
            axes.plot(lines.times, line.values, drawstyle="steps-post", label=label(line.name), **style_of(index))
            if limit := question.limits.get(line.name):
                axes.axhline(limit, color=style_of(index)["color"], linewidth=0.8, linestyle=(0, (1, 3)))
                axes.annotate(
                    f"limit of {label(line.name)}", (0, limit), xycoords=("axes fraction", "data"), va="bottom"
                )
        over_time(axes, "connections")
        legend(axes)

    section.svg = draw(section.name, section.title, section.text, paint)


def percentiles(question: Question, section: Section) -> None:
    """Fill in the latencies by address."""
    table = question.tables["latency"]
    if _nothing(table, section):
        return
    found = latencies(table)
    slowest = max(found, key=lambda each: each.p95)
    section.text = (
        f"Of {len(found)} addresses the slowest is {label(slowest.addr)}: 95 of 100 deliveries took at most "
        f"{duration(slowest.p95)}, 99 at most {duration(slowest.p99)}. Each number is at most 1/64 off."
    )
    section.head = ("tenant", "address", "deliveries", "p50", "p95", "p99", "largest")
    section.rows = [
        (label(each.vhost), label(each.addr), each.deliveries, *(duration(value) for value in each[3:]))
        for each in found
    ]
    shown = found[: MAX_LINES + 3]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for row, each in enumerate(shown):
            axes.plot([each.p50, each.p99], [row, row], color="#8A9299", linewidth=2, zorder=1)
        for name, marker, colour in (("p50", "o", 0), ("p95", "s", 1), ("p99", "D", 3)):
            values = [getattr(each, name) for each in shown]
            axes.plot(values, range(len(shown)), marker, color=COLOURS[colour], label=name, markersize=5)
        strips(axes, [each.addr or "" for each in shown])
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(lambda value, _: duration(value))
        legend(axes)

    section.svg = draw(section.name, section.title, section.text, paint, height=_strips_height(len(shown)))


def top_ten(question: Question, section: Section) -> None:
    """Fill in the busiest subjects in each dimension, over the whole time."""
    table = question.tables["top"]
    if _nothing(table, section):
        return
    rows = sorted(added(table, ["dimension", "subject"], ["msgs", "bytes"]), key=_by("msgs", "subject"))
    dimensions = sorted({row["dimension"] for row in rows})
    best = {name: [row for row in rows if row["dimension"] == name][:10] for name in dimensions}
    busiest = (
        f"{name} {label(found[0]['subject'])} ({short(found[0]['msgs'])} messages)" for name, found in best.items()
    )
    section.text = f"The busiest: {', '.join(busiest)}. Hours in which a subject was not among the first do not count."
    section.head = ("dimension", "subject", "messages", "bytes")
    section.rows = [
        (name, label(row["subject"]), row["msgs"], row["bytes"]) for name in dimensions for row in best[name]
    ]

    def paint(figure: Any) -> None:
        for axes, (name, found) in zip(figure.subplots(1, len(best), squeeze=False)[0], best.items(), strict=True):
            axes.barh(range(len(found)), [row["msgs"] for row in found], color=COLOURS[0], height=0.7)
            strips(axes, [row["subject"] or "" for row in found])
            axes.set_title(label(name), fontsize=9)
            axes.xaxis.set_major_formatter(lambda value, _: short(value))
            axes.xaxis.set_major_locator(drawing.few())

    section.svg = draw(section.name, section.title, section.text, paint, height=3.0)


def denials(question: Question, section: Section) -> None:
    """Fill in failed logins and denials, with the alerts of the audit and of the fraud job."""
    alerts = question.tables["audit_alerts"]
    fraud, rules, failed = (question.tables.get(name) for name in ("fraud_alerts", "audit_rules", "meter_conn"))
    by_rule = added(alerts, ["rule"], ["failures"])
    counts = {
        row["rule"]: row["rule_count"] for row in alerts.group_by("rule").aggregate([("rule", "count")]).to_pylist()
    }
    listed = f" ({', '.join(f'{label(rule)}: {count}' for rule, count in sorted(counts.items()))})" if counts else ""
    of_fraud = ", no table fraud_alerts" if fraud is None else f", {fraud.num_rows} of fraud"
    section.text = f"{counted(alerts.num_rows, 'alert')} of the audit{listed}{of_fraud}{_of_rules(rules)}."
    for row in sorted(by_rule, key=_by("failures", "rule")):
        section.attention.append(f"{counted(counts[row['rule']], 'alert')} of the rule {label(row['rule'])}.")
    if fraud is not None and fraud.num_rows:
        section.attention.append(f"{counted(fraud.num_rows, 'alert')} of fraud.")
    section.head = ("rule", "subject", "first", "last", "failures", "distinct")
    found = sorted(alerts.to_pylist(), key=lambda row: row["last_at"], reverse=True)[:MAX_ROWS]
    section.rows = [
        (
            label(row["rule"]),
            ", ".join(f"{key} {label(row[key])}" for key in ("user", "host", "vhost") if row[key] is not None),
            moment(row["first_at"]), moment(row["last_at"]), row["failures"], row["distinct"],
        )
        for row in found
    ]  # fmt: skip
    frauds = [] if fraud is None else sorted(fraud.to_pylist(), key=lambda row: row["large_t"], reverse=True)
    for row in frauds[:MAX_ROWS]:
        about = f"{label(row['key'])}: {row['tester_amount']:,.2f}, then {row['large_amount']:,.2f}"
        section.rows.append(("fraud", about, moment(row["tester_t"]), moment(row["large_t"]), "", ""))
    marks = [(row["rule"], row["first_at"]) for row in alerts.to_pylist()]
    marks += [] if fraud is None else [("fraud", when) for when in fraud["large_t"].to_pylist()]
    hourly = [] if failed is None else sorted(added(failed, ["hour"], ["failed"]), key=lambda row: row["hour"])
    daily = [] if rules is None else sorted(added(rules, ["date"], ["denied"]), key=lambda row: row["date"])
    if marks or hourly or daily:
        paint = partial(_paint_denials, marks, hourly, daily)
        section.svg = draw(section.name, section.title, section.text, paint, height=3.6)


def _of_rules(rules: Any) -> str:
    """Return a text about denials by the policy and rules that never matched."""
    if rules is None:
        return ", no table audit_rules"
    denied = pc.sum(rules["denied"]).as_py() or 0
    by_rule = added(rules, ["vhost", "rule"], ["allowed", "denied"])
    never = sum(1 for row in by_rule if not (row["allowed"] or row["denied"]))
    return f"; {short(denied)} denials by the policy, {counted(never, 'rule')} that never matched"


def _paint_denials(
    marks: list[tuple[str, Any]], hourly: list[dict[str, Any]], daily: list[dict[str, Any]], figure: Any
) -> None:
    """Draw failed logins and denials over time, above a strip of alerts for each rule."""
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    if hourly:
        upper.bar([row["hour"] for row in hourly], [row["failed"] for row in hourly], width=timedelta(hours=1),
                  align="edge", color=COLOURS[1], label="logins failed, an hour")  # fmt: skip
    if daily:
        days = [datetime.combine(row["date"], datetime.min.time(), tzinfo=UTC) for row in daily]
        upper.plot(days, [row["denied"] for row in daily], "s-", color=COLOURS[0], label="denied, a day")
    over_time(upper, "times")
    names = sorted({rule for rule, _ in marks})
    for row, name in enumerate(names):
        times = [when for rule, when in marks if rule == name]
        lower.plot(times, [row] * len(times), "|", color=COLOURS[row % len(COLOURS)], markersize=10)
    strips(lower, names)
    if hourly or daily:
        legend(upper)


def gaps(question: Question, section: Section) -> None:
    """Fill in the missing records: router, times, and reasons."""
    rows = sorted(question.tables["meter_gaps"].to_pylist(), key=lambda row: (row["explained"], row["t_from"]))
    if not rows:
        section.text = "No record is missing."
        return
    lost = sum(row["to_n"] - row["from_n"] + 1 for row in rows)
    unexplained = [row for row in rows if not row["explained"]]
    section.text = (
        f"{counted(len(rows), 'gap')} with {counted(lost, 'record')}; "
        f"the routers reported {len(rows) - len(unexplained)} of the gaps."
    )
    if unexplained:
        section.attention.append(
            f"{counted(len(unexplained), 'gap')} that no router reported: look for lost segments and compact them."
        )
    section.head = ("router", "numbers", "from", "to", "reason")
    section.rows = [
        (label(row["router"]), f"{row['from_n']}-{row['to_n']}", moment(row["t_from"]), moment(row["t_to"]),
         label(row["reason"]) if row["explained"] else "not reported")
        for row in rows
    ]  # fmt: skip
    spans = [
        (row["router"], row["t_from"], row["t_to"], COLOURS[6] if row["explained"] else COLOURS[1]) for row in rows
    ]
    _gantt(section, spans, {"reported": COLOURS[6], "not reported": COLOURS[1]})


def neighbours(question: Question, section: Section) -> None:
    """Fill in when each router had each of its neighbours."""
    rows = question.tables["topology_history"].to_pylist()
    if not rows:
        section.text = "No router gained or lost a neighbour."
        return
    end = max(row["down_at"] or row["up_at"] for row in rows)
    pairs = {(row["router"], row["peer"]) for row in rows}
    flaps = {(row["router"], row["peer"]) for row in rows if row["flap"]}
    slow = max((row["converge_us"] or 0 for row in rows), default=0)
    section.text = (
        f"{counted(len(pairs), 'pair')} of neighbours, which connected {counted(len(rows), 'time')}; "
        f"{len(flaps)} of the pairs flap." + (f" The network took up to {duration(slow)} to settle." if slow else "")
    )
    section.attention += [
        f"{label(router)} repeatedly lost its neighbour {label(peer)}: check the connection between them."
        for router, peer in sorted(flaps, key=str)[:MAX_ROWS]
    ]
    section.head = ("router", "neighbour", "up", "down", "cost", "flapping")
    section.rows = [
        (label(row["router"]), label(row["peer"]), moment(row["up_at"]), moment(row["down_at"]) or "still up",
         "" if row["cost"] is None else row["cost"], "yes" if row["flap"] else "")
        for row in sorted(rows, key=lambda row: row["up_at"], reverse=True)
    ]  # fmt: skip
    spans = [
        (f"{row['router']} - {row['peer']}", row["up_at"], row["down_at"] or max(end, row["up_at"]),
         COLOURS[1] if row["flap"] else COLOURS[2])
        for row in rows
    ]  # fmt: skip
    _gantt(section, spans, {"up": COLOURS[2], "flapping": COLOURS[1]})


def _gantt(section: Section, spans: Iterable[tuple[str, datetime, datetime, str]], colours: Mapping[str, str]) -> None:
    found: dict[str, list[tuple[datetime, timedelta, str]]] = {}
    for name, start, end, colour in spans:
        found.setdefault(name, []).append((start, end - start, colour))
    names = sorted(found, key=lambda name: (-len(found[name]), name))[:MAX_STRIPS]
    if len(found) > len(names):
        section.text += f" The plot shows {len(names)} of {len(found)}."

    def paint(figure: Any) -> None:
        from matplotlib.patches import Patch  # noqa: PLC0415

        axes = figure.subplots()
        for row, name in enumerate(names):
            # The frame makes short spans visible.
            axes.broken_barh([(start, length) for start, length, _ in found[name]], (row - 0.35, 0.7),
                             facecolors=[colour for *_, colour in found[name]],
                             edgecolors=[colour for *_, colour in found[name]], linewidth=1.0)  # fmt: skip
        strips(axes, names)
        times_below(axes)
        patches = [Patch(color=colour, label=text) for text, colour in colours.items()]
        axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)

    section.svg = draw(section.name, section.title, section.text, paint, height=_strips_height(len(names)))


def _plotted(lines: Lines, unit: str) -> Callable[[Any], None]:
    def paint(figure: Any) -> None:
        axes = figure.subplots()
        marker = "o" if len(lines.times) == 1 else None
        for index, line in enumerate(lines.lines):
            axes.plot(lines.times, line.values, label=label(line.name), marker=marker, **style_of(index))
        over_time(axes, unit)
        legend(axes)

    return paint


def _nothing(table: Any, section: Section) -> bool:
    if table.num_rows:
        return False
    section.text = "The table has no rows for these dates."
    return True


def _by(value: str, name: str) -> Callable[[Mapping[str, Any]], tuple[Any, str]]:
    """Return a sort key: largest value first, then by name."""
    return lambda row: (-row[value], str(row[name] or ""))


def _strips_height(count: int) -> float:
    return 1.0 + 0.24 * max(count, 3)


#: Title, maker, and the job of the table for each section.
SECTIONS: Final[Mapping[str, tuple[str, Callable[[Question, Section], None], str]]] = {
    "traffic": ("Traffic of each tenant", traffic, "meter"),
    "outcomes": ("Outcomes", outcomes, "meter"),
    "connections": ("Connections and their limits", connections, "meter"),
    "latency": ("How long deliveries took", percentiles, "latency"),
    "top": ("Top ten", top_ten, "top"),
    "denials": ("Denials, failures and alerts", denials, "audit"),
    "gaps": ("Gaps in the records", gaps, "meter"),
    "neighbours": ("Neighbours", neighbours, "topology"),
}

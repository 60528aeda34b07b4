"""Shows the state of all routers of a network: as a table with what an operator should look at below it, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from trouter.config.problems import Severity
from trouter.tools import formats
from trouter.tools.table import Grid, Style, TableCell, aligned

from .applying import ends_of
from .survey import NetworkStatus, RouterStatus

#: Digits of a policy's digest in the table.
_DIGITS: Final = 8
_DAY_S: Final = 86_400
#: Characters of a cell, and of a remark, that another router chose.
_CELL: Final = 48
_REMARK: Final = 500
#: Connectors of one router that are named.
_CONNECTORS: Final = 20
#: Days before the end at which a certificate is shown as a warning.
_SOON_DAYS: Final = 7
_HEADS: Final = (
    "router", "mode", "state", "version", "uptime", "workers", "connections", "blocked", "stuck", "findings",
    "certificate", "policy",
)  # fmt: skip
_STYLES: Final = {str(Severity.PROBLEM): Style.ALARM, str(Severity.UNSAFE): Style.WARNING}


def text_of(status: NetworkStatus, *, colour: bool = False) -> Iterator[str]:
    """Yield the lines of the table and of the remarks."""
    answered = sum(not router.fault for router in status.routers)
    title = f"{formats.now_utc()}  {answered} of {len(status.routers)} routers answered"
    yield from aligned(Grid(title, _HEADS, [_cells(router) for router in status.routers]), colour=colour)
    for remark in _remarks(status):
        yield formats.plain(remark)


def json_of(status: NetworkStatus) -> dict[str, Any]:
    """Return the same as plain values, by the names of management where it has them."""
    return {
        "routers": [{_camel(name): value for name, value in asdict(router).items()} for router in status.routers],
        "policies": status.policies(),
        "incomplete": list(status.incomplete),
        "lost": dict(status.lost),
    }


def _camel(name: str) -> str:
    first, *others = name.removesuffix("_s").split("_")
    seconds = "Seconds" if name.endswith("_s") else ""
    return first + "".join(map(str.capitalize, others)) + seconds


def why_lost(at_ms: int) -> str:
    """Return what is known of a router that was in reach, by when its way last changed (milliseconds since 1970)."""
    return f"it is not in reach since {formats.utc_of_ms(at_ms)}"


def _cells(router: RouterStatus) -> tuple[TableCell, ...]:
    digest = router.policy_digest
    return (
        TableCell(_short(router.id)),
        TableCell(_short(router.mode)),
        _state(router),
        TableCell(_short(router.version)),
        TableCell("" if router.fault else formats.span(router.uptime_s)),
        TableCell("" if router.fault else _short(router.workers)),
        TableCell(formats.commas(router.connections)),
        _alarm(router.links_blocked),
        _alarm(router.deliveries_stuck),
        _findings(router.findings),
        _certificate(router.certificate_left_s),
        TableCell("" if digest is None else formats.plain(digest)[:_DIGITS]),
    )


def _short(text: object, characters: int = _CELL) -> str:
    """Return a text of another router as a cell, or a remark, that leaves room for the others."""
    shown = formats.plain(text)
    return shown if len(shown) <= characters else f"{shown[: characters - 3]}..."


def _state(router: RouterStatus) -> TableCell:
    if router.fault:
        return TableCell("no answer", Style.ALARM)
    if router.drain_state not in {None, "serving"}:
        return TableCell(_short(router.drain_state), Style.WARNING)
    return TableCell("up")


def _alarm(count: int | None) -> TableCell:
    return TableCell(formats.commas(count), Style.ALARM if count else Style.PLAIN)


def _findings(findings: Mapping[str, int] | None) -> TableCell:
    if findings is None:
        return TableCell("")
    style = next((style for severity, style in _STYLES.items() if findings.get(severity)), Style.PLAIN)
    counts = [f"{findings[severity]} {severity}" for severity in map(str, Severity) if findings.get(severity)]
    return TableCell(", ".join(counts) or "none", style)


def _certificate(left_s: float | None) -> TableCell:
    if left_s is None:
        return TableCell("")
    if left_s <= 0:
        return TableCell("expired", Style.ALARM)
    days = left_s / _DAY_S
    return TableCell(f"{days:.0f} days", Style.WARNING if days <= _SOON_DAYS else Style.PLAIN)


def _remarks(status: NetworkStatus) -> Iterator[str]:
    """Yield what is wrong beyond the cells: routers without an answer, connectors down, policies that differ."""
    for router in status.routers:
        name = _short(router.id)
        if router.fault:
            yield f"{name}: {_short(router.fault, _REMARK)}"
        for connector, why in list(router.connectors_down.items())[:_CONNECTORS]:
            reason = _short(why or "no reason is known", _REMARK)
            yield f"{name}: connector {_short(connector)} has no connection: {reason}"
        if (more := len(router.connectors_down) - _CONNECTORS) > 0:
            yield f"{name}: {more} more have no connection: see `trouter stat --connectors -r {name}`"
    for lost, at_ms in status.lost.items():
        yield f"{_short(lost)}: {why_lost(at_ms)}"
    policies = status.policies()
    if len(policies) > 1:
        owners = "; ".join(
            f"{digest[:_DIGITS]} at {', '.join(map(_short, routers))}" for digest, routers in policies.items()
        )
        yield f"the routers have {len(policies)} policies: {owners}"
    yield from _changes(status)
    yield from (_short(lack, _REMARK) for lack in status.incomplete)


def _changes(status: NetworkStatus) -> Iterator[str]:
    """Yield a line for each change that is open, with the commands that end it."""
    for name, routers in status.open_changes().items():
        change = routers[0].change
        if change is None:
            continue
        states: dict[str, list[str]] = {}
        for router in routers:
            states.setdefault(router.change.state if router.change else "", []).append(_short(router.id))
        shown = [f"{state} at {', '.join(ids)}" for state, ids in states.items()]
        if others := sorted(set(change.routers).difference(router.id for router in routers)):
            shown.append(f"not open at {', '.join(map(_short, others))}")
        yield (
            f"change {name} by {change.by or change.user or 'unknown'}, of {formats.utc(change.at)}, is not finished: "
            f"{'; '.join(shown)}; {ends_of(name)}"
        )

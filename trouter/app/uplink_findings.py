"""The finding about an edge router that has no usable uplink: its clients reach no other router's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trouter.backbone.uplinks import Uplinks
from trouter.config import RouterEntity
from trouter.config.problems import Problem, Severity

if TYPE_CHECKING:
    from trouter.connections.connector import Connector


def uplink_findings(router: RouterEntity, uplinks: Uplinks, connectors: Iterable[Connector]) -> Iterator[Problem]:
    """Yield a finding if no uplink is usable: a problem, unless the router may be ready without one."""
    why = uplink_fault(uplinks, connectors)
    if not why:
        return
    severity = Severity.NOTE if router.ready_without_uplink else Severity.PROBLEM
    message = f"has no usable uplink: {why}"
    yield Problem(router.place, message, router.type.section, severity=severity, entity=router.identity)


def uplink_fault(uplinks: Uplinks, connectors: Iterable[Connector]) -> str:
    """Return why no uplink is usable; empty if one is."""
    fault = uplinks.fault
    return _why_none_is_open(connectors) if fault is None else fault


def _why_none_is_open(connectors: Iterable[Connector]) -> str:
    """Return the reason why no uplink is open: the last failure of each connector for one."""
    uplinks = [each for each in connectors if each.entity.role == "edge"]
    if not uplinks:
        return "no connector has role: edge"
    failures = [each.message for each in uplinks if each.message and each.status != "SUCCESS"]
    return "; ".join(failures) or "no connector has connected yet"

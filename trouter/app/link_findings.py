"""The findings about what goes on: connectors and auto links that are down, listeners that refuse many handshakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trouter.config import AutoLinkEntity, ConnectorEntity, ListenerEntity
from trouter.config.problems import Problem, Severity
from trouter.core.autolinks import FAILED, AutoLink
from trouter.telemetry.refusals import Refusals

if TYPE_CHECKING:
    from trouter.connections.connector import Connector

#: Attempts after which a connector counts as down; the first may be before its peer has started.
PATIENT_ATTEMPTS = 2
#: Refused handshakes of a listener, in five to ten minutes, that are more than chance.
MANY_REFUSALS = 10


def connector_findings(connectors: Iterable[Connector]) -> Iterator[Problem]:
    """Yield a finding for each connector that is down after some attempts."""
    for each in connectors:
        if not each.is_up and each.attempts > PATIENT_ATTEMPTS:
            yield _finding(each.entity, "is down", each.message)


def auto_link_findings(auto_links: Iterable[tuple[AutoLinkEntity, AutoLink]]) -> Iterator[Problem]:
    """Yield a finding for each auto link whose peer refuses it or has ended it."""
    for entity, auto in auto_links:
        if auto.state == FAILED:
            yield _finding(entity, "has no link", auto.last_error)


def refusal_findings(listeners: Iterable[ListenerEntity], refusals: Refusals) -> Iterator[Problem]:
    """Yield a finding for each listener that has refused many handshakes in the last minutes."""
    for entity in listeners:
        recent = refusals.recent(entity.name)
        if sum(recent.values()) >= MANY_REFUSALS:
            reasons = ", ".join(f"{count} {reason}" for reason, count in recent.items())
            yield _finding(entity, f"refused {sum(recent.values())} handshakes in the last minutes", reasons)


def _finding(entity: ConnectorEntity | AutoLinkEntity | ListenerEntity, state: str, why: str) -> Problem:
    message = f"{state}: {why}" if why else state
    return Problem(entity.place, message, entity.type.section, severity=Severity.NOTE, entity=entity.identity)

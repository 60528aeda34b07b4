"""The findings about what goes on.

They are about connectors and auto links that are down, listeners that are closed or refuse many handshakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trouter.admission.guard import Guard
from trouter.config import AutoLinkEntity, ConnectorEntity, ListenerEntity, RouterEntity
from trouter.config.problems import Problem, Severity
from trouter.config.reporting import finding_of
from trouter.core.autolinks import FAILED, AutoLink
from trouter.telemetry.refusals import Refusals

if TYPE_CHECKING:
    from trouter.connections.connector import Connector
    from trouter.connections.listeners import ClosedListener

#: Attempts after which a connector counts as down; the first may be before its peer has started.
PATIENT_ATTEMPTS = 2
#: Refused handshakes of a listener, in five to ten minutes, that are more than chance.
MANY_REFUSALS = 10
#: Logins that wait for their turn, more than a burst of a second leaves.
MANY_LOGINS = 100


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


def closed_findings(listeners: Iterable[ClosedListener]) -> Iterator[Problem]:
    """Yield a finding for each listener whose address cannot be bound; a problem if the router is not ready without."""
    for each in listeners:
        finding = finding_of("closed-listener", each.entity, why=each.why)
        yield finding if each.entity.ready_without else replace(finding, severity=Severity.PROBLEM)


def refusal_findings(listeners: Iterable[ListenerEntity], refusals: Refusals) -> Iterator[Problem]:
    """Yield a finding for each listener that has refused many handshakes in the last minutes."""
    for entity in listeners:
        recent = refusals.recent(entity.name)
        if sum(recent.values()) >= MANY_REFUSALS:
            reasons = ", ".join(f"{count} {reason}" for reason, count in recent.items())
            yield _finding(entity, f"refused {sum(recent.values())} handshakes in the last minutes", reasons)


def waiting_findings(router: RouterEntity, guard: Guard) -> Iterator[Problem]:
    """Yield a finding while many logins wait for their turn."""
    waiting = guard.turns.waiting
    if waiting >= MANY_LOGINS:
        yield Problem(
            router.place,
            f"{waiting} logins wait for their turn, and {len(guard.handshakes)} connections are not open yet",
            router.type.section,
            suggestion="more workers, or a lower cost of the passwords in usersFile, check them sooner",
            severity=Severity.NOTE,
            entity=router.identity,
        )


def _finding(entity: ConnectorEntity | AutoLinkEntity | ListenerEntity, state: str, why: str) -> Problem:
    message = f"{state}: {why}" if why else state
    return Problem(entity.place, message, entity.type.section, severity=Severity.NOTE, entity=entity.identity)

"""The findings about connectors and auto links that are down: what they should reach is out of reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trouter.config import AutoLinkEntity, ConnectorEntity
from trouter.config.problems import Problem, Severity
from trouter.core.autolinks import FAILED, AutoLink

if TYPE_CHECKING:
    from trouter.connections.connector import Connector

#: Attempts after which a connector counts as down; the first may be before its peer has started.
PATIENT_ATTEMPTS = 2


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


def _finding(entity: ConnectorEntity | AutoLinkEntity, state: str, why: str) -> Problem:
    message = f"{state}: {why}" if why else state
    return Problem(entity.place, message, entity.type.section, severity=Severity.NOTE, entity=entity.identity)

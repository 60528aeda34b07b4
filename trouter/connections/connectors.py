"""All connectors of a router."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trouter.config import ConnectorEntity
from trouter.net.parts import Parts, PendingParts, keyed

if TYPE_CHECKING:
    from .connector import Connector

log = logging.getLogger("trouter.CONN_MGR")


class Connectors(Parts[ConnectorEntity, "Connector"]):
    """Connectors by host, port and name."""

    def __init__(self, make: Callable[[ConnectorEntity], Connector]) -> None:
        super().__init__()
        self._make = make

    def prepare(self, entities: Iterable[ConnectorEntity]) -> PendingParts[ConnectorEntity, Connector]:
        """Return the prepared change to ``entities``; a changed connector dials again."""
        wanted = keyed(entities)
        before = self.entities
        fresh = {key: self._make(entity) for key, entity in wanted.items() if before.get(key) != entity}
        return PendingParts(self, wanted, fresh)

    def announce(self, part: Connector) -> None:
        """Log the connector's configuration."""
        entity = part.entity
        log.info("Configured Connector: %s:%s proto=any, role=%s", entity.host, entity.port, entity.role)

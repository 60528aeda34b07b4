"""Link routes that the requester's connection created for itself."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.config.schema import EntityType
from trouter.core.router import Router
from trouter.core.routes import Scoped
from trouter.management.ports import REQUESTER

from .base import Provider, Row
from .routing import number_of


class ConnectionLinkRoutes(Provider):
    """``router.connection.linkRoute``; a key is the identity as a number."""

    rooted = False

    def __init__(self, kind: EntityType, router: Router) -> None:
        super().__init__(kind)
        self._router = router

    def _own(self) -> dict[int, Scoped]:
        number = REQUESTER.get()
        return {
            key: each for key, each in self._router.routes.scoped_routes().items() if each.container.number == number
        }

    def keys(self) -> Sequence[int]:
        return list(self._own())

    def row(self, key: int) -> Row | None:
        scoped = self._own().get(key)
        if scoped is None:
            return None
        return {
            "name": scoped.route.name or None,
            "identity": str(key),
            "type": self.kind.full_name,
            "pattern": scoped.route.pattern,
            "direction": scoped.route.direction,
            "containerId": scoped.container.container_id,
        }

    def by_identity(self, identity: str) -> int | None:
        number = number_of(identity)
        return number if number in self._own() else None

    def by_name(self, name: str) -> Sequence[int]:
        return [key for key, scoped in self._own().items() if scoped.route.name == name]

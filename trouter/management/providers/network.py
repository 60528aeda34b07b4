"""The network: its routers, and how it has changed."""

from __future__ import annotations

from collections.abc import Mapping

from trouter.config.schema import EntityType
from trouter.management.ports import Control

from .base import Fixed, Row


class Nodes(Fixed):
    """``router.node``: the routers of the network. A router that stands alone, or on the edge, knows of none."""

    def __init__(self, kind: EntityType, control: Control) -> None:
        super().__init__(kind)
        self._control = control

    def rows(self) -> Mapping[str, Row]:
        topology = self._control.topology()
        found = () if topology is None else topology.nodes()
        return dict(_row(self.kind, router, shown) for router, shown in found)


class Changes(Fixed):
    """``topologyChange``: the last changes of the network, the oldest first."""

    def __init__(self, kind: EntityType, control: Control) -> None:
        super().__init__(kind)
        self._control = control

    def rows(self) -> Mapping[str, Row]:
        topology = self._control.topology()
        found = () if topology is None else topology.changes()
        return dict(_row(self.kind, str(number), shown) for number, shown in found)


def _row(kind: EntityType, which: str, shown: Row) -> tuple[str, Row]:
    identity = f"{kind.short}/{which}"
    return identity, {**shown, "name": identity, "identity": identity, "type": kind.full_name}

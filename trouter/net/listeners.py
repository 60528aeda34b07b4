"""All listeners of a router: which of them stand, and how others take their places."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from trouter.config import ListenerEntity

from .parts import Key, Part, Parts, PendingParts, keyed
from .sockets import ListenError, open_for

log = logging.getLogger("trouter.SERVER")
manager_log = logging.getLogger("trouter.CONN_MGR")


class Standing(Part, Protocol):
    """A listener of any kind."""

    entity: ListenerEntity
    sockets: list[socket.socket]
    #: Connections taken so far, and those turned away.
    accepted: int
    refused: int

    @property
    def peers(self) -> Collection[object]:
        """Those who are connected."""

    def configure(self, entity: ListenerEntity) -> None:
        """Serve those to come as ``entity`` says."""


#: Makes the listener that serves an entity on sockets which are open already.
Make = Callable[[ListenerEntity, list[socket.socket]], Standing]


class Listeners(Parts[ListenerEntity, Standing]):
    """Listeners by identity."""

    def __init__(self, make: Make) -> None:
        super().__init__(_configure, announce)
        self._make = make

    async def prepare(self, entities: Iterable[ListenerEntity]) -> PendingParts:
        """Open what ``entities`` ask for and nobody has; ListenError with a line for each that cannot be had."""
        wanted = keyed(entities)
        leaving = [
            sock
            for key, (entity, listener) in self._standing.items()
            if key not in wanted or must_move(entity, wanted[key])
            for sock in listener.sockets
        ]
        fresh: dict[Key, Standing] = {}
        lines: list[str] = []
        pending = PendingParts(self, wanted, fresh)
        try:
            for key, entity in wanted.items():
                own = self.entity_of(key)
                if own is None or must_move(own, entity):
                    try:
                        fresh[key] = self._make(entity, await open_for(entity, leaving))
                    except ListenError as error:
                        lines += error.lines
            if lines:
                raise ListenError(*lines)
        except BaseException:
            pending.drop()
            raise
        return pending


def _configure(listener: Standing, entity: ListenerEntity) -> None:
    listener.configure(entity)


def must_move(old: ListenerEntity, new: ListenerEntity) -> bool:
    """Whether other sockets, or other listeners on them, are needed."""
    return any(getattr(old, name) != getattr(new, name) for name in ("host", "port", "socket_address_family", "http"))


def announce(listener: Standing) -> None:
    """Log what was configured, and where it listens."""
    entity = listener.entity
    manager_log.info(
        "Configured Listener: %s:%s proto=any, role=%s%s",
        entity.host,
        entity.port,
        entity.role,
        ", http" if entity.http else "",
    )
    name = f" ({entity.name})" if entity.name else ""
    for sock in listener.sockets:
        host, port = sock.getsockname()[:2]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        log.info("%s %s%s", "Listening for HTTP on" if entity.http else "Listening on", where, name)

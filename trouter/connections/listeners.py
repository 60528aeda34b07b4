"""All listeners of a router, and their replacement."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from trouter.config import ListenerEntity
from trouter.config.workers import WORKERS_HOST
from trouter.logs import NOTICE
from trouter.net.parts import Key, Part, Parts, PendingParts, keyed
from trouter.net.reach import Alone, Reach
from trouter.net.sockets import ListenError

#: The attributes that cannot change while the sockets stay.
_PLACE: Final = ("host", "port", "socket_address_family", "serves_http")

log = logging.getLogger("trouter.SERVER")
manager_log = logging.getLogger("trouter.CONN_MGR")


class Standing(Part, Protocol):
    """A running listener of any kind."""

    entity: ListenerEntity
    sockets: list[socket.socket]
    #: Connections accepted so far, and those refused.
    accepted: int
    refused: int

    @property
    def peers(self) -> Collection[object]:
        """Return the connected peers."""

    def configure(self, entity: ListenerEntity) -> None:
        """Serve future connections by ``entity``."""

    def drain(self) -> None:
        """Accept no connection that could begin something new."""

    def close(self) -> None:
        """Close the sockets of a listener that never ran."""


#: Makes the listener of an entity on open sockets.
MakeListener = Callable[[ListenerEntity, list[socket.socket]], Standing]


class Listeners(Parts[ListenerEntity, Standing]):
    """Listeners by host, port and name."""

    def __init__(self, reach: Reach | None = None) -> None:
        super().__init__()
        self._reach: Reach = reach or Alone()

    async def prepare(
        self, entities: Iterable[ListenerEntity], make: MakeListener
    ) -> PendingParts[ListenerEntity, Standing]:
        """Open the sockets that ``entities`` lack, and ``make`` listeners of them.

        ListenError with a line for each that cannot be opened.
        """
        wanted = keyed(entities)
        before = self.entities
        leaving = [
            sock
            for key, listener in self.by_key.items()
            if key not in wanted or must_move(before[key], wanted[key])
            for sock in listener.sockets
        ]
        fresh: dict[Key, Standing] = {}
        lines: list[str] = []
        pending = PendingParts(self, wanted, fresh)
        try:
            for key, entity in wanted.items():
                if key not in before or must_move(before[key], entity):
                    try:
                        fresh[key] = make(entity, await self._reach.open_for(key, entity, leaving))
                    except ListenError as error:
                        lines += error.lines
            if lines:
                raise ListenError(*lines)
        except BaseException:
            pending.drop()
            raise
        return pending

    def reconfigure(self, part: Standing, entity: ListenerEntity) -> None:
        part.configure(entity)

    def discard(self, part: Standing) -> None:
        part.close()

    def announce(self, part: Standing) -> None:
        """Log the listener's configuration and its sockets."""
        entity = part.entity
        http = ", http" if entity.serves_http else ""
        profile = f", sslProfile={entity.ssl_profile}" if entity.ssl_profile else ""
        manager_log.info(
            "Configured Listener: %s:%s proto=any, role=%s%s%s", entity.host, entity.port, entity.role, http, profile
        )
        words = "Listening for HTTP on" if entity.serves_http else "Listening on"
        name = f" ({entity.given_name})" if entity.named else ""
        if entity.host == WORKERS_HOST:
            return
        for sock in part.sockets:
            host, port = sock.getsockname()[:2]
            log.log(NOTICE, "%s %s:%s%s", words, f"[{host}]" if ":" in host else host, port, name)


def must_move(old: ListenerEntity, new: ListenerEntity) -> bool:
    """Return whether the change needs other sockets, or a listener of another kind."""
    return any(getattr(old, name) != getattr(new, name) for name in _PLACE)

"""All listeners of a router, and their replacement."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from trouter.config import ListenerEntity
from trouter.config.workers import WORKERS_HOST
from trouter.logs import NOTICE
from trouter.net.parts import Key, Part, Parts, PendingParts, keyed
from trouter.net.reach import Reach, SingleProcess
from trouter.net.sockets import ListenError

#: Seconds between two attempts to open a listener whose address cannot be bound.
REOPEN_S: Final = 5.0
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


@dataclass(frozen=True, slots=True)
class ClosedListener:
    """A listener whose address cannot be bound; it is tried again."""

    entity: ListenerEntity
    why: str


@dataclass(frozen=True, slots=True)
class PendingListeners:
    """Prepared listeners, and those that stay closed for now."""

    listeners: Listeners
    parts: PendingParts[ListenerEntity, Standing]
    order: tuple[Key, ...]
    closed: dict[Key, ClosedListener]

    def apply(self) -> None:
        self.parts.apply()
        self.listeners.replace_closed(self.order, self.closed)

    def drop(self) -> None:
        self.parts.drop()


class Listeners(Parts[ListenerEntity, Standing]):
    """Listeners by host, port and name."""

    def __init__(self, reach: Reach | None = None) -> None:
        super().__init__()
        #: The listeners that could not be opened yet.
        self.closed: dict[Key, ClosedListener] = {}
        #: The keys of all configured listeners, in the order of the configuration.
        self._order: tuple[Key, ...] = ()
        #: The keys of those without which the router started, or might have started.
        self._spare: set[Key] = set()
        self._reach: Reach = reach or SingleProcess()

    async def prepare(
        self,
        entities: Iterable[ListenerEntity],
        make: MakeListener,
        is_spare: Callable[[ListenerEntity], bool] | None = None,
    ) -> PendingListeners:
        """Open the sockets that ``entities`` lack, and ``make`` listeners of them.

        One for which ``is_spare`` returns, or once returned, True may stay closed. ListenError with a line for each
        other one that cannot be opened.
        """
        wanted = keyed(entities)
        before = self.entities
        leaving = [
            sock
            for key, listener in self.by_key.items()
            if key not in wanted or must_move(before[key], wanted[key])
            for sock in listener.sockets
        ]
        if is_spare is not None:
            self._spare |= {key for key, entity in wanted.items() if is_spare(entity)}
        fresh: dict[Key, Standing] = {}
        closed: dict[Key, ClosedListener] = {}
        opened: dict[Key, ListenerEntity] = {}
        lines: list[str] = []
        pending = PendingListeners(self, PendingParts(self, opened, fresh), tuple(wanted), closed)
        try:
            for key, entity in wanted.items():
                opened[key] = entity
                if key not in before or must_move(before[key], entity):
                    try:
                        fresh[key] = make(entity, await self._reach.open_for(key, entity, leaving))
                    except ListenError as error:
                        if key in self._spare:
                            closed[key] = ClosedListener(opened.pop(key), str(error))
                        else:
                            lines += error.lines
            if lines:
                raise ListenError(*lines)
        except BaseException:
            pending.drop()
            raise
        return pending

    def replace_closed(self, order: tuple[Key, ...], closed: dict[Key, ClosedListener]) -> None:
        """Replace the closed listeners by those of a new configuration, and log each that is new."""
        known, self._order, self.closed = self.closed, order, closed
        for key, each in closed.items():
            if key not in known:
                log.error("Listener error: %s; it is tried again every %g s", each.why, REOPEN_S)

    async def open_closed(self, make: MakeListener) -> None:
        """Try the closed listeners again, and run those that can be opened now; while no change is prepared."""
        for key, each in list(self.closed.items()):
            try:
                sockets = await self._reach.open_for(key, each.entity, ())
            except ListenError as error:
                self.closed[key] = ClosedListener(each.entity, str(error))
                continue
            del self.closed[key]
            parts = {**self.by_key, key: make(each.entity, sockets)}
            entities = {**self.entities, key: each.entity}
            self.by_key = {one: parts[one] for one in self._order if one in parts}
            self.entities = {one: entities[one] for one in self._order if one in entities}
            self._begin(parts[key])

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

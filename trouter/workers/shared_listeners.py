"""The listeners that all workers have: the parent binds their sockets, accepts, and hands out the connections."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import trio

from trouter.config import ListenerEntity
from trouter.net.descriptors import accept_client
from trouter.net.parts import Key
from trouter.net.sockets import ListenError, close_all, open_for, place_of
from trouter.net.workers import CallCode, CallFailed

from .calls import Content, socket_pair
from .handed import OF_A_CLIENT
from .process import Worker

#: Connections handed over from one socket before other tasks get their turn.
IN_A_ROW: Final = 16
#: Seconds to wait while no worker takes a connection, or the system has no descriptor left.
PAUSE_S: Final = 0.1
#: Seconds in which the end of a worker is known after its sockets have closed.
ENDED_AFTER_S: Final = 1.0
_OVERLOAD: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


@dataclass(eq=False, slots=True)
class BoundListener:
    """The sockets of one listener, and the scope of the task that accepts from each."""

    sockets: list[socket.socket]
    scopes: list[trio.CancelScope]
    #: Probes, operators or routers connect here, for which clients leave descriptors free.
    of_few: bool

    def close(self) -> None:
        """Accept no more."""
        for scope in self.scopes:
            scope.cancel()
        close_all(self.sockets)


class SharedListeners:
    """The listeners of all workers, in the parent; ``workers`` has those that run, by number."""

    def __init__(self, workers: Mapping[int, Worker], count: int, nursery: trio.Nursery) -> None:
        """``count`` is the number of all workers, ``nursery`` runs the tasks that accept."""
        self._workers = workers
        self._count = count
        self._nursery = nursery
        self._bound: dict[Key, BoundListener] = {}
        #: The number of the worker that got the last connection.
        self._turn = 0
        #: Two workers that ask for one listener at once get the same sockets.
        self._binding = trio.Lock()

    def close(self) -> None:
        """Close all sockets: the router stops."""
        for bound in self._bound.values():
            bound.close()

    async def open(self, worker: Worker, content: Content) -> Content:
        """Return a socket for each address of a listener, which is bound if no worker has it yet; CallFailed."""
        host, port, name, number = content.facts["listen"]
        key: Key = (str(host), str(port), str(name), int(number))
        try:
            async with self._binding:
                bound = await self._bind(key, content.facts)
        except ListenError as error:
            raise CallFailed(CallCode.REFUSED, str(error)) from error
        pairs = [socket_pair() for _ in bound.sockets]
        for ours, _ in pairs:
            ours.setblocking(False)
        worker.close_listener(key)
        worker.listeners[key] = [ours for ours, _ in pairs]
        self._nursery.start_soon(self._follow, worker, key, pairs[0][0])
        places = [place_of(sock) for sock in bound.sockets]
        return Content({"places": places}, descriptors=tuple(theirs.detach() for _, theirs in pairs))

    async def _bind(self, key: Key, facts: Mapping[str, Any]) -> BoundListener:
        """Return the bound sockets of a listener; ListenError."""
        bound = self._bound.get(key)
        if bound is not None:
            return bound
        left = {tuple(place) for place in facts["leaving"]}
        leaving = [sock for other in self._bound.values() for sock in other.sockets if place_of(sock) in left]
        family = facts["family"]
        entity = ListenerEntity(host=key[0], port=key[1], socket_address_family=None if family is None else str(family))
        sockets = await open_for(entity, leaving)
        bound = BoundListener(sockets, [trio.CancelScope() for _ in sockets], of_few=bool(facts["few"]))
        self._bound[key] = bound
        for index in range(len(sockets)):
            self._nursery.start_soon(self._hand_over, key, bound, index)
        return bound

    async def _follow(self, worker: Worker, key: Key, channel: socket.socket) -> None:
        """Wait until a worker closes a listener; stop listening if no worker has it any more."""
        with suppress(OSError, trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(channel)
        with trio.move_on_after(ENDED_AFTER_S):
            await worker.ended.wait()
        channels = worker.listeners.get(key)
        if worker.ended.is_set() or not channels or channels[0] is not channel:
            return  # it has ended, and the next one will ask for the listener; or it has asked for it anew
        worker.close_listener(key)
        self.close_unused()

    def close_unused(self) -> None:
        """Close the sockets of listeners that no worker has, once all workers serve."""
        if not all(worker.ready.is_set() and not worker.ended.is_set() for worker in self._workers.values()):
            return
        for key in [key for key in self._bound if not any(key in one.listeners for one in self._workers.values())]:
            self._bound.pop(key).close()

    async def _hand_over(self, key: Key, bound: BoundListener, index: int) -> None:
        """Accept the connections of one socket, and hand each to the worker whose turn it is."""
        sock, in_a_row = bound.sockets[index], 0
        with bound.scopes[index]:
            while True:
                try:
                    accepted, _ = accept_client(sock, of_few=bound.of_few)
                except BlockingIOError:
                    in_a_row = 0
                    await trio.lowlevel.wait_readable(sock)
                    continue
                except OSError as error:
                    await trio.sleep(PAUSE_S if error.errno in _OVERLOAD else 0)
                    continue
                with accepted:
                    while not self._hand(key, index, accepted):  # noqa: ASYNC110 - the kernel has no event for it
                        await trio.sleep(PAUSE_S)
                in_a_row += 1
                if in_a_row >= IN_A_ROW:
                    in_a_row = 0
                    await trio.lowlevel.checkpoint()

    def _hand(self, key: Key, index: int, accepted: socket.socket) -> bool:
        """Hand a connection to the next worker that takes it; return whether one did."""
        for _ in range(self._count):
            self._turn = self._turn % self._count + 1
            worker = self._workers.get(self._turn)
            channels = None if worker is None else worker.listeners.get(key)
            if worker is None or not channels or worker.is_silent:
                continue
            with suppress(OSError):  # it has ended, or has many that it has not taken yet
                socket.send_fds(channels[index], [bytes([OF_A_CLIENT])], [accepted.fileno()])
                return True
        return False

"""How workers get to know each other: the parent makes the channels of their calls, and their AMQP connections."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

from .calls import Content, socket_pair
from .process import Worker

#: The notes of the parent: the channel to another worker, and those that give no sign of life at present.
MEETS: Final = "meets"
SILENT: Final = "silent"


class Introductions:
    """The connections among the workers, in the parent; ``workers`` has those that run, by number."""

    def __init__(self, workers: Mapping[int, Worker]) -> None:
        self._workers = workers
        #: Where tasks wait for a worker that takes connections of others.
        self._joinable = trio.lowlevel.ParkingLot()
        self._silent: set[int] = set()

    async def meet(self, worker: Worker, _: Content) -> Content:
        """Give a worker and each other one that takes calls the two ends of a channel."""
        await trio.lowlevel.checkpoint()
        for other in list(self._workers.values()):
            if other is not worker and other.meets_others and other.runs:
                ours, theirs = socket_pair()
                _tell(worker, MEETS, Content({"place": other.place}, descriptors=(ours.detach(),)))
                _tell(other, MEETS, Content({"place": worker.place}, descriptors=(theirs.detach(),)))
        worker.meets_others = True
        return Content()

    def note_silence(self) -> None:
        """Tell all workers which give no sign of life, if these are others than before."""
        silent = {worker.place for worker in self._workers.values() if worker.is_silent}
        if silent != self._silent:
            self._silent = silent
            for worker in list(self._workers.values()):
                if worker.meets_others and worker.runs:
                    _tell(worker, SILENT, Content({"places": sorted(silent)}))

    def note_alive(self, worker: Worker) -> None:
        """Tell all workers at once that one gives signs of life again."""
        if worker.place in self._silent:
            self.note_silence()

    async def open_for_siblings(self, worker: Worker, _: Content) -> Content:
        """Return the socket on which the connections of other workers come; those that wait for it are made now."""
        await trio.lowlevel.checkpoint()
        ours, theirs = socket_pair()
        ours.setblocking(False)
        if worker.siblings is not None:
            worker.siblings.close()
        worker.siblings = ours
        self._joinable.unpark_all()
        return Content(descriptors=(theirs.detach(),))

    async def join(self, worker: Worker, content: Content) -> Content:
        """Return a socket that is connected to another worker, once that one takes connections."""
        place = int(content.facts["place"])
        while True:
            other = self._workers.get(place)
            if other is not None and other.siblings is not None and other.runs:
                one_end, other_end = socket.socketpair()
                with other_end, suppress(OSError):  # it has ended: the worker that asked sees that its end is closed
                    socket.send_fds(other.siblings, [bytes([worker.place])], [other_end.fileno()])
                return Content(descriptors=(one_end.detach(),))
            await self._joinable.park()


def _tell(worker: Worker, what: str, content: Content) -> None:
    """Send a note to a worker. One that has not read for so long that there is no room for it is to be replaced."""
    if not worker.channel.note(what, content):
        worker.channel.close()

"""A worker: it gets its listening sockets, its connections and the links to the other workers from the parent."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

import trouter
from trouter import logs
from trouter.config import Configuration, ListenerEntity
from trouter.config.workers import FIRST, WORKERS_HOST, part_of, worker_id
from trouter.net.dialing import Endpoint, connect
from trouter.net.parts import Key
from trouter.net.sockets import ListenError, place_of
from trouter.net.tallies import Tallies
from trouter.net.workers import Adopt, News

from .calls import Answer, CallFailed, answer_calls, call
from .handed import HandedSocket, SiblingSocket
from .line import MAX_TEXT, Line, LineClosed, Message, close_all
from .sealed import seal, unseal

#: Seconds between two signs of life.
ALIVE_EVERY_S: Final = 1.0
#: The answer of another worker than the first to a request that asks it alone for a change of the configuration.
WHY_FIXED: Final = "this worker alone cannot change the configuration of the router: ask {router}"

log = logging.getLogger("trouter.MAIN")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTerms:
    """What the parent tells a worker first: its number, of how many, and where the configuration is."""

    place: int
    count: int
    #: The id of the router, which may have been made up at its start.
    router_id: str
    path: str | None
    #: The number of workers as text, if the command line says it.
    workers: str | None = None
    #: The number of the configuration that comes with it, as the parent counts; 0 if it is to be read.
    version: int = 0
    #: The release of trouter that the parent runs; another one may have been installed since it started.
    release: str = trouter.__version__

    @property
    def file(self) -> Path | None:
        """The file of the configuration; None for the built-in one."""
        return None if self.path is None else Path(self.path)

    def part_of(self, configuration: Configuration, memory_bytes: int) -> Configuration:
        """Return this worker's part of the configuration of the router."""
        return part_of(configuration, self.router_id, self.place, self.count, memory_bytes)


class WorkerReach:
    """One worker's end of the line: a ``Reach``."""

    def __init__(self, line: Line, terms: WorkerTerms, tallies: Tallies, memory_bytes: int) -> None:
        """``memory_bytes`` is what all workers may take together if the configuration does not say it."""
        self._line = line
        self._terms = terms
        self._memory_bytes = memory_bytes
        self.tallies = tallies
        places = range(1, terms.count + 1)
        self.siblings = frozenset(worker_id(terms.router_id, place) for place in places if place != terms.place)
        self.why_fixed = "" if terms.place == FIRST else WHY_FIXED.format(router=terms.router_id)
        #: Told to the first worker.
        self.behind: Mapping[int, str] = {}
        self.number = terms.place
        #: The ids of all workers by their numbers.
        self.ids: Mapping[int, str] = {place: worker_id(terms.router_id, place) for place in places}

    @property
    def workers(self) -> WorkerReach:
        """This object: it asks the other workers too."""
        return self

    def part_of(self, whole: Configuration) -> Configuration:
        """Return this worker's part of the configuration of the router."""
        return self._terms.part_of(whole, self._memory_bytes)

    async def run(self, receive: Callable[[News], None], adopt: Adopt) -> None:
        """Give signs of life, and do what the parent asks for; stop the router when the parent has ended.

        ``receive`` gets the news of other workers, ``adopt`` each configuration of the first one.
        """
        into, wanted = trio.open_memory_channel[tuple[Message, int]](math.inf)  # the parent sends one at a time
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._live)
            nursery.start_soon(self._adopt_each, wanted, adopt)
            try:
                while True:
                    message, descriptors = await self._line.receive()
                    if "adopt" in message:
                        into.send_nowait((message, descriptors.pop()))
                    close_all(descriptors)
                    if message.get("reopen"):
                        logs.reopen()
                    elif isinstance(news := message.get("news"), dict):
                        receive(news)
                    elif isinstance(behind := message.get("behind"), dict):
                        self._note_behind(behind)
            except OSError:
                logs.always("MAIN", logging.CRITICAL, "the parent process has ended: this worker stops")
                os.kill(os.getpid(), signal.SIGTERM)
            nursery.cancel_scope.cancel()

    async def _adopt_each(self, wanted: trio.MemoryReceiveChannel[tuple[Message, int]], adopt: Adopt) -> None:
        """Adopt one configuration after the other; notify the parent of each whether it is in force."""
        async for message, descriptor in wanted:
            whole = await trio.to_thread.run_sync(unseal, descriptor)
            why = await adopt(whole, bool(message["reloaded"]))
            self._tell({"adopted": message["adopt"], "refusal": why[:MAX_TEXT]})

    async def publish(self, whole: Configuration, *, reloaded: bool = False) -> None:
        """Have the other workers, and those to come, take over the configuration that is in force here, in the first.

        ``reloaded``: its file was read again. Workers that do not take it over in time are in ``behind``.
        """
        descriptor = await trio.to_thread.run_sync(seal, whole)
        try:
            answer, _ = await self._ask({"publish": True, "reloaded": reloaded}, [descriptor])
        except OSError:  # the parent has ended: `run` stops this worker
            return
        finally:
            os.close(descriptor)
        behind = answer["behind"]
        assert isinstance(behind, dict)  # noqa: S101  # the parent is of the same version
        self._note_behind(behind)

    def _note_behind(self, behind: Mapping[str, str]) -> None:
        self.behind = {int(place): why for place, why in behind.items()}

    def notify_siblings(self, news: News) -> None:
        """Notify the other workers, through the parent."""
        self._tell({"news": news})

    async def _live(self) -> None:
        while True:
            self._tell({"alive": True})
            await trio.sleep(ALIVE_EVERY_S)

    async def open_for(self, key: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Return sockets on which the connections of a listener come; ListenError if the parent cannot listen."""
        if entity.host == WORKERS_HOST:
            _, descriptors = await self._ask({"siblings": True})
            return [HandedSocket(descriptors[0], "127.0.0.1", 0)]
        request = {
            "listen": key,
            "family": entity.socket_address_family,
            "leaving": [place_of(each) for each in leaving],
        }
        try:
            answer, descriptors = await self._ask(request)
        except OSError as error:
            raise ListenError(f"cannot listen on {entity.host or '*'}:{entity.port}: {error}") from error
        if why := answer.get("error"):
            raise ListenError(str(why))
        places = answer["places"]
        assert isinstance(places, list)  # noqa: S101  # the parent is of the same version
        found = zip(descriptors, places, strict=True)
        return [HandedSocket(descriptor, host, port) for descriptor, (host, port) in found]

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Return a socket that is connected to another worker, or to a host; OSError."""
        if endpoint.host != WORKERS_HOST:
            return await connect(endpoint, family_name)
        place = int(endpoint.port)
        _, descriptors = await self._ask({"join": place})
        sock = SiblingSocket(descriptors[0], place)
        sock.setblocking(False)
        return sock

    async def ask(self, number: int, what: str, request: bytes = b"", *, limit_s: float) -> bytes:
        """Return the answer of another worker; OSError with a text if it is not there after ``limit_s`` seconds."""
        answer, descriptors = await self._ask({"call": number})
        if not descriptors:
            raise CallFailed(str(answer.get("error")))
        end = socket.socket(fileno=descriptors[0])
        end.setblocking(False)
        return await call(end, what, request, limit_s)

    async def answer_calls(self, answers: Mapping[str, Answer]) -> None:
        """Answer the calls of other workers, each by the function for what it asks; until cancelled."""
        _, descriptors = await self._ask({"calls": True})
        with socket.socket(fileno=descriptors[0]) as channel:
            channel.setblocking(False)
            await answer_calls(channel, answers)

    def note_ready(self) -> None:
        """Tell the parent that every listener is open."""
        self._tell({"ready": True})

    def ask_for_reload(self) -> None:
        """Have the first worker read the configuration again."""
        self._tell({"reload": True})

    def reopen_logs(self) -> None:
        """Have the other workers open their log files again."""
        self._tell({"reopen": True})

    def _tell(self, message: Message) -> None:
        with suppress(OSError):  # the parent has ended: `run` stops this worker
            self._line.send(message)

    async def _ask(self, request: Message, descriptors: Sequence[int] = ()) -> tuple[Message, list[int]]:
        """Return the parent's answer; OSError if it ends before."""
        answers, theirs = Line.pair()
        try:
            with theirs:
                self._line.send(request, [theirs.fileno(), *descriptors])
            return await answers.receive()
        except LineClosed:
            raise OSError("the parent process does not answer") from None
        finally:
            answers.close()

"""A worker: it gets its listening sockets, its connections and the channels to the other workers from the parent."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

import trouter
from trouter import logs
from trouter.config import Configuration, ConfigurationError, ListenerEntity
from trouter.config.configuration import ROUTER_ROLES
from trouter.config.portable import read_portable, write_portable
from trouter.config.workers import FIRST, WORKERS_HOST, part_of, worker_id
from trouter.net.dialing import Endpoint, connect
from trouter.net.parts import Key
from trouter.net.sockets import ListenError, place_of
from trouter.net.tallies import Tallies
from trouter.net.workers import Adopt, CallCode, CallFailed, News

from .calls import NOTHING, Answer, BadMessage, Channel, Content
from .followers import CONFIGURE, Followers
from .handed import HandedSocket, SiblingSocket
from .introductions import MEETS, SILENT

#: Seconds between two signs of life.
ALIVE_EVERY_S: Final = 1.0
#: Seconds for what the parent does at once, for a listener whose host's name it has to look up, and for a worker that
#: is to take connections of others, which may be starting.
PARENT_WITHIN_S: Final = 10.0
LISTENS_WITHIN_S: Final = 30.0
JOINED_WITHIN_S: Final = 30.0
#: The note that news did not find room at the worker that gets it.
MISSED: Final = "missed"
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
    """One worker's end of the channels to the parent and to the other workers: a ``Reach``."""

    def __init__(self, parent: Channel, terms: WorkerTerms, tallies: Tallies, memory_bytes: int) -> None:
        """``memory_bytes`` is what all workers may take together if the configuration does not say it."""
        self._parent = parent
        self._terms = terms
        self._memory_bytes = memory_bytes
        self.tallies = tallies
        places = range(1, terms.count + 1)
        self.siblings = frozenset(worker_id(terms.router_id, place) for place in places if place != terms.place)
        self.why_fixed = "" if terms.place == FIRST else WHY_FIXED.format(router=terms.router_id)
        self.number = terms.place
        #: The ids of all workers by their numbers.
        self.ids: Mapping[int, str] = {place: worker_id(terms.router_id, place) for place in places}
        others = [place for place in places if place != terms.place]
        self._followers = Followers(others, terms.version, self._call) if terms.place == FIRST else None
        #: The channels to the workers that take calls, by number, and those that give no sign of life.
        self._channels: dict[int, Channel] = {}
        self._silent: frozenset[int] = frozenset()
        #: Set once the channels are there that can be there.
        self._met = trio.Event()
        #: What answers the calls of other workers, once this one serves.
        self._answers: Mapping[str, Answer] = {}
        #: Workers of which this one may have missed news, and those that may have missed news of this one.
        self._missed, self._next_missed = trio.open_memory_channel[int](math.inf)
        self._owed: set[int] = set()
        self._version = terms.version
        self._ready = False

    @property
    def workers(self) -> WorkerReach:
        """This object: it asks the other workers too."""
        return self

    @property
    def behind(self) -> Mapping[int, str]:
        """The other workers that do not have the configuration of this one, the first, by number, and why."""
        return {} if self._followers is None else self._followers.behind

    def part_of(self, whole: Configuration) -> Configuration:
        """Return this worker's part of the configuration of the router."""
        return self._terms.part_of(whole, self._memory_bytes)

    async def run(self, receive: Callable[[News], None], adopt: Adopt) -> None:
        """Give signs of life, and talk with the parent and the other workers; stop this one when the parent has ended.

        ``receive`` gets the news of other workers, ``adopt`` each configuration of the first one.
        """
        wanted, to_adopt = trio.open_memory_channel[_Wanted](math.inf)  # the first worker waits for each
        notes = {"news": lambda content: receive(content.facts), "reopen": lambda _: logs.reopen()}
        configure = partial(self._answer_configure, wanted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._live)
            nursery.start_soon(self._adopt_each, to_adopt, adopt)
            nursery.start_soon(self._meet)
            if self._followers is not None:
                nursery.start_soon(self._followers.run)
            try:
                await self._parent.run(
                    lambda _: None,
                    {
                        MEETS: lambda content: nursery.start_soon(
                            self._talk, *self._new_channel(content), notes, configure
                        ),
                        SILENT: self._note_silent,
                    },
                    bringing={MEETS},
                )
            except BadMessage as bad:
                log.critical("the parent process sent a bad message: %s", bad)
            logs.always("MAIN", logging.CRITICAL, "the parent process has ended: this worker stops")
            os.kill(os.getpid(), signal.SIGTERM)
            nursery.cancel_scope.cancel()

    async def _live(self) -> None:
        while True:
            self._parent.note("alive", Content({"ready": self._ready}))
            self._tell_missed()
            await trio.sleep(ALIVE_EVERY_S)

    # --- the other workers

    async def _meet(self) -> None:
        try:
            await self._parent.call("meet", limit_s=PARENT_WITHIN_S)
        except CallFailed as failed:
            log.error("this worker does not know the others: %s", failed)
        self._met.set()

    def _new_channel(self, content: Content) -> tuple[int, Channel]:
        """Return the number of another worker and the channel to it."""
        place = int(content.facts["place"])
        old = self._channels.pop(place, None)
        if old is not None:
            old.close()
        channel = self._channels[place] = Channel(content.take_socket())
        return place, channel

    async def _talk(
        self, place: int, channel: Channel, notes: Mapping[str, Callable[[Content], None]], configure: Answer
    ) -> None:
        """Take the calls and notes of another worker until it ends."""
        self._missed.send_nowait(place)  # what it has told before
        if self._followers is not None:
            self._followers.note_started(place)
        answers = {CONFIGURE: configure} if place == FIRST else {}
        missed = {MISSED: lambda _: self._missed.send_nowait(place)}
        try:
            await channel.run(lambda what: answers.get(what) or self._answers.get(what), {**notes, **missed})
        except BadMessage as bad:
            log.error("worker %d sent a bad message: %s; its channel is closed", place, bad)
        if self._channels.get(place) is channel:
            del self._channels[place]
            if self._followers is not None:
                self._followers.note_ended(place)

    def _note_silent(self, content: Content) -> None:
        """Note which workers give no sign of life; nobody waits for them."""
        self._silent = frozenset(map(int, content.facts["places"]))
        for place in self._silent & self._channels.keys():
            self._channels[place].fail_calls(CallCode.SILENT, _SILENT)

    async def _call(self, number: int, what: str, content: Content, limit_s: float) -> Content:
        """Return the answer of another worker; CallFailed."""
        with trio.move_on_after(limit_s):
            await self._met.wait()
        channel = self._channels.get(number)
        if channel is None:
            raise CallFailed(CallCode.NOT_SERVING, "it does not serve")
        if number in self._silent:
            raise CallFailed(CallCode.SILENT, _SILENT)
        return await channel.call(what, content, limit_s=limit_s)

    async def ask(self, number: int, what: str, request: bytes = b"", *, limit_s: float) -> bytes:
        """Return the answer of another worker; OSError with a text if it is not there after ``limit_s`` seconds."""
        return (await self._call(number, what, Content(body=request), limit_s)).body

    async def answer_calls(self, answers: Mapping[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        """Answer the calls of other workers, each by the function for what it asks; until cancelled."""
        self._answers = {what: partial(_answer_bytes, answer) for what, answer in answers.items()}
        await trio.sleep_forever()

    def notify_siblings(self, news: News) -> None:
        """Notify the other workers; one without room for it is told that it has missed something."""
        self._tell_others("news", Content(news))

    def reopen_logs(self) -> None:
        """Have the other workers open their log files again."""
        self._tell_others("reopen", NOTHING)

    def _tell_others(self, what: str, content: Content) -> None:
        self._owed |= {place for place, channel in self._channels.items() if not channel.note(what, content)}

    def _tell_missed(self) -> None:
        """Tell those that have missed news that they have, if there is room for it now."""
        self._owed -= {
            place for place in self._owed if place not in self._channels or self._channels[place].note(MISSED)
        }

    async def next_missed(self) -> int:
        """Return the number of a worker whose news this one may have missed: it is new, or there was no room for it."""
        return await self._next_missed.receive()

    # --- the configuration

    async def publish(self, whole: Configuration, *, reloaded: bool = False) -> None:
        """Have the other workers, and those to come, take over the configuration that is in force here, in the first.

        ``reloaded``: its file was read again. Workers that do not take it over in time are in ``behind``.
        """
        followers = self._followers
        assert followers is not None  # noqa: S101  # the others cannot change it
        text = await trio.to_thread.run_sync(write_portable, whole)
        try:
            kept = Content({"version": followers.next_version}, text)
            await self._parent.call("keep", kept, limit_s=PARENT_WITHIN_S)
        except CallFailed as failed:
            log.error("workers to come will have an older configuration: %s", failed)
        await followers.publish(text, reloaded=reloaded)

    async def _answer_configure(self, wanted: trio.MemorySendChannel[_Wanted], content: Content) -> Content:
        """Answer the first worker why its configuration is not in force here, once that is known."""
        one = _Wanted(int(content.facts["version"]), bool(content.facts["reloaded"]), content.body)
        wanted.send_nowait(one)  # a task of its own adopts it, also if the first worker stops waiting
        await one.done.wait()
        return Content({"refusal": one.refusal})

    async def _adopt_each(self, to_adopt: trio.MemoryReceiveChannel[_Wanted], adopt: Adopt) -> None:
        """Adopt one configuration after the other, unless it or a later one is in force."""
        async for one in to_adopt:
            if one.version > self._version or (one.reloaded and one.version == self._version):
                try:
                    whole = await trio.to_thread.run_sync(read_portable, one.text)
                except ConfigurationError as error:
                    one.refusal = str(error)
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    one.refusal = f"its text cannot be read ({type(error).__name__})"
                else:
                    one.refusal = await adopt(whole, one.reloaded)
                self._version = one.version
            one.done.set()

    # --- the parent

    async def open_for(self, key: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Return sockets on which the connections of a listener come; ListenError if the parent cannot listen."""
        if entity.host == WORKERS_HOST:
            answer = await self._parent.call("siblings", limit_s=PARENT_WITHIN_S)
            return [HandedSocket(answer.descriptors[0], "127.0.0.1", 0)]
        request = {
            "listen": key,
            "family": entity.socket_address_family,
            "leaving": [place_of(each) for each in leaving],
            "few": entity.serves_http or entity.role in ROUTER_ROLES,
        }
        try:
            answer = await self._parent.call("listen", Content(request), limit_s=LISTENS_WITHIN_S)
        except CallFailed as failed:
            if failed.code is CallCode.REFUSED:
                raise ListenError(str(failed)) from failed
            raise ListenError(f"cannot listen on {entity.host or '*'}:{entity.port}: {failed}") from failed
        places = zip(answer.descriptors, answer.facts["places"], strict=True)
        return [HandedSocket(descriptor, host, port) for descriptor, (host, port) in places]

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Return a socket that is connected to another worker, or to a host; OSError."""
        if endpoint.host != WORKERS_HOST:
            return await connect(endpoint, family_name)
        place = int(endpoint.port)
        answer = await self._parent.call("join", Content({"place": place}), limit_s=JOINED_WITHIN_S)
        sock = SiblingSocket(answer.descriptors[0], place)
        sock.setblocking(False)
        return sock

    def note_ready(self) -> None:
        """Tell the parent that every listener is open."""
        self._ready = True
        self._parent.note("alive", Content({"ready": True}))  # each later sign of life says so too

    def ask_for_reload(self) -> None:
        """Have the first worker read the configuration again."""
        if not self._parent.note("reload"):
            log.error("the configuration is not read again: the parent process takes no messages")


_SILENT: Final = "it gives no sign of life"


class _Wanted:
    """A configuration that is to be adopted, and why it was not."""

    def __init__(self, version: int, reloaded: bool, text: bytes) -> None:
        self.version = version
        self.reloaded = reloaded
        self.text = text
        self.refusal = ""
        self.done = trio.Event()


async def _answer_bytes(answer: Callable[[bytes], Awaitable[bytes]], content: Content) -> Content:
    return Content(body=await answer(content.body))

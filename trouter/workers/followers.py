"""The configuration of the first worker on its way to the others: who has it, who is behind and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

import trio

from trouter.net.workers import CallCode, CallFailed

from .calls import MAX_TEXT, Content

#: What the first worker calls the others for.
CONFIGURE: Final = "configure"
#: Seconds within which the others take over a configuration; one that does so later is behind for so long.
ADOPTED_WITHIN_S: Final = 10.0
#: Seconds between two attempts with workers that have not taken it over.
RETRY_S: Final = 1.0
NOT_YET: Final = "it has not taken over the configuration yet"

#: Calls another worker, by its number, within some seconds; CallFailed.
CallWorker = Callable[[int, str, Content, float], Awaitable[Content]]


class Followers:
    """The other workers, which follow the first one; for the first one."""

    def __init__(self, places: Collection[int], version: int, call: CallWorker) -> None:
        """``version`` is the number of the configuration with which this worker started."""
        self._call = call
        self._version = version
        self._text = b""
        #: The workers of which it is not known that they have decided about the present configuration.
        self._unsettled: set[int] = set()
        #: Those of them that started with what the parent has, and are only asked whether that is the present one.
        self._started: set[int] = set()
        self._places = frozenset(places)
        #: Workers that have not read the files again that the configuration names, though that is wanted.
        self._owe_reload: set[int] = set()
        self._reasons: dict[int, str] = {}
        self._wake = trio.Event()

    @property
    def behind(self) -> Mapping[int, str]:
        """The workers that serve with another configuration, by number, and why."""
        return self._reasons

    @property
    def next_version(self) -> int:
        """The number of the next configuration."""
        return self._version + 1

    async def publish(self, text: bytes, *, reloaded: bool) -> None:
        """Have all take over another configuration; those that have not after a while are in ``behind``."""
        self._version, self._text = self.next_version, text
        self._unsettled = set(self._places)
        self._started.clear()
        if reloaded:
            self._owe_reload = set(self._places)
        await self._ask_unsettled()
        self._wake.set()

    def note_started(self, place: int) -> None:
        """Ask a worker that has started whether it has the present configuration."""
        self._unsettled.add(place)
        self._started.add(place)
        self._wake.set()

    def note_ended(self, place: int) -> None:
        """Note that a worker has ended: it is not behind, as it does not serve."""
        self._reasons.pop(place, None)

    async def run(self) -> None:
        """Ask those that have not decided, again and again, until cancelled."""
        while True:
            if not (self._text and self._unsettled):
                self._wake = trio.Event()
                await self._wake.wait()
            await trio.sleep(RETRY_S)
            await self._ask_unsettled()

    async def _ask_unsettled(self) -> None:
        async with trio.open_nursery() as nursery:
            for place in sorted(self._unsettled):
                nursery.start_soon(self._ask, place)

    async def _ask(self, place: int) -> None:
        version = self._version
        facts = {"version": version, "reloaded": place in self._owe_reload}
        try:
            answer = await self._call(place, CONFIGURE, Content(facts, self._text), ADOPTED_WITHIN_S)
            reason = str(answer.facts.get("refusal", ""))[:MAX_TEXT]
            is_settled = True
        except CallFailed as failed:
            is_settled = failed.code is CallCode.FAILED
            starts = place in self._started or failed.code is CallCode.NOT_SERVING
            reason = "" if starts else NOT_YET  # one that starts gets it from the parent
        if version != self._version:  # another call is about the next one
            return
        if is_settled:
            self._unsettled.discard(place)
            self._owe_reload.discard(place)
        if reason:
            self._reasons[place] = reason
        else:
            self._reasons.pop(place, None)

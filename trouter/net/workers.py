"""The workers of a router of several processes, as one of them sees the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Final, Protocol

from trouter.config import Configuration

#: What workers ask each other for: to answer a request of management, why they are not ready, the text of their
#: metrics, the decisions in force, and the state of their drain.
MANAGE: Final = "manage"
READY: Final = "ready"
METRICS: Final = "metrics"
DECISIONS: Final = "decisions"
DRAIN: Final = "drain"
#: Seconds for an answer.
ANSWERED_WITHIN_S: Final = 3.0

#: What one worker notifies the others of.
News = Mapping[str, object]

#: Puts the configuration that the first worker has into force here; ``reloaded``: its file was read again. The result
#: says why it is not in force, and is empty if it is.
Adopt = Callable[[Configuration, bool], Awaitable[str]]


class CallCode(StrEnum):
    """Why a call has no answer."""

    #: The other process does not serve yet, or not any more.
    NOT_SERVING = "not-serving"
    #: It has given no sign of life for a while.
    SILENT = "silent"
    #: It did not answer in time.
    LATE = "late"
    #: It has too many calls already, or no descriptor left for what comes with the message.
    BUSY = "busy"
    #: It says why it does not do it.
    REFUSED = "refused"
    #: It has an internal error, and its log the details; or it does not know the call.
    FAILED = "failed"


class CallFailed(OSError):
    """The other process did not answer; the text says why, and ``code`` is for decisions."""

    def __init__(self, code: CallCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Workers(Protocol):
    """The workers of this router: what this one asks the others, and what they ask it."""

    #: The number of this worker, from 1.
    number: int
    #: The ids of all workers by their numbers.
    ids: Mapping[int, str]

    async def ask(self, number: int, what: str, request: bytes = b"", *, limit_s: float) -> bytes:
        """Return the answer of another worker; CallFailed if it is not there after ``limit_s`` seconds."""

    async def answer_calls(self, answers: Mapping[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        """Answer the calls of other workers, each by the function for what it asks; until cancelled."""

    async def next_missed(self) -> int:
        """Return the number of a worker whose news this one may have missed: it is new, or there was no room for it."""

    async def run(self, receive: Callable[[News], None], adopt: Adopt) -> None:
        """Talk with the parent process and the other workers, while the router runs; ``receive`` gets their news."""

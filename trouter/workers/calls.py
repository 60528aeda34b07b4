"""The one channel among the processes of a router: requests with a number, and their answers or errors.

A channel joins the parent and a worker, or two workers. Its two ends are a pair of sockets without an address, so no
other process can use it, and no client. Each message arrives as a whole: a line of JSON that says what it is, then
bytes, which travel in a file in memory if they are many, and open sockets beside it. These are the messages:

    {"call": WHAT, "number": N, "until": T, "facts": {...}}
    {"answer": N, "facts": {...}}
    {"error": CODE, "number": N, "text": WHY}
    {"note": WHAT, "facts": {...}}

A call is to be answered before T, in seconds of the machine's clock, and brings no sockets; a note has no answer.
What the other end sends is judged before it is used: the first message that is none of these ends the channel.
"""

from __future__ import annotations

import errno
import json
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final

import trio

from trouter._bugs import BUGS
from trouter.net.workers import CallCode, CallFailed

#: Seconds after which an answer is not worked on any more; no caller waits longer.
MAX_ANSWERING_S: Final = 30.0
#: The most bytes beside a message: the answer of a QUERY, or a configuration.
MAX_BODY_BYTES: Final = 80 * 1024 * 1024
#: The longest message, and the most descriptors that one carries.
MAX_MESSAGE_BYTES: Final = 65_536
MAX_DESCRIPTORS: Final = 64
#: More bytes than this travel in a file in memory.
MAX_INLINE_BYTES: Final = 16_384
#: Calls of one channel that are answered at the same time, and that wait for that.
AT_ONCE: Final = 32
MAX_WAITING: Final = 1_000
#: Characters of a text in a message.
MAX_TEXT: Final = 4_000
#: Messages taken in a row before other tasks get their turn.
_IN_A_ROW: Final = 16


class ChannelEnded(OSError):
    """The other process has closed the channel, or has ended."""


class BadMessage(Exception):
    """The other process sent what is no message; the text says what is wrong with it, and nothing of its content."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a message carries: facts as JSON, bytes, and open descriptors.

    The descriptors of a message that came belong to whoever takes it; those of one that is sent are closed here then.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""
    descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def take_socket(self) -> socket.socket:
        """Return the one socket that came, which does not block; BadMessage if there is another number of them."""
        if len(self.descriptors) != 1:
            self.close()
            raise BadMessage(f"it has {len(self.descriptors)} descriptors instead of one")
        sock = socket.socket(fileno=self.descriptors[0])
        sock.setblocking(False)
        return sock


NOTHING: Final = Content()

#: Returns the answer to a call; CallFailed if there is none.
Answer = Callable[[Content], Awaitable[Content]]
#: Takes a note, and returns soon. It looks at the facts first: if these are wrong, it has taken no descriptors.
Take = Callable[[Content], None]


class Channel:
    """One end of a channel."""

    def __init__(self, sock: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` returns the seconds of a clock that all processes of the machine have."""
        sock.setblocking(False)
        self._sock = sock
        self._clock = clock
        self._numbers = count(1)
        #: The calls of this end that have no answer yet.
        self._pending: dict[int, _Pending] = {}
        #: One task at a time waits until there is room for its message.
        self._waiting_for_room = trio.Lock()
        self._closed = False

    @classmethod
    def at(cls, descriptor: int) -> Channel:
        """Return the end of a channel that is open as this descriptor."""
        return cls(socket.socket(fileno=descriptor))

    @property
    def is_closed(self) -> bool:
        """True once this end is closed."""
        return self._closed

    def close(self) -> None:
        """Close this end; calls that wait get no answer. A second call does nothing."""
        if not self._closed:
            self._closed = True
            with suppress(RuntimeError):  # there are no tasks, so none waits for it
                trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
            self.fail_calls(CallCode.NOT_SERVING, "it has ended")

    def fail_calls(self, code: CallCode, text: str) -> None:
        """Let the calls that wait for an answer fail."""
        for pending in self._pending.values():
            pending.end(CallFailed(code, text))

    async def call(self, what: str, content: Content = NOTHING, *, limit_s: float) -> Content:
        """Return the answer to a call; CallFailed, also if the answer is not there after ``limit_s`` seconds."""
        number = next(self._numbers)
        pending = self._pending[number] = _Pending()
        head = {"call": what, "number": number, "until": self._clock() + limit_s}
        try:
            with trio.move_on_after(limit_s):
                await self._send(head, content)
                await pending.done.wait()
        except BaseException:
            pending.drop()
            raise
        finally:
            del self._pending[number]
        answer = pending.given
        if answer is None:
            raise CallFailed(CallCode.LATE, f"it did not answer within {limit_s:g} s")
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    def note(self, what: str, content: Content = NOTHING) -> bool:
        """Send a note; return whether there was room for it: an end that has not read for long has none."""
        with ExitStack() as stack:
            try:
                octets, descriptors = _written({"note": what}, content, stack)
                if self._closed:
                    return False
                socket.send_fds(self._sock, [octets], descriptors)
            except OSError:
                return False
        return True

    async def run(
        self, answers: Callable[[str], Answer | None], notes: Mapping[str, Take], bringing: Collection[str] = ()
    ) -> None:
        """Take what the other end sends until it closes the channel, or ``close`` does; BadMessage if it is no message.

        ``answers`` returns what answers a call, None if this process does not serve it. Notes ``bringing`` descriptors
        are named; others bring none.
        """
        limiter = trio.CapacityLimiter(AT_ONCE)
        try:
            async with trio.open_nursery() as nursery:
                with suppress(ChannelEnded):
                    await self._take_all(answers, notes, bringing, nursery, limiter)
                nursery.cancel_scope.cancel()
        except* BadMessage as bad:
            raise bad.exceptions[0] from None
        finally:
            self.close()

    def receive_first(self) -> Content:
        """Return the content of the first message, a note, before there are tasks; ChannelEnded, BadMessage."""
        self._sock.setblocking(True)
        try:
            head, content = self._receive()
        finally:
            self._sock.setblocking(False)
        if "note" not in head:
            content.close()
            raise BadMessage("it is not the first message")
        return content

    async def _take_all(
        self,
        answers: Callable[[str], Answer | None],
        notes: Mapping[str, Take],
        bringing: Collection[str],
        nursery: trio.Nursery,
        limiter: trio.CapacityLimiter,
    ) -> None:
        in_a_row = 0
        while True:
            try:
                head, content = self._receive()
            except BlockingIOError:
                in_a_row = 0
                await self._wait_readable()
                continue
            except _DescriptorsLost as lost:
                self._note_lost(lost.head, nursery)
                continue
            if "note" in head:
                take = notes.get(head["note"])
                if take is None:
                    content.close()
                    raise BadMessage("it is a note that nobody takes here")
                if content.descriptors and head["note"] not in bringing:
                    content.close()
                    raise BadMessage("it is a note that brings descriptors")
                try:
                    take(content)
                except _WRONG_FACTS as error:
                    content.close()
                    raise BadMessage(f"its facts are not those of {head['note']!r}") from error
            elif "call" in head:
                if content.descriptors:
                    content.close()
                    raise BadMessage("it is a call that brings descriptors")
                if limiter.statistics().tasks_waiting >= MAX_WAITING:
                    raise BadMessage(f"more than {MAX_WAITING} calls wait")
                nursery.start_soon(self._answer, head, content, answers(head["call"]), limiter)
            else:
                self._end_call(head, content)
            in_a_row += 1
            if in_a_row >= _IN_A_ROW:
                in_a_row = 0
                await trio.lowlevel.checkpoint()

    def _note_lost(self, head: Mapping[str, Any], nursery: trio.Nursery) -> None:
        """Let a call fail for whose descriptors, or those of whose answer, there was no room."""
        failed = CallFailed(CallCode.BUSY, "there are no descriptors left")
        if "answer" in head and (pending := self._pending.get(head["answer"])) is not None:
            pending.end(failed)
        elif "call" in head:
            nursery.start_soon(self._answer, head, NOTHING, partial(_fail, failed), trio.CapacityLimiter(1))
        elif "note" in head:
            raise BadMessage("there are no descriptors left for what it brings")

    async def _wait_readable(self) -> None:
        try:
            await trio.lowlevel.wait_readable(self._sock)
        except trio.ClosedResourceError:
            raise ChannelEnded("this end was closed") from None

    def _end_call(self, head: Mapping[str, Any], content: Content) -> None:
        """Give an answer or an error to the call that waits for it, if it still does."""
        pending = self._pending.get(head["answer"] if "answer" in head else head["number"])
        if pending is None:
            content.close()
        elif "error" in head:
            content.close()
            pending.end(CallFailed(CallCode(head["error"]), head["text"]))
        else:
            pending.end(content)

    async def _answer(
        self, head: Mapping[str, Any], content: Content, answer: Answer | None, limiter: trio.CapacityLimiter
    ) -> None:
        number, left_s = head["number"], min(head["until"] - self._clock(), MAX_ANSWERING_S)
        if left_s <= 0:  # the caller does not wait any more
            return
        with trio.move_on_after(left_s), suppress(OSError):
            try:
                if answer is None:
                    raise CallFailed(CallCode.NOT_SERVING, "it does not serve")
                async with limiter:
                    given = await answer(content)
                await self._send({"answer": number}, given)
            except CallFailed as failed:
                await self._send_error(number, failed.code, str(failed))
            except BadMessage:
                raise
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end this process
                BUGS.report("internal error in a call of another process of this router", error)
                await self._send_error(number, CallCode.FAILED, "its log has the error")

    async def _send_error(self, number: int, code: CallCode, text: str) -> None:
        await self._send({"error": code, "number": number, "text": text[:MAX_TEXT]}, NOTHING)

    async def _send(self, head: dict[str, object], content: Content) -> None:
        """Send a message once there is room for it, and close its descriptors; CallFailed."""
        with ExitStack() as stack:
            try:
                octets, descriptors = _written(head, content, stack)
                while not self._closed:
                    try:
                        socket.send_fds(self._sock, [octets], descriptors)
                    except BlockingIOError:
                        async with self._waiting_for_room:
                            await trio.lowlevel.wait_writable(self._sock)
                    else:
                        return
            except trio.ClosedResourceError:
                pass
            except CallFailed:
                raise
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                    raise CallFailed(CallCode.BUSY, f"the message cannot be sent: {error.strerror}") from error
        raise CallFailed(CallCode.NOT_SERVING, "it has ended")

    def _receive(self) -> tuple[Mapping[str, Any], Content]:
        """Return the next message; BlockingIOError if there is none yet, ChannelEnded, BadMessage."""
        try:
            octets, received, flags, _ = socket.recv_fds(self._sock, MAX_MESSAGE_BYTES, MAX_DESCRIPTORS)
        except BlockingIOError:
            raise
        except OSError as error:
            raise ChannelEnded(str(error)) from error
        if not octets:
            raise ChannelEnded("the other end has closed the channel")
        content = Content(descriptors=tuple(received))
        try:
            if flags & socket.MSG_TRUNC:
                raise BadMessage(f"it has more than {MAX_MESSAGE_BYTES} bytes")
            line, _, body = octets.partition(b"\n")
            head = _read_head(line)
            if flags & socket.MSG_CTRUNC:  # there was no room for them in this process
                raise _DescriptorsLost(head)
            size = head.get("bytes", 0)
            if size > MAX_INLINE_BYTES:
                if not content.descriptors:
                    raise BadMessage("it lacks the file with its bytes")
                file, *others = content.descriptors
                content = Content(descriptors=tuple(others))
                body = _read_file(file, size)
            elif size != len(body):
                raise BadMessage("it is cut")
            return head, Content(head.get("facts", {}), body, content.descriptors)
        except BaseException:
            content.close()
            raise


#: What wrong facts lead to in the function that takes them.
_WRONG_FACTS: Final = (AttributeError, LookupError, TypeError, ValueError)


async def _fail(failed: CallFailed, _: Content) -> Content:
    await trio.lowlevel.checkpoint()
    raise failed


class _DescriptorsLost(Exception):
    """This process had no descriptors left for those of a message."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        super().__init__()
        self.head = head


class _Pending:
    """A call that waits for its answer."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.given: Content | CallFailed | None = None

    def end(self, given: Content | CallFailed) -> None:
        """Give the answer; the first one counts."""
        if self.given is None:
            self.given = given
            self.done.set()
        elif isinstance(given, Content):
            given.close()

    def drop(self) -> None:
        """Close what came with the answer: nobody waits for it any more."""
        if isinstance(self.given, Content):
            self.given.close()


def pair() -> tuple[Channel, socket.socket]:
    """Return one end of a new channel, and the socket that makes the other end."""
    ours, theirs = socket_pair()
    return Channel(ours), theirs


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return the sockets of a new channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _written(head: dict[str, object], content: Content, stack: ExitStack) -> tuple[bytes, list[int]]:
    """Return a message as bytes, and its descriptors, which ``stack`` closes; OSError."""
    stack.callback(content.close)
    descriptors, body = list(content.descriptors), content.body
    if content.facts:
        head["facts"] = content.facts
    if body:
        head["bytes"] = len(body)
    if len(body) > MAX_INLINE_BYTES:
        if len(body) > MAX_BODY_BYTES:
            raise CallFailed(CallCode.REFUSED, f"more than {MAX_BODY_BYTES} bytes")
        file = os.memfd_create("message", os.MFD_CLOEXEC)
        stack.callback(os.close, file)
        with open(file, "wb", closefd=False) as writer:
            writer.write(body)
        descriptors.insert(0, file)
        body = b""
    octets = json.dumps(head).encode() + b"\n" + body
    if len(octets) > MAX_MESSAGE_BYTES:
        raise CallFailed(CallCode.REFUSED, f"a message of more than {MAX_MESSAGE_BYTES} bytes")
    return octets, descriptors


def _read_file(descriptor: int, size: int) -> bytes:
    """Return the bytes of a file in memory, which is closed; BadMessage if it cannot be read, or has another size."""
    try:
        if os.fstat(descriptor).st_size != size:
            raise BadMessage("its file has another size than it says")
        octets = os.pread(descriptor, size, 0)
    except OSError:
        raise BadMessage("its file cannot be read") from None
    finally:
        os.close(descriptor)
    if len(octets) != size:
        raise BadMessage("its file is cut")
    return octets


def _read_head(line: bytes) -> Mapping[str, Any]:
    """Return the line that says what a message is; BadMessage if it says nothing that it may."""
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        raise BadMessage("its first line is not JSON") from None
    if not isinstance(head, dict) or not isinstance(head.get("facts", {}), dict):
        raise BadMessage("its first line has another form")
    form = next((form for name, form in _FORMS.items() if name in head), {})
    if not form or head.keys() - form.keys() - _IN_EACH or not all(_is(head.get(name), form[name]) for name in form):
        raise BadMessage("it is no call, answer, error or note")
    size = head.get("bytes", 0)
    if not _is(size, int) or not 0 <= size <= MAX_BODY_BYTES:
        raise BadMessage(f"it comes with more than {MAX_BODY_BYTES} bytes")
    if "error" in head and head["error"] not in set(CallCode):
        raise BadMessage("its code is unknown")
    if "until" in head and not math.isfinite(head["until"]):
        raise BadMessage("it has no deadline")
    return head


#: What each form of a message has, by the name that tells it from the others; and what each may have besides.
_FORMS: Final[dict[str, dict[str, type]]] = {
    "call": {"call": str, "number": int, "until": float},
    "answer": {"answer": int},
    "error": {"error": str, "number": int, "text": str},
    "note": {"note": str},
}
_IN_EACH: Final = {"facts", "bytes"}


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)

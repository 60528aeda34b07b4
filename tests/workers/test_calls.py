"""The channel among the processes of a router: calls, answers, errors, and what ends it."""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from trouter.net.workers import CallCode, CallFailed
from trouter.workers.calls import (
    MAX_BODY_BYTES,
    MAX_INLINE_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_WAITING,
    Answer,
    BadMessage,
    Channel,
    Content,
    Take,
    socket_pair,
)

pytestmark = pytest.mark.trio

LIMIT_S = 30.0


async def echo(content: Content) -> Content:
    await trio.lowlevel.checkpoint()
    return content


async def refuse(_: Content) -> Content:
    await trio.lowlevel.checkpoint()
    raise CallFailed(CallCode.REFUSED, "not today")


async def err(_: Content) -> Content:
    await trio.lowlevel.checkpoint()
    raise ZeroDivisionError


async def wait(_: Content) -> Content:
    await trio.sleep_forever()


ANSWERS: dict[str, Answer] = {"echo": echo, "refuse": refuse, "err": err, "wait": wait}


@asynccontextmanager
async def joined(heard: list[Content] | None = None) -> AsyncIterator[tuple[Channel, Channel]]:
    """Run the two ends of a channel, of which the second one answers."""
    ours, theirs = socket_pair()
    caller, called = Channel(ours), Channel(theirs)
    heard = [] if heard is None else heard
    notes: dict[str, Take] = {"note": heard.append}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(caller.run, lambda _: None, {}))
        nursery.start_soon(partial(called.run, ANSWERS.get, notes, {"note"}))
        yield caller, called
        caller.close()
        called.close()


@pytest.mark.parametrize("size", [0, 1, MAX_INLINE_BYTES, MAX_INLINE_BYTES + 1, 5_000_000])
async def test_a_call_has_its_answer_whatever_its_size(size: int) -> None:
    async with joined() as (caller, _):
        content = Content({"a": ["1", None]}, os.urandom(size))
        assert await caller.call("echo", content, limit_s=LIMIT_S) == content


async def test_calls_at_the_same_time_have_their_own_answers() -> None:
    answers: dict[int, object] = {}
    async with joined() as (caller, _):

        async def ask(number: int) -> None:
            answers[number] = (await caller.call("echo", Content({"is": number}), limit_s=LIMIT_S)).facts["is"]

        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(ask, number)
    assert answers == {number: number for number in range(500)}


@pytest.mark.parametrize(
    ("what", "limit_s", "code"),
    [
        ("refuse", LIMIT_S, CallCode.REFUSED),
        ("err", LIMIT_S, CallCode.FAILED),
        ("unknown", LIMIT_S, CallCode.NOT_SERVING),
        ("wait", 0.01, CallCode.LATE),
    ],
)
async def test_a_call_without_an_answer_fails_with_a_code(what: str, limit_s: float, code: CallCode) -> None:
    async with joined() as (caller, _):
        with pytest.raises(CallFailed) as failed:
            await caller.call(what, limit_s=limit_s)
        assert failed.value.code is code
        assert (await caller.call("echo", Content({"a": 1}), limit_s=LIMIT_S)).facts == {"a": 1}  # the channel stands


@pytest.mark.parametrize("body", [MAX_BODY_BYTES + 1, 0])
async def test_what_is_too_long_is_not_sent(body: int) -> None:
    content = Content({} if body else {"a": "x" * MAX_MESSAGE_BYTES}, b"\0" * body)
    async with joined() as (caller, _):
        with pytest.raises(CallFailed, match="more than") as failed:
            await caller.call("echo", content, limit_s=LIMIT_S)
        assert failed.value.code is CallCode.REFUSED


async def test_calls_fail_when_the_other_end_closes() -> None:
    async with joined() as (caller, called), trio.open_nursery() as nursery:
        nursery.start_soon(_close_soon, called)
        with pytest.raises(CallFailed) as failed:
            await caller.call("wait", limit_s=LIMIT_S)
        assert failed.value.code is CallCode.NOT_SERVING


async def _close_soon(channel: Channel) -> None:
    await trio.testing.wait_all_tasks_blocked()
    channel.close()


@contextmanager
def descriptors_kept() -> Iterator[None]:
    """Check that the block leaves no descriptor open."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_notes_and_answers_bring_sockets() -> None:
    heard: list[Content] = []
    async with joined(heard) as (caller, _):
        one, other = socket.socketpair()
        assert caller.note("note", Content({"is": "socket"}, b"x" * (MAX_INLINE_BYTES + 1), (other.detach(),)))
        await caller.call("echo", limit_s=LIMIT_S)
    (note,) = heard
    with one, note.take_socket() as arrived:
        arrived.send(b"here")
        assert one.recv(4) == b"here"


async def test_a_note_is_sent_while_calls_are_on_their_way() -> None:
    heard: list[Content] = []
    async with joined(heard) as (caller, _), trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(partial(caller.call, "echo", limit_s=LIMIT_S))
        await trio.lowlevel.checkpoint()
        assert caller.note("note")
    assert len(heard) == 1


async def test_a_call_waits_for_room() -> None:
    ours, theirs = socket_pair()
    caller, called = Channel(ours), Channel(theirs)
    while caller.note("note", Content(body=b"x" * 10_000)):
        pass
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(partial(caller.call, "echo", limit_s=LIMIT_S))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(called.run, ANSWERS.get, {"note": lambda _: None})
        nursery.start_soon(caller.run, lambda _: None, {})
        await trio.testing.wait_all_tasks_blocked()
        assert (await caller.call("echo", Content({"a": 1}), limit_s=LIMIT_S)).facts == {"a": 1}
        caller.close()


async def test_a_note_finds_no_room_at_an_end_that_does_not_read() -> None:
    ours, theirs = socket_pair()
    with theirs:
        theirs.setblocking(False)
        channel = Channel(ours)
        with descriptors_kept():
            while channel.note("note", Content(descriptors=(os.dup(0),), body=b"x" * 10_000)):
                pass
            while True:  # what has arrived is no concern of this end
                try:
                    _, descriptors, _, _ = socket.recv_fds(theirs, 100, 1)
                except BlockingIOError:
                    break
                for descriptor in descriptors:
                    os.close(descriptor)
        channel.close()


async def test_a_call_whose_time_is_over_is_not_answered() -> None:
    asked: list[Content] = []

    async def answer(content: Content) -> Content:
        asked.append(content)
        await trio.lowlevel.checkpoint()
        return content

    ours, theirs = socket_pair()
    with ours:
        for number, until in ((1, time.monotonic() - 1), (2, time.monotonic() + LIMIT_S)):
            ours.send(json.dumps({"call": "it", "number": number, "until": until}).encode())
        await _answer_all(theirs, answer)
        assert [json.loads(ours.recv(1000))] == [{"answer": 2}]
    assert len(asked) == 1


async def _answer_all(sock: socket.socket, answer: Answer) -> None:
    """Answer what has come on a socket."""
    channel = Channel(sock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run, {"it": answer}.get, {})
        await trio.testing.wait_all_tasks_blocked()
        channel.close()


def message(**head: object) -> bytes:
    """Return a message without bytes."""
    return json.dumps(head).encode() + b"\n"


CALL = {"call": "echo", "number": 1, "until": 1e9}
#: Bytes that are no message, by what is wrong with them, and how it is said.
BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "its first line is not JSON"),
    "no UTF-8": (b"\xff\xfe\n", "its first line is not JSON"),
    "JSON of another form": (b"[1]", "its first line has another form"),
    "a deep list": (b"[" * 60_000, "its first line is not JSON"),
    "no kind of message": (message(number=1), "no call, answer"),
    "a note that is an answer": (message(note=[], answer=1), "no call, answer"),
    "a call that is an answer": (message(call=[], answer=1), "no call, answer"),
    "an answer that is an error": (message(error="late", number=1, text="", answer=[]), "no call, answer"),
    "a note with a code": (message(note="number", error=[]), "no call, answer"),
    "a note with a deadline": (message(note="number", until="soon"), "no call, answer"),
    "a call without a number": (message(call="echo", until=1.0), "no call, answer"),
    "a call with another number": (message(**{**CALL, "number": "1"}), "no call, answer"),
    "a call whose number is a truth value": (message(**{**CALL, "number": True}), "no call, answer"),
    "a call without a deadline": (message(call="echo", number=1), "no call, answer"),
    "a call with no such deadline": (message(**{**CALL, "until": float("nan")}), "no deadline"),
    "an unknown note": (message(note="something"), "nobody takes"),
    "an error with an unknown code": (message(error="so", number=1, text=""), "its code is unknown"),
    "facts of another form": (message(**CALL, facts=[]), "its first line has another form"),
    "a note with the wrong facts": (message(note="number", facts={"number": "none"}), "not those of 'number'"),
    "a cut body": (message(**CALL, bytes=9) + b"12345678", "it is cut"),
    "more than is said": (message(**CALL) + b"1", "it is cut"),
    "bytes without a file": (message(**CALL, bytes=MAX_INLINE_BYTES + 1), "lacks the file"),
    "a body of minus one": (message(**CALL, bytes=-1), "it comes with more"),
    "too large a body": (message(**CALL, bytes=MAX_BODY_BYTES + 1), "it comes with more"),
    "a message that is cut by the reader": (message(**CALL, facts={"a": "x" * MAX_MESSAGE_BYTES}), "it has more than"),
}


def read_number(content: Content) -> None:
    int(content.facts["number"])


@pytest.mark.parametrize("kind", BAD)
async def test_what_is_no_message_ends_the_channel_and_nothing_else(kind: str) -> None:
    octets, why = BAD[kind]
    with descriptors_kept():
        ours, theirs = socket_pair()
        with ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MAX_MESSAGE_BYTES)
            socket.send_fds(ours, [octets], [])
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match=why):
                await Channel(theirs).run(ANSWERS.get, {"number": read_number})
            assert ours.recv(1) == b""


@pytest.mark.parametrize("size", [-1, 1])
async def test_a_file_of_another_size_ends_the_channel(size: int) -> None:
    with descriptors_kept():
        ours, theirs = socket_pair()
        file = os.memfd_create("file")
        os.truncate(file, MAX_INLINE_BYTES + 1 + size)
        with ours:
            socket.send_fds(ours, [message(**CALL, bytes=MAX_INLINE_BYTES + 1)], [file])
            os.close(file)
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match="another size"):
                await Channel(theirs).run(ANSWERS.get, {})


async def test_a_file_that_cannot_be_read_ends_the_channel() -> None:
    with descriptors_kept():
        ours, theirs = socket_pair()
        file = os.memfd_create("file")
        os.truncate(file, MAX_INLINE_BYTES + 1)
        unreadable = os.open(f"/proc/self/fd/{file}", os.O_WRONLY)
        with ours:
            socket.send_fds(ours, [message(**CALL, bytes=MAX_INLINE_BYTES + 1)], [unreadable])
            os.close(unreadable)
            os.close(file)
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match="cannot be read"):
                await Channel(theirs).run(ANSWERS.get, {})


#: Lines that begin a message, with values of any kind in the place of some, and names of other messages.
WORDS = st.sampled_from(["echo", "number", "late"])
VALUES: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.just([])
SPOILED = st.dictionaries(
    st.sampled_from(["call", "answer", "error", "note", "number", "until", "text", "facts", "bytes"]),
    VALUES | st.dictionaries(st.just("number"), VALUES),
)
WHOLE = st.sampled_from([CALL, {"answer": 1}, {"error": "late", "number": 1, "text": ""}, {"note": "number"}])
LINES = st.builds(lambda whole, spoiled: whole | spoiled, WHOLE, SPOILED)


@given(line=LINES)
async def test_whatever_a_line_says_ends_the_channel_and_nothing_else(line: dict[str, object]) -> None:
    ours, theirs = socket_pair()
    with ours:
        ours.send(message(**line))
        ours.shutdown(socket.SHUT_WR)
        with suppress(BadMessage):
            await Channel(theirs).run(ANSWERS.get, {"number": read_number})


@pytest.mark.parametrize("octets", [message(**CALL), message(note="number", facts={"number": 1})], ids=["call", "note"])
async def test_a_call_or_another_note_that_brings_descriptors_ends_the_channel(octets: bytes) -> None:
    with descriptors_kept():
        ours, theirs = socket_pair()
        with ours:
            socket.send_fds(ours, [octets], [0])
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match="brings descriptors"):
                await Channel(theirs).run(ANSWERS.get, {"number": read_number}, {"sockets"})


async def test_more_calls_than_may_wait_end_the_channel() -> None:
    ours, theirs = socket_pair()
    with ours:
        ours.setblocking(False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_call_without_end, ours)
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match="calls wait"):
                await Channel(theirs).run(ANSWERS.get, {})
            nursery.cancel_scope.cancel()


async def _call_without_end(sock: socket.socket) -> None:
    for number in range(2 * MAX_WAITING):
        await trio.lowlevel.wait_writable(sock)
        with suppress(OSError):  # the channel has ended
            sock.send(message(call="wait", number=number, until=time.monotonic() + LIMIT_S))


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """Let this process open no more files in the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_note_for_whose_descriptors_there_is_no_room_ends_the_channel() -> None:
    with descriptors_kept():
        ours, theirs = socket_pair()
        with ours:
            socket.send_fds(ours, [message(note="number", facts={"number": 1})], [0])
            with (
                no_descriptors_left(),
                trio.fail_after(LIMIT_S),
                pytest.raises(BadMessage, match="no descriptors"),
            ):
                await Channel(theirs).run(ANSWERS.get, {"number": read_number})


async def test_a_call_for_whose_file_there_is_no_room_fails_and_the_channel_stands() -> None:
    ours, theirs = socket_pair()
    file = os.memfd_create("file")
    os.truncate(file, MAX_INLINE_BYTES + 1)
    with ours:
        socket.send_fds(ours, [message(**CALL, bytes=MAX_INLINE_BYTES + 1)], [file])
        os.close(file)
        with no_descriptors_left():
            await _answer_all(theirs, echo)
        head = json.loads(ours.recv(1000))
        assert (head["error"], head["number"]) == (CallCode.BUSY, 1)


@pytest.mark.parametrize("kind", ["no JSON", "a cut body", "an unknown note", "a note with the wrong facts"])
async def test_descriptors_that_come_with_what_is_no_message_are_closed(kind: str) -> None:
    octets, why = BAD[kind]
    with descriptors_kept():
        ours, theirs = socket_pair()
        with ours:
            socket.send_fds(ours, [octets], [0, 0])
            with trio.fail_after(LIMIT_S), pytest.raises(BadMessage, match=why):
                await Channel(theirs).run(ANSWERS.get, {"number": read_number}, {"number"})

"""Calls between the workers of one router: a request and its answer, on a pair of sockets that the parent makes for it.

The sockets have no address, so no other process can call, and no client: what comes here comes from a worker.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio

from trouter._bugs import BUGS

#: Seconds after which an answer is not worked on any more; no caller waits longer.
MAX_ANSWERING_S: Final = 30.0
#: The longest request and answer, in bytes.
MAX_REQUEST_BYTES: Final = 1024 * 1024
MAX_ANSWER_BYTES: Final = 80 * 1024 * 1024
#: Calls of others that are answered at the same time; further ones wait.
AT_ONCE: Final = 32
#: What comes before an answer; a caller that gets less has no answer.
_ANSWERED: Final = b"+"
_PIECE_BYTES: Final = 65_536

Answer = Callable[[bytes], Awaitable[bytes]]


class CallFailed(OSError):
    """Another worker did not answer; the text says why."""


async def call(end: socket.socket, what: str, request: bytes, limit_s: float) -> bytes:
    """Return the answer to a request on one end of a pair, which is closed then; CallFailed.

    The answer must be there in full after ``limit_s`` seconds.
    """
    answer = bytearray()
    with trio.move_on_after(limit_s):
        async with trio.SocketStream(trio.socket.from_stdlib_socket(end)) as stream:
            try:
                await stream.send_all(what.encode() + b"\n" + request)
                await stream.send_eof()
                async for piece in stream:
                    answer += piece
                    if len(answer) > MAX_ANSWER_BYTES:
                        raise CallFailed(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
            except trio.BrokenResourceError as error:
                raise CallFailed("it has ended") from error
        if not answer.startswith(_ANSWERED):
            raise CallFailed("it has ended, or its log has the error")
        return bytes(memoryview(answer)[1:])
    raise CallFailed(f"it did not answer within {limit_s:g} s")


async def answer_calls(channel: socket.socket, answers: Mapping[str, Answer]) -> None:
    """Answer the calls whose sockets come on ``channel``, each by the function for what it asks; until cancelled."""
    limiter = trio.CapacityLimiter(AT_ONCE)
    async with trio.open_nursery() as nursery:
        while True:
            await trio.lowlevel.wait_readable(channel)
            try:
                octets, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
            except BlockingIOError:
                continue
            if not octets:  # the parent has ended: this process is about to
                return
            for each in descriptors:
                nursery.start_soon(_answer, socket.socket(fileno=each), answers, limiter)


async def _answer(end: socket.socket, answers: Mapping[str, Answer], limiter: trio.CapacityLimiter) -> None:
    end.setblocking(False)
    with trio.move_on_after(MAX_ANSWERING_S):
        async with limiter, trio.SocketStream(trio.socket.from_stdlib_socket(end)) as stream:
            try:
                what, ends, request = (await _read_request(stream)).partition(b"\n")
                if not ends:  # the caller has ended before it asked
                    return
                given = await answers[what.decode()](request)
                for piece in (_ANSWERED, given):
                    await stream.send_all(piece)
            except trio.BrokenResourceError:  # the caller does not wait any more
                return
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end the worker; the caller gets no answer
                BUGS.report("internal error in a call of another worker", error)


async def _read_request(stream: trio.SocketStream) -> bytes:
    request = bytearray()
    async for piece in stream:
        request += piece
        if len(request) > MAX_REQUEST_BYTES:
            raise ValueError(f"a request of more than {MAX_REQUEST_BYTES} bytes")
    return bytes(request)

"""Makes the messages of a tool from arguments, files, and standard input as a whole or line by line."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import trio

from trouter.client import BodyKind, Header, Message, Properties

from .failures import UsageError
from .messages import scalar, with_json
from .options import seconds

#: Files up to this size are read whole, and several are sent at a time.
SMALL_FILE_BYTES: Final = 262_144
#: Longer standard input is streamed, as a data section for each piece.
WHOLE_STDIN_BYTES: Final = 4 * 1024 * 1024
#: The longest line of standard input.
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
PIECE_BYTES: Final = 65_536
STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Streamed:
    """A message whose body is read while it is sent, from a file or standard input."""

    head: Message
    path: str
    #: Bytes of the body; None if unknown.
    size: int | None
    #: The part of standard input that has been read.
    begun: bytes = b""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body, piece by piece; OSError."""
        if self.path == STDIN:
            yield self.begun
            while piece := await _read_stdin():
                yield piece
            return
        async with await trio.open_file(self.path, "rb") as file:
            left = self.size
            while piece := await file.read(PIECE_BYTES if left is None else min(PIECE_BYTES, left)):
                left = None if left is None else left - len(piece)
                yield piece


Outgoing = Message | Streamed


def add_body_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the body and the properties of messages."""
    parser.add_argument("bodies", nargs="*", default=(), metavar="BODY", help="text; without any: standard input")
    group = parser.add_argument_group("bodies")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--file", action="append", default=[], metavar="FILE", help="a body of any size; may be repeated; - is stdin"
    )
    form.add_argument("--lines", action="store_true", help="each line of standard input is the body of a message")
    form.add_argument("--json", action="store_true", help="each line of standard input is a whole message as JSON")
    group = parser.add_argument_group("messages")
    group.add_argument("--subject", metavar="TEXT", help="the subject")
    group.add_argument("--content-type", metavar="TYPE", help="the MIME type of the body")
    group.add_argument(
        "--property",
        action="append",
        type=_property,
        default=[],
        metavar="NAME=VALUE",
        help="an application property: a number, true, false, null, else text; may be repeated",
    )
    group.add_argument("--ttl", type=seconds, metavar="SECS", help="time to live of the message; default none")
    group.add_argument("--priority", type=int, default=4, choices=range(10), metavar="0-9", help="default %(default)s")
    group.add_argument("--durable", action="store_true", help="ask brokers to keep the message on disk")


def _property(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError("it is written NAME=VALUE")
    return name, scalar(value)


def template(arguments: argparse.Namespace) -> Message:
    """Return the message that the options describe, without a body."""
    return Message(
        kind=BodyKind.ABSENT,
        header=Header(
            durable=arguments.durable,
            priority=arguments.priority,
            ttl=None if arguments.ttl is None else round(arguments.ttl * 1000),
        ),
        properties=Properties(subject=arguments.subject, content_type=arguments.content_type),
        application_properties=dict(arguments.property),
    )


class Bodies:
    """The messages of a command line, in their order; UsageError if its options contradict each other."""

    def __init__(self, arguments: argparse.Namespace, count: int | None = None) -> None:
        self._words: list[str] = list(arguments.bodies)
        self._files: list[str] = arguments.file
        self._lines: bool = arguments.lines or arguments.json
        self._json: bool = arguments.json
        self._template = template(arguments)
        self._count = count
        if self._words and (self._files or self._lines):
            raise UsageError("give bodies as words, or use one of --file, --lines and --json")
        if not (self._words or self._files or self._lines):
            self._files = [STDIN]
        if STDIN in self._files and (len(self._files) > 1 or (count or 1) > 1):
            raise UsageError("standard input is one body, which can be read once: use --lines, or give a file")

    @property
    def total(self) -> tuple[int | None, str]:
        """Return how much is sent, None if unknown, and the unit: bytes of files, else messages."""
        if self._lines:
            return self._count, " messages"
        if not self._files:
            return self._count or len(self._words), " messages"
        sizes = [_size(path) for path in self._repeated(self._files)]
        return (None if None in sizes else sum(size or 0 for size in sizes)), "B"

    async def messages(self) -> AsyncGenerator[Outgoing, None]:
        """Yield each message; OSError, ValueError."""
        if self._lines:
            async with aclosing(_read_lines(self._count)) as lines:
                number = 0
                async for line in lines:
                    number += 1
                    yield self._line(line, number)
        elif self._files:
            for path in self._repeated(self._files):
                yield await self._file(path)
        else:
            for word in self._repeated(self._words):
                yield replace(self._template, body=word, kind=BodyKind.VALUE)

    def _repeated(self, given: list[str]) -> Iterator[str]:
        return iter(given) if self._count is None else islice(cycle(given), self._count)

    def _line(self, line: bytes, number: int) -> Message:
        if self._json:
            try:
                return with_json(self._template, line)
            except ValueError as wrong:
                raise ValueError(f"line {number}: {wrong}") from None
        try:
            return replace(self._template, body=line.decode(), kind=BodyKind.VALUE)
        except UnicodeDecodeError:
            return replace(self._template, body=line, kind=BodyKind.DATA)

    async def _file(self, path: str) -> Outgoing:
        size = _size(path)
        if path == STDIN:
            return await self._stdin()
        if size is None or size > SMALL_FILE_BYTES:
            return Streamed(self._template, path, size)
        return replace(self._template, body=await trio.Path(path).read_bytes(), kind=BodyKind.DATA)

    async def _stdin(self) -> Outgoing:
        """Return standard input as one data section, which all receivers understand; streamed if it is long."""
        begun = bytearray()
        while piece := await _read_stdin():
            begun += piece
            if len(begun) > WHOLE_STDIN_BYTES:
                return Streamed(self._template, STDIN, None, bytes(begun))
        return replace(self._template, body=bytes(begun), kind=BodyKind.DATA)


def _size(path: str) -> int | None:
    """Return the size of a regular file in bytes, None for anything else; OSError."""
    if path == STDIN:
        return None
    found = Path(path).stat()
    return found.st_size if stat.S_ISREG(found.st_mode) else None


async def _read_stdin() -> bytes:
    """Return the next piece of standard input, b"" at its end; after a cancellation a thread goes on waiting."""
    return await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), PIECE_BYTES, abandon_on_cancel=True)


async def _read_lines(count: int | None) -> AsyncGenerator[bytes, None]:
    """Yield lines without their ends, at most `count`; ValueError for one that is too long."""
    held = bytearray()
    left = -1 if count is None else count
    while left and (piece := await _read_stdin()):
        held += piece
        if b"\n" in piece:
            *lines, rest = bytes(held).split(b"\n")
            held = bytearray(rest)
            for line in lines[: left if left > 0 else None]:
                left -= 1
                yield line.removesuffix(b"\r")
        if len(held) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES} bytes")
    if held and left:
        yield bytes(held)

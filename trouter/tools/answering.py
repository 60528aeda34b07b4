"""Makes the answers of a responder: the request's own body, a text with places to fill, or a command's output."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from trouter.client import BodyKind, Message

from .messages import body_bytes
from .receiving import MAX_WHOLE_BYTES

#: The places of a template, beside `{property.NAME}`.
PLACES: Final = ("body", "subject", "message-id", "number")
_PROPERTY: Final = "property."
_PLACE: Final = re.compile(r"\{\{|\{([\w.-]+)\}")


class NoAnswer(Exception):
    """The request has no answer; the text is for the one who asked."""


#: Makes the answer of a request and its number; NoAnswer.
Answering = Callable[[Message, int], Awaitable[Message]]


async def echo(request: Message, _: int) -> Message:
    """Return the body of the request."""
    return Message(request.body, kind=request.kind)


def check_template(text: str) -> str:
    """Return the text; ValueError for a place that no request can fill."""
    for place in _PLACE.findall(text):
        if place and place not in PLACES and not place.startswith(_PROPERTY):
            known = ", ".join(f"{{{name}}}" for name in (*PLACES, f"{_PROPERTY}NAME"))
            raise ValueError(f"there is no place {{{place}}}; there are {known}, and {{{{ for a brace")
    return text


@dataclass(frozen=True, slots=True)
class Template:
    """A text of which each `{place}` is filled from the request."""

    text: str

    async def __call__(self, request: Message, number: int) -> Message:
        """Return the text as an answer."""
        properties = request.properties

        def value(found: re.Match[str]) -> str:
            match found[1]:
                case None:
                    return "{"
                case "body":
                    return body_bytes(request).decode(errors="backslashreplace")
                case "subject":
                    return properties.subject or ""
                case "message-id":
                    return str(properties.message_id or "")
                case "number":
                    return str(number)
            return str(request.application_properties.get(found[1].removeprefix(_PROPERTY), ""))

        return Message(_PLACE.sub(value, self.text), kind=BodyKind.VALUE)


@dataclass(frozen=True, slots=True)
class Command:
    """A program that gets the body of a request on its standard input; its standard output is the answer."""

    words: Sequence[str]
    limit_s: float

    async def __call__(self, request: Message, number: int) -> Message:
        """Return the output of the program; NoAnswer if it fails, takes too long or says too much."""
        properties = request.properties
        told = {
            "TROUTER_SUBJECT": properties.subject or "",
            "TROUTER_MESSAGE_ID": str(properties.message_id or ""),
            "TROUTER_NUMBER": str(number),
        }
        environment = {**os.environ, **{name: text.replace("\0", "") for name, text in told.items()}}
        with trio.move_on_after(self.limit_s):
            return Message(await self._output(body_bytes(request), environment), kind=BodyKind.DATA)
        raise NoAnswer(f"the command took longer than {self.limit_s:g} s")

    async def _output(self, given: bytes, environment: dict[str, str]) -> bytes:
        """Return what the program printed; NoAnswer. The program does not outlive the call."""
        pipe = subprocess.PIPE
        try:
            process = await trio.lowlevel.open_process(list(self.words), stdin=pipe, stdout=pipe, env=environment)
        except OSError as failure:
            raise NoAnswer(f"the command does not start: {failure.strerror}") from failure
        output = bytearray()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, process, given)
                if process.stdout is not None:
                    async for piece in process.stdout:
                        output += piece
                        if len(output) > MAX_WHOLE_BYTES:
                            break
                nursery.cancel_scope.cancel()
            if len(output) > MAX_WHOLE_BYTES:
                raise NoAnswer(f"the command printed more than {MAX_WHOLE_BYTES} bytes")
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
        if status:
            raise NoAnswer(f"the command ended with status {status}")
        return bytes(output)


async def _feed(process: trio.Process, given: bytes) -> None:
    """Write the standard input of a program, which may not want it."""
    if process.stdin is not None:
        async with process.stdin:
            try:
                await process.stdin.send_all(given)
            except trio.BrokenResourceError:
                return

"""Recorded conversations of Qpid Dispatch's unmodified tools with that router, played to trouter.

``data/tools.json`` has one conversation for each command: its ``steps`` are the tool's bytes, each with the count of
attaches and of messages that the tool had received before (``after``); its ``answers`` are the messages that it
received. The texts that describe the schema are left out.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.recorded.recording import Frame, take_frame
from tests.routers import DEADLINE_S

_DATA: Final = Path(__file__).parent / "data" / "tools.json"
#: The beginning of a section of properties in a short list; its size is the next byte.
_PROPERTIES: Final = b"\x00\x53\x73\xc0"
#: The configuration of the recorded router.
CONFIGURATION: Final = """
router { mode: interior, id: T, workerThreads: 2 }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }
linkRoute { prefix: lr, direction: in, containerId: broker }
linkRoute { prefix: lr, direction: out, containerId: broker }
autoLink { address: queue, direction: in, containerId: broker }
"""


@dataclass(frozen=True, slots=True)
class Step:
    """Bytes that the tool sent after it had received this count of attaches and messages."""

    attaches: int
    messages: int
    octets: bytes


@dataclass(frozen=True, slots=True)
class Conversation:
    """One run of a tool."""

    command: str
    #: The address of the recorded answers.
    reply_to: str
    steps: Sequence[Step]
    #: As in the file: ``octets``, or ``head`` and ``schema``.
    answers: Sequence[dict[str, Any]]


def conversations() -> list[Conversation]:
    """Return all conversations, in the order in which they were recorded."""
    return [
        Conversation(
            each["command"],
            each["reply_to"],
            [Step(step["after"][0], step["after"][1], bytes.fromhex(step["octets"])) for step in each["steps"]],
            each["answers"],
        )
        for each in json.loads(_DATA.read_text(encoding="utf-8"))
    ]


def play(said: Conversation, port: int) -> tuple[str, list[bytes]]:
    """Send the tool's bytes to the router at ``port``; return the reply-to address and the messages received."""
    heard = bytearray()
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as peer:
        for step in said.steps:
            while True:
                attaches, messages = _attaches_and_messages(bytes(heard))
                if len(attaches) >= step.attaches and len(messages) >= step.messages:
                    break
                _hear(peer, heard)
            octets = step.octets
            reply_to = _reply_to(attaches)
            if reply_to:
                octets = _addressed(octets, said.reply_to, reply_to)
            peer.sendall(octets)
        while True:  # qdmanage disconnects without a close
            attaches, messages = _attaches_and_messages(bytes(heard))
            if len(messages) >= len(said.answers):
                return _reply_to(attaches), messages
            _hear(peer, heard)


def _hear(peer: socket.socket, heard: bytearray) -> None:
    chunk = peer.recv(65536)
    assert chunk, "the router closed before it had answered"
    heard += chunk


def _attaches_and_messages(octets: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the attaches, and the complete messages."""
    attaches, messages, begun = [], [], b""
    for frame in _frames(octets):
        if frame.kind == "attach":
            attaches.append(frame.octets)
        elif frame.kind == "transfer":
            begun += frame.payload
            if not frame.fields.get("more"):
                messages.append(begun)
                begun = b""
    return attaches, messages


def _frames(octets: bytes) -> Iterator[Frame]:
    """Yield the complete frames of a stream."""
    gathered = bytearray(octets)
    while (frame := take_frame(gathered)) is not None:
        yield frame


def _reply_to(attaches: Sequence[bytes]) -> str:
    """Return the address that the router gave the tool's receiver; empty if it has given none."""
    for attach in attaches:
        at = attach.find(b"amqp:/_topo/")
        if at > 0:
            return attach[at : at + attach[at - 1]].decode()
    return ""


def _addressed(octets: bytes, old: str, new: str) -> bytes:
    """Return the frames with another reply-to, and the sizes that contain it corrected."""
    return b"".join(_readdressed(frame.octets, old.encode(), new.encode()) for frame in _frames(octets))


def _readdressed(frame: bytes, old: bytes, new: bytes) -> bytes:
    at = frame.find(old)
    if at < 0:
        return frame
    more = len(new) - len(old)
    properties = frame.rindex(_PROPERTIES, 0, at) + len(_PROPERTIES)
    changed = bytearray(frame)
    changed[properties] += more
    changed[at - 1] += more
    changed[0:4] = (len(frame) + more).to_bytes(4, "big")
    changed[at : at + len(old)] = new
    return bytes(changed)

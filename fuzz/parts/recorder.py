"""Recorded talks of real clients as seeds: `python -m fuzz.parts.recorder proton rhea azure` runs each at a router.

An argument may also be a `.jsonl` file of recorded reads (`connection`, `from`, `hex`). The recorder cuts each talk
into frames, messages and sections, and stores each as a seed of the targets that read it; the names begin with
`captured-`.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fuzz.parts.encoder import write
from tests.interop.agents import CLIENTS, agent
from tests.routers import running
from trouter.testing.fuzz.structure import is_frame, pieces_of
from trouter.wire.codec import decode, encode
from trouter.wire.errors import DecodeError
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Disposition, Flow, Performative, Transfer, decode_performative
from trouter.wire.sections import THROUGH_PROPERTIES, InvalidMessage, MessageScan
from trouter.wire.types import Described

CONFIGURATION: Final = """\
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
"""
MAX_STREAM_BYTES: Final = 3000
MAX_PIECE_BYTES: Final = 1200
#: Maximum count of seeds of one source for one target.
MOST: Final = 40
REPLY_TO: Final = "REPLY-TO"
#: Per connection: the bytes from the client to the router, and those from the router to the client.
Streams = dict[int, tuple[bytearray, bytearray]]


class Writer:
    """Write seeds, up to a maximum for each target."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def put(self, target: str, data: bytes, max_bytes: int = MAX_PIECE_BYTES) -> None:
        if self.counts[target] < MOST and len(data) <= max_bytes:
            self.counts[target] += 1
            write(target, data, "captured")

    def stream(self, data: bytes, to_router: bool) -> None:
        """Write one direction of a connection as seeds."""
        cut = data[:MAX_STREAM_BYTES]
        self.put("engine", bytes((3 if to_router else 2, 0)) + cut, MAX_STREAM_BYTES + 2)
        self.put("twins", bytes((3 if to_router else 2, 0)) + cut, MAX_STREAM_BYTES + 2)
        self.put("framing", b"\3" + cut, MAX_STREAM_BYTES + 1)
        self.put("trace", b"\0" + cut, MAX_STREAM_BYTES + 1)
        self.put("sasl", b"\1\0" + cut, MAX_STREAM_BYTES + 2)
        start = data.find(AMQP_HEADER)
        if to_router and start >= 0:
            self.put("routing", b"\0" + data[start:][:MAX_STREAM_BYTES], MAX_STREAM_BYTES + 1)
        for piece in pieces_of(data):
            if is_frame(piece) and piece[8:]:
                self.frame(piece[8:])

    def frame(self, body: bytes) -> None:
        try:
            performative, behind = decode_performative(body, 0, len(body))
        except DecodeError:
            return
        self.put("performatives", body[:behind])
        if isinstance(performative, Flow | Transfer | Disposition):
            self.put("transfers", b"\0" + body)
        if isinstance(performative, Transfer) and behind < len(body):
            self.message(performative, body[behind:])

    def message(self, transfer: Performative, message: bytes) -> None:
        for target, head in (("sections", b"\3"), ("order", b"\3"), ("message", b""), ("decoding", b"")):
            self.put(target, head + message)
        scan = MessageScan()
        try:
            scan.scan_sections(message, 0, len(message), THROUGH_PROPERTIES, False)
        except InvalidMessage:
            return
        if scan.annotations_start >= 0:
            section = message[scan.annotations_start : scan.annotations_end]
            self.put("annotations", section)
            self.put("rewriting", b"\1" + section)
        if b"qdhello" in message[:400] or b"qdrouter" in message[:400]:
            self.put("routers", message)
        if b"operation" in message:
            self.put("management", asked(message))


def asked(message: bytes) -> bytes:
    """Return a request whose reply-to is the stand-in that the target `management` replaces."""
    sections: list[Any] = []
    offset = 0
    while offset < len(message):
        section, offset = decode(message, offset, len(message))
        fields = section.value if isinstance(section, Described) and section.descriptor == 0x73 else None
        if isinstance(fields, list) and len(fields) > 4:
            fields[4] = REPLY_TO
        sections.append(section)
    return b"".join(map(encode, sections))


@contextmanager
def listening_in(port: int, streams: Streams) -> Iterator[int]:
    """Yield a port that relays to ``port``, and append the bytes of each connection to ``streams``."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            number = 0
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                router = socket.create_connection(("127.0.0.1", port))
                kept = streams.setdefault(number, (bytearray(), bytearray()))
                number += 1
                for here, there, buffer in ((client, router, kept[0]), (router, client, kept[1])):
                    threading.Thread(target=carry, args=(here, there, buffer), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def carry(here: socket.socket, there: socket.socket, kept: bytearray) -> None:
    try:
        while data := here.recv(65536):
            kept += data
            there.sendall(data)
        there.shutdown(socket.SHUT_WR)
    except OSError:
        there.close()


def record(client: str) -> Streams:
    """Record a client that sends and receives with several sizes, settlement modes and outcomes."""
    streams: Streams = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(CONFIGURATION, Path(folder)) as router,
        listening_in(router.port, streams) as port,
    ):
        for size, settle, answers in (
            (10, "unsettled", ["accepted", "released", "rejected"]),
            (1500, "settled", ["accepted"]),
        ):
            with agent(client, "receive", port, count=3, answers=answers, address="q") as receiver:
                receiver.wait_for("ready")
                with agent(client, "send", port, count=3, size=size, settle=settle, address="q") as sender:
                    sender.wait_for("ready")
                    receiver.result()
                    sender.result()
    return streams


def recorded(path: Path) -> Streams:
    """Return the streams of a file of recorded reads."""
    streams: Streams = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kept = streams.setdefault(row["connection"], (bytearray(), bytearray()))
        kept[row["from"] != "dialler"].extend(bytes.fromhex(row["hex"]))
    return streams


def main() -> None:
    for name in sys.argv[1:]:
        streams = record(name) if name in CLIENTS else recorded(Path(name))
        writer = Writer()
        for to_router, to_client in streams.values():
            writer.stream(bytes(to_router), True)
            writer.stream(bytes(to_client), False)
        print(name, len(streams), "connections,", sum(writer.counts.values()), "seeds")


if __name__ == "__main__":
    main()

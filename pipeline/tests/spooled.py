"""Spools with messages in them, and python-qpid-proton to send more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proton import Delivery, Message
from proton.utils import BlockingConnection, SendException

from trouter.client import Message as ClientMessage
from trouter_pipeline.spool import Spool

#: Outcomes after which a message is sent again; a receiver that detaches may cause modified, too.
NOT_TAKEN = [Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED]
INGEST_US = 1_795_000_000_000_000


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Return encoded messages whose body is their number."""
    return [ClientMessage(b"%d" % number).encode() for number in range(first, first + count)]


def fill(
    folder: Path,
    messages: Iterable[bytes],
    *,
    shard: int = 0,
    segment_bytes: int = 16 << 20,
    ingest_us: int = INGEST_US,
) -> str:
    """Append to the spool in a folder, or create one; return its uuid."""
    with Spool.open(folder, address="orders", shard=shard, segment_bytes=segment_bytes) as spool:
        for message in messages:
            spool.append(message, tag=b"tag", ingest_us=ingest_us)
            if len(message) > 1000:
                spool.sync()
        spool.sync()
        return spool.uuid


def send(url: str, address: str, count: int, first: int = 0) -> None:
    """Send numbered messages from python-qpid-proton; each is accepted when this returns.

    A released message, as after the detach of a receiver, is sent again.
    """
    connection = BlockingConnection(url, timeout=60)
    sender = connection.create_sender(address)
    for number in range(first, first + count):
        while True:
            try:
                sender.send(Message(id=f"m{number}", body=b"%d" % number, inferred=True), error_states=NOT_TAKEN)
                break
            except SendException:
                continue
    connection.close()

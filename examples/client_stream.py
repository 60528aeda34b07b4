"""Send a file of any size as one message, a piece at a time: `python examples/client_stream.py FILE COPY [URL]`."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from trouter.client import ACCEPTED, BodyKind, Message, Properties, Receiver, connect

FILE, COPY = Path(sys.argv[1]), Path(sys.argv[2])
URL = sys.argv[3] if len(sys.argv) > 3 else "amqp://127.0.0.1:5672"
SIZE = FILE.stat().st_size


async def pieces() -> AsyncIterator[bytes]:
    async with await trio.open_file(FILE, "rb") as file:
        while piece := await file.read(65536):
            yield piece


async def store(receiver: Receiver) -> None:
    """Store the message as it arrives; a slow disk slows down the sender."""
    delivery = await receiver.receive()
    head = await delivery.head()
    async with await trio.open_file(COPY, "wb") as file:
        async for piece in delivery.stream():
            await file.write(piece)
    await delivery.accept()
    print(f"{head.properties.subject} is stored")


async def main() -> None:
    async with (
        connect(URL) as connection,
        connection.open_receiver("files", stream=True) as receiver,
        connection.open_sender("files") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(store, receiver)
        head = Message(kind=BodyKind.ABSENT, properties=Properties(subject=FILE.name))
        outcome = await sender.send_stream(pieces(), head=head, size=SIZE)
        print("arrived" if outcome == ACCEPTED else f"not taken: {outcome}")


trio.run(main)

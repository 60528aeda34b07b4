"""Send greetings through a running router with trouter's own client: `python examples/client_hello.py [URL]`."""

import sys

import trio

from trouter.client import Message, Receiver, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"
GREETINGS = ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]


async def listen(receiver: Receiver) -> None:
    for _ in GREETINGS:
        delivery = await receiver.receive()
        print(delivery.message.body)
        await delivery.accept()


async def main() -> None:
    async with (
        connect(URL) as connection,
        connection.open_receiver("greetings") as receiver,
        connection.open_sender("greetings") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(listen, receiver)
        for text in GREETINGS:
            print(await sender.send(Message(text)))


trio.run(main)

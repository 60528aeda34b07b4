"""Send greetings from one router's client to another's: `python examples/across.py [FROM_URL [TO_URL]]`."""

import sys

import trio

from trouter.client import Message, Receiver, connect

FROM = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5673"
TO = sys.argv[2] if len(sys.argv) > 2 else "amqp://127.0.0.1:5672"
GREETINGS = ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]


async def listen(receiver: Receiver) -> None:
    for _ in GREETINGS:
        delivery = await receiver.receive()
        print(delivery.message.body)
        await delivery.accept()


async def main() -> None:
    async with (
        connect(TO) as there,
        there.open_receiver("greetings") as receiver,
        connect(FROM) as here,
        here.open_sender("greetings") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(listen, receiver)
        for text in GREETINGS:
            print(await sender.send(Message(text)))


trio.run(main)

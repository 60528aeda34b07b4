"""Send news to several readers: each gets each message.

trouter run -c examples/multicast.conf
python examples/multicast.py [URL]
"""

import sys

import trio

from trouter.client import Connection, Message, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"
NEWS = ["rain", "sun"]


async def read(connection: Connection, name: str, task_status: trio.TaskStatus[None]) -> None:
    async with connection.open_receiver("news/weather") as receiver:
        task_status.started()
        for _ in NEWS:
            delivery = await receiver.receive()
            print(f"{name} reads: {delivery.message.body}")
            await delivery.accept()


async def main() -> None:
    async with connect(URL) as connection, trio.open_nursery() as nursery:
        for name in ("Ann", "Bob", "Carol"):
            await nursery.start(read, connection, name)
        async with connection.open_sender("news/weather") as sender:
            for text in NEWS:
                await sender.send(Message(text))


trio.run(main)

"""Move a service from one router to another; its clients keep the address, and their requests continue.

trouter run -c examples/east.conf
trouter run -c examples/west.conf
python examples/mobile_service.py [EAST_URL [WEST_URL]]
"""

import sys

import trio

from trouter.client import ACCEPTED, Connection, Message, Properties, Receiver, Sender, connect

EAST = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"
WEST = sys.argv[2] if len(sys.argv) > 2 else "amqp://127.0.0.1:5673"


async def serve(connection: Connection, place: str) -> None:
    """Answer one request with the name of the place."""
    async with connection.open_receiver("clock") as requests, connection.open_sender() as replies:
        request = await requests.receive()
        await request.accept()
        asked = request.message.properties
        await replies.send(Message(f"{request.message.body} in the {place}", Properties(to=asked.reply_to)))


async def ask(sender: Sender, answers: Receiver, text: str) -> None:
    """Send a request until it is accepted: the router releases a message that arrives after the service has moved."""
    request = Message(text, Properties(reply_to=answers.address))
    while True:
        if await sender.send(request) == ACCEPTED:
            break
        await trio.sleep(0.05)
    answer = await answers.receive()
    print(answer.message.body)
    await answer.accept()


async def main() -> None:
    async with (
        connect(EAST) as east,
        connect(WEST) as west,
        west.open_receiver(dynamic=True) as answers,
        west.open_sender("clock") as sender,
    ):
        for connection, place in ((east, "east"), (west, "west"), (east, "east")):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve, connection, place)
                nursery.start_soon(ask, sender, answers, "noon")


trio.run(main)

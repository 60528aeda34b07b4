"""Send requests to a service that doubles numbers, and receive its responses.

trouter run
python examples/client_request.py [URL]
"""

import sys

import trio

from trouter.client import Connection, Message, Properties, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"


async def serve(connection: Connection) -> None:
    """Answer each request at its reply-to address."""
    async with connection.open_receiver("double") as requests, connection.open_sender() as replies:
        async for request in requests:
            asked = request.message.properties
            await replies.send(
                Message(
                    2 * request.message.body,
                    properties=Properties(to=asked.reply_to, correlation_id=asked.message_id),
                ),
                settled=True,
            )
            await request.accept()


async def ask(connection: Connection) -> None:
    """Send all requests at once; match the answers by their correlation-ids."""
    async with connection.open_receiver(dynamic=True) as inbox, connection.open_sender("double") as sender:
        for number in range(5):
            await sender.submit(Message(number, properties=Properties(message_id=number, reply_to=inbox.address)))
        for _ in range(5):
            answer = (await inbox.receive()).message
            print(f"twice {answer.properties.correlation_id} is {answer.body}")


async def main() -> None:
    async with connect(URL) as connection, trio.open_nursery() as nursery:
        nursery.start_soon(serve, connection)
        await ask(connection)
        nursery.cancel_scope.cancel()


trio.run(main)

"""Use the same address in two tenants; neither gets a message of the other.

trouter run -c examples/tenants.conf
python examples/tenants.py [URL]
"""

import sys

import trio

from trouter.client import Message, Sender, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"


async def send(sender: Sender, text: str) -> None:
    await sender.send(Message(text))


async def main() -> None:
    async with (
        connect(URL, hostname="acme.example") as acme,
        connect(URL, hostname="globex.example") as globex,
        acme.open_receiver("orders") as acme_orders,
        globex.open_receiver("orders") as globex_orders,
        acme.open_sender("orders") as acme_sender,
        globex.open_sender("orders") as globex_sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(send, acme_sender, "anvils")
        nursery.start_soon(send, globex_sender, "globes")
        for name, receiver in (("acme", acme_orders), ("globex", globex_orders)):
            delivery = await receiver.receive()
            print(f"{name} has an order of {delivery.message.body}")
            await delivery.accept()


trio.run(main)

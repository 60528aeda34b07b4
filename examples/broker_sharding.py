"""Share a queue between two brokers: each stores a part of the jobs, and the consumer gets all of them.

trouter run -c examples/broker_sharding.conf
python examples/broker_sharding.py [URL [BROKERS_URL]]
"""

import sys
from collections import deque
from threading import Event, Thread
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"
BROKERS_URL = sys.argv[2] if len(sys.argv) > 2 else "amqp://127.0.0.1:5674"
JOBS = 20


class Broker(MessagingHandler):
    """A minimal broker: it stores each message until a receiver has credit for it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Message] = deque()
        self.kept = 0
        self.links: list[Any] = []
        self.attached = Event()

    def on_start(self, event: Any) -> None:
        event.container.connect(BROKERS_URL, allowed_mechs="ANONYMOUS")

    def on_link_opening(self, event: Any) -> None:
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)
        self.links.append(event.link)
        if len(self.links) == 2:
            self.attached.set()

    def on_message(self, event: Any) -> None:
        self.queue.append(event.message)
        self.kept += 1
        self.on_sendable(event)

    def on_sendable(self, event: Any) -> None:
        for link in self.links:
            while link.is_sender and link.credit and self.queue:
                link.send(self.queue.popleft())


brokers = [Broker(), Broker()]
for number, broker in enumerate(brokers, 1):
    container = Container(broker)
    container.container_id = f"broker-{number}"
    Thread(target=container.run, daemon=True).start()
    broker.attached.wait()

connection = BlockingConnection(URL, allowed_mechs="ANONYMOUS", timeout=10)
sender = connection.create_sender("jobs")
for number in range(JOBS):
    sender.send(Message(body=number))  # waits until a broker has accepted it
print(f"both brokers keep jobs: {all(broker.kept for broker in brokers)}")
receiver = connection.create_receiver("jobs", credit=JOBS)
found = set()
for _ in range(JOBS):
    found.add(receiver.receive().body)
    receiver.accept()
print(f"{len(found)} jobs are collected")
connection.close()

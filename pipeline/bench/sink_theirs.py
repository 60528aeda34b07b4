"""The sink's sending in python-qpid-proton, as a user who knows the library would write it.

It has a window of unsettled deliveries and one delivery for each row; `proton.Message` encodes the message.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from proton import Delivery, Handler, Message
from proton.reactor import Container

_BATCH_ROWS = 10_000


class Sender(Handler):
    def __init__(self, port: int, size: int, count: int, window: int) -> None:
        super().__init__()
        self.url = f"amqp://127.0.0.1:{port}"
        self.window = window
        self.left = count
        self.flying = 0
        self.messages = self._encoded(size, count)

    def _encoded(self, size: int, count: int) -> Iterator[bytes]:
        batch = pa.RecordBatch.from_pydict({"body": pa.array([b"x" * size] * min(count, _BATCH_ROWS), pa.binary())})
        row = 0
        message: Any = Message()
        while row < count:
            for body in batch.column("body").to_pylist()[: count - row]:
                message.id = f"bench/0/0/{row}"
                message.properties = {"spark-query": "bench", "spark-batch": 0, "spark-partition": 0, "spark-row": row}
                message.body = body
                message.inferred = True
                yield message.encode()
                row += 1

    def on_reactor_init(self, event: Any) -> None:
        self.connection = event.container.connect(self.url, handler=self, reconnect=False, allowed_mechs="ANONYMOUS")

    def on_connection_remote_open(self, event: Any) -> None:
        self.link = event.container.create_sender(self.connection, "bench", handler=self)

    def on_link_flow(self, event: Any) -> None:
        self.fill()

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if delivery.updated and delivery.settled:
            if delivery.remote_state != Delivery.ACCEPTED:
                sys.exit(f"not accepted: {delivery.remote_state}")
            delivery.settle()
            self.flying -= 1
            self.left -= 1
            if self.left:
                self.fill()
            else:
                self.connection.close()

    def fill(self) -> None:
        while self.flying < self.window and self.link.credit > 0:
            message = next(self.messages, None)
            if message is None:
                return
            self.link.delivery(self.link.delivery_tag())
            self.link.stream(message)
            self.link.advance()
            self.flying += 1


sender = Sender(*map(int, sys.argv[1:]))
print("{}", flush=True)
sys.stdin.readline()
cpu_s, wall_s = time.process_time(), time.perf_counter()
Container(sender).run()
print(json.dumps({"cpu_s": time.process_time() - cpu_s, "wall_s": time.perf_counter() - wall_s}), flush=True)
sys.stdin.readline()

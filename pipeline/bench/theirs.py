"""The same receiver in python-qpid-proton: `python -m pipeline.bench.theirs PORT FOLDER LINGER`.

It is written as a user who knows the library would: raw bytes, no decoding; manual credit; frames like the spool's,
gathered for the same time and to the same size, one write and one fdatasync for a group, and then the outcomes. It
omits the delivery-tag, because the library gives it as text only, and fails where it is none.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from proton import Delivery, Handler
from proton.reactor import Container

_HEAD = struct.Struct(">QQIHB")
_GUARD = struct.Struct(">II")
_CREDIT = 2000
_GROUP_BYTES = 1 << 20


class Receiver(Handler):
    def __init__(self, port: str, folder: str, linger_s: float) -> None:
        super().__init__()
        self.url = f"amqp://127.0.0.1:{port}"
        self.linger_s = linger_s
        self.file = os.open(Path(folder) / "frames", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.frames: list[bytes] = []
        self.bytes = 0
        self.deliveries: list[Any] = []
        self.sequence = 0
        self.groups = 0
        self.timer = False

    def on_reactor_init(self, event: Any) -> None:
        self.connection = event.container.connect(self.url, handler=self, reconnect=False, allowed_mechs="ANONYMOUS")

    def on_connection_remote_open(self, event: Any) -> None:
        self.link = event.container.create_receiver(self.connection, "bench", handler=self)
        self.link.flow(_CREDIT)
        print("{}", flush=True)

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if not delivery.readable or delivery.partial:
            return
        link = delivery.link
        message = link.recv(delivery.pending)
        link.advance()
        body = _HEAD.pack(self.sequence, time.time_ns() // 1000, 0, 0, delivery.settled) + message
        self.frames.append(_GUARD.pack(len(body), zlib.crc32(body)) + body)
        self.sequence += 1
        self.bytes += len(body)
        self.deliveries.append(delivery)
        if self.bytes >= _GROUP_BYTES or len(self.deliveries) >= _CREDIT // 2:
            self.store()
        elif not self.timer:
            self.timer = True
            event.container.schedule(self.linger_s, self)

    def on_timer_task(self, event: Any) -> None:
        self.timer = False
        if self.deliveries:
            self.store()

    def store(self) -> None:
        os.writev(self.file, [b"".join(self.frames)])
        os.fdatasync(self.file)
        for delivery in self.deliveries:
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        self.link.flow(len(self.deliveries))
        self.groups += 1
        self.frames.clear()
        self.deliveries.clear()
        self.bytes = 0


def end() -> None:
    """End the receiver; the sender has every outcome."""
    sys.stdin.readline()
    print(json.dumps({"cpu_s": time.process_time() - BEGAN, "groups": receiver.groups}), flush=True)
    os._exit(0)


BEGAN = time.process_time()
receiver = Receiver(sys.argv[1], sys.argv[2], float(sys.argv[3]))
threading.Thread(target=end, daemon=True).start()
Container(receiver).run()

"""A client in a process of its own, to be killed: `python -m tests.chaos.client send|receive URL ADDRESS NAME`.

It writes a line to standard output for each step, before the step can have an effect elsewhere, so that a kill leaves
no step unreported: `+` with a message before it is sent, `=` or `-` with a message that is accepted or not, `!` when
the receiver has its link.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count

import trio

from trouter.client import ACCEPTED, Message, connect

from .traffic import RELEASED_EVERY


def _say(sign: str, key: object) -> None:
    os.write(1, f"{sign}{key}\n".encode())


class _Numbered:
    """Send the messages `NAME.0`, `NAME.1` and so on until SIGTERM arrives."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._over = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._over = True

    def __iter__(self) -> Iterator[Message]:
        for number in count():
            if self._over:
                return
            key = f"{self._name}.{number}"
            _say("+", key)
            yield Message(key)


async def _send(url: str, address: str, name: str) -> None:
    async with connect(url) as connection, connection.open_sender(address) as sender:
        async for message, outcome in sender.send_all(_Numbered(name), in_flight=200):
            _say("=" if outcome == ACCEPTED else "-", message.body)


async def _receive(url: str, address: str, name: str) -> None:
    async with connect(url) as connection, connection.open_receiver(address, credit=500) as receiver:
        _say("!", name)
        async for delivery in receiver:
            key = str(delivery.message.body)
            accept = int(key.partition(".")[2]) % RELEASED_EVERY
            _say("=" if accept else "-", key)
            await (delivery.accept() if accept else delivery.release())


if __name__ == "__main__":
    role, own_url, own_address, own_name = sys.argv[1:]
    trio.run({"send": _send, "receive": _receive}[role], own_url, own_address, own_name)

"""Receivers that stop reading in the middle of a long message from an exchange.

The bytes of a message are kept until its slowest receiver has them, and the sender's window closes meanwhile. A
receiver that takes nothing for ``STALLED_S`` while others wait loses the message: its copy is aborted.
"""

from __future__ import annotations

from typing import Final

from trouter.engine.ports import SessionPort

from .losses import cut_copy_off
from .message import Message, OutgoingDelivery

#: Seconds for which a receiver may take nothing.
STALLED_S: Final = 10.0


def has_little_room(session: SessionPort | None, parts: int) -> bool:
    """Return whether less than one of ``parts`` parts of a window is left; False for a lost session (None)."""
    if session is None:
        return False
    windows = session.windows
    return windows.held_bytes * parts > windows.max_incoming_bytes * (parts - 1)


class Stalls:
    """The long messages under way, and the last position of each receiver."""

    def __init__(self) -> None:
        #: By message and copy: piece, offset in it, and the time when they last changed.
        self._under_way: dict[Message, dict[OutgoingDelivery, tuple[int, int, float]]] = {}

    def watch_message(self, message: Message) -> None:
        """Watch a message until its copies are gone."""
        self._under_way[message] = {}

    def scan(self, now_s: float) -> None:
        """Abort the copies that hold others up; to be called about once a second."""
        for message, before in list(self._under_way.items()):
            if not message.copies or message.discard:
                del self._under_way[message]
                continue
            now: dict[OutgoingDelivery, tuple[int, int, float]] = {}
            for copy in message.copies:
                place = before.get(copy)
                if place is None or (copy.chunk, copy.offset) != place[:2]:
                    place = copy.chunk, copy.offset, now_s
                now[copy] = place
            self._under_way[message] = now
            if has_little_room(message.session, 4) and self._others_wait(message):
                for copy, (piece, _, since_s) in now.items():
                    if now_s - since_s >= STALLED_S and piece < message.first + len(message.chunks):
                        cut_copy_off(copy)

    def _others_wait(self, message: Message) -> bool:
        """Return whether a receiver has all of the message that has come, or had it all and is done."""
        end = message.first + len(message.chunks)
        return message.complete or any(copy.chunk >= end for copy in message.copies)

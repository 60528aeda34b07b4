"""Receivers that stop in the middle of a long message that an exchange sends to several.

The octets of a message are kept until the slowest of its receivers has them, and the sender's window closes as they
grow. One that takes nothing for ``STALLED_S`` while others wait is cut off from the message: its copy is aborted.
"""

from __future__ import annotations

from typing import Final

from trouter.engine.ports import Delivery, SessionPort
from trouter.engine.session import Session

from .egress import Egress
from .message import Message

#: For how long a receiver may take nothing, in seconds.
STALLED_S: Final = 10.0


def has_little_room(session: SessionPort | None, parts: int) -> bool:
    """Return whether less than one of ``parts`` parts of a session's window is left; False for None, a lost session."""
    return isinstance(session, Session) and session.held_bytes * parts > session.window_bytes * (parts - 1)


class Stalls:
    """The long messages under way, and how far each receiver had come when it was looked at last."""

    def __init__(self) -> None:
        #: By message and copy: the piece, the offset in it, and since when.
        self._under_way: dict[Message, dict[Delivery, tuple[int, int, float]]] = {}

    def watch(self, message: Message) -> None:
        """Look after a message until its copies are gone."""
        self._under_way[message] = {}

    def scan(self, now_s: float) -> None:
        """To be called about once a second: cut off those that hold others up."""
        for message, before in list(self._under_way.items()):
            if not message.copies or message.discard:
                del self._under_way[message]
                continue
            now: dict[Delivery, tuple[int, int, float]] = {}
            for copy in message.copies:
                place = before.get(copy)
                if place is None or (copy.chunk, copy.offset) != place[:2]:
                    place = copy.chunk, copy.offset, now_s
                now[copy] = place
            self._under_way[message] = now
            if has_little_room(message.session, 4) and self._others_wait(message):
                for copy, (piece, _, since_s) in now.items():
                    if now_s - since_s >= STALLED_S and piece < message.first + len(message.chunks):
                        egress = copy.link.sink
                        if isinstance(egress, Egress):
                            egress.cut_off(copy)

    def _others_wait(self, message: Message) -> bool:
        """Return whether a receiver has all that came of the message, or had it before the others."""
        end = message.first + len(message.chunks)
        return message.complete or any(copy.chunk >= end for copy in message.copies)

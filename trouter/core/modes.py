"""The settle modes of links: those that the router answers, and those that it passes on (routing.md 1.5, 6.3).

The sending side decides ``snd-settle-mode``, the receiving side ``rcv-settle-mode``; the other side answers with what
it can do, and some clients refuse a link whose answer is not what they asked.
"""

from __future__ import annotations

from typing import Final, TypedDict

from trouter.wire.performatives import Attach

UNSETTLED: Final = 0
SETTLED: Final = 1
_MIXED: Final = 2
_FIRST: Final = 0
_SECOND: Final = 1


class Modes(TypedDict):
    """The settle modes of an attach."""

    snd_settle_mode: int
    rcv_settle_mode: int


def granted_modes(wanted: Attach) -> Modes:
    """Return the modes of the answer on a link whose messages are routed: those of ``wanted`` that the router can do.

    A sender may settle as it likes, and the router settles with it when the receiver does, so ``second`` is no mode for
    it. A receiver may settle as it likes; it is sent settled messages only, or settled ones among others.
    """
    modes = passed_modes(wanted)
    if not wanted.role:
        modes["rcv_settle_mode"] = _FIRST
    elif modes["snd_settle_mode"] == UNSETTLED:
        modes["snd_settle_mode"] = _MIXED
    return modes


def passed_modes(attach: Attach) -> Modes:
    """Return the modes of an attach for the other end of a routed link; unknown ones are mixed and first."""
    snd, rcv = attach.snd_settle_mode, attach.rcv_settle_mode
    return {
        "snd_settle_mode": snd if snd in (UNSETTLED, SETTLED) else _MIXED,
        "rcv_settle_mode": _SECOND if rcv == _SECOND else _FIRST,
    }


def answered_modes(wanted: Attach, answer: Attach) -> Modes:
    """Return the modes for the client of a routed link, which ``wanted`` some, after the container's ``answer``.

    A container that answers mixed lets a sender settle as it asked. The router itself settles what a receiver asked to
    get settled.
    """
    asked, modes = passed_modes(wanted), passed_modes(answer)
    client_sends, snd = not wanted.role, asked["snd_settle_mode"]
    if (client_sends and modes["snd_settle_mode"] == _MIXED) or (not client_sends and snd == SETTLED):
        modes["snd_settle_mode"] = snd
    return modes

"""The choice whether the frames of one connection are logged (module PROTOCOL, level trace)."""

from __future__ import annotations

import logging

from trouter import logs
from trouter.logs import TRACE

from .frame_trace import FrameTrace

log = logging.getLogger("trouter.PROTOCOL")


class FrameLog:
    """The frame trace of one connection: its input, and the output in ``out`` that the socket has yet to take."""

    __slots__ = ("_label", "_out", "_shown_bytes", "_trace", "_wanted")

    def __init__(self, label: str, out: bytearray) -> None:
        self._label = label
        self._out = out
        #: Bytes of the present output that the trace has seen.
        self._shown_bytes = 0
        #: The decision of an operator; None to follow the module PROTOCOL.
        self._wanted: bool | None = None
        self._trace: FrameTrace | None = None

    @property
    def on(self) -> bool:
        """Whether frames are logged."""
        return self._trace is not None

    def decide(self, wanted: bool, *, midway: bool) -> None:
        """Begin or end tracing as an operator decides, whatever the module's level is now or later.

        ``midway``: the connection is not new, so its next bytes may be in the middle of a frame.
        """
        self._wanted = wanted
        self.follow_level(midway=midway)

    def follow_level(self, *, midway: bool) -> None:
        """Begin or end tracing as the module's level says, unless an operator has decided."""
        tracing = frames_are_wanted() if self._wanted is None else self._wanted
        if tracing != self.on:
            self._trace = FrameTrace(self._label, _show, midway=midway) if tracing else None
            self._shown_bytes = len(self._out)

    def received(self, data: bytes | bytearray) -> None:
        """Trace bytes from the peer."""
        if self._trace is not None:
            self._trace.received(data)

    def show_output(self) -> None:
        """Trace the output that was added since the last call."""
        if self._trace is not None and len(self._out) > self._shown_bytes:
            self._trace.sent(bytes(self._out[self._shown_bytes :]))
            self._shown_bytes = len(self._out)

    def dropped(self, count: int) -> None:
        """Note that the socket took ``count`` bytes from the front of the output."""
        self._shown_bytes = max(0, self._shown_bytes - count)


def frames_are_wanted() -> bool:
    """Return whether the level of the module says that frames are logged."""
    return log.isEnabledFor(TRACE)


def _show(line: str) -> None:
    logs.always("PROTOCOL", TRACE, line)

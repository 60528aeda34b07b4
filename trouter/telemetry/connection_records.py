"""Logs and records one connection: its open, its counts, and how it ended."""

from __future__ import annotations

from typing import Final

from trouter import records
from trouter.logs.frame_log import FrameLog, frames_are_wanted
from trouter.logs.peer_text import describe_properties, name_word, word
from trouter.net.view import ConnectionView
from trouter.wire.performatives import Error, Open

from .clocks import mono_us, now_us
from .recorder import Recorder

#: By whom a connection was ended, and the condition, unless a close says it.
TRANSPORT_ENDED: Final = ("transport", "")


def describe_open(peer: ConnectionView, remote: Open) -> str:
    """Return the log line for an exchange of opens."""
    facts, login = peer.facts, peer.login
    encrypted = facts.tls.version if facts.tls else "no"
    return (
        f"[C{peer.number}] Connection Opened: dir={_direction(peer)} host={facts.remote_host}:{facts.remote_port} "
        f"vhost={name_word(remote.hostname or '')} encrypted={encrypted} auth={name_word(login.mechanism) or 'no'} "
        f"user={word(login.user)} container_id={name_word(remote.container_id)} "
        f"props={describe_properties(remote.properties)}"
    )


class ConnectionRecord:
    """The byte counts of one connection and the log of its frames; records its open and its end."""

    __slots__ = (
        "_accepted_us",
        "_ended",
        "_label",
        "_opened_us",
        "_out",
        "_recorder",
        "bytes_in",
        "bytes_out",
        "frames",
    )

    def __init__(self, recorder: Recorder, label: str, out: bytearray) -> None:
        """``label`` begins the lines of the connection; ``out`` is its output that the socket has yet to take."""
        self._recorder = recorder
        self._label = label
        self._out = out
        self._accepted_us = mono_us()
        self._opened_us = 0
        self._ended = TRANSPORT_ENDED
        self.bytes_in = 0
        self.bytes_out = 0
        #: None while no frames were ever to be logged.
        self.frames: FrameLog | None = None

    # --- frames

    @property
    def shows_frames(self) -> bool:
        """True if the frames of the connection are logged."""
        return self.frames is not None and self.frames.on

    def decide_frames(self, wanted: bool, *, midway: bool) -> None:
        """Log frames or not, as an operator decides; see ``FrameLog.decide``."""
        self._frame_log().decide(wanted, midway=midway)

    def follow_log(self, *, midway: bool) -> None:
        """Log frames from now on if the level of the module PROTOCOL says so, unless an operator has decided."""
        if self.frames is not None or frames_are_wanted():
            self._frame_log().follow_level(midway=midway)

    def show_input(self, data: bytes) -> None:
        """Log the frames in bytes from the peer, if they are to be logged."""
        if self.frames is not None:
            self.frames.received(data)

    def _frame_log(self) -> FrameLog:
        if self.frames is None:
            self.frames = FrameLog(self._label, self._out)
        return self.frames

    # --- records

    def open(self, peer: ConnectionView, remote: Open) -> None:
        """Record that the opens were exchanged."""
        self._opened_us = now_us()
        tls = peer.facts.tls
        self._recorder.emit(
            records.ConnectionOpenedRecord(
                **peer.describe_connection(),
                listener=peer.facts.listener.name,
                role=peer.facts.listener.role,
                dir=_direction(peer),
                container=remote.container_id,
                mech=peer.login.mechanism or None,
                tls_version=None if tls is None else tls.version,
                cipher=None if tls is None else tls.cipher,
            )
        )

    def note_end(self, by: str, condition: str) -> None:
        """Note that the ``peer`` or the router (``local``) closed it; without that, the transport ended it."""
        self._ended = (by, condition)

    def close(self, peer: ConnectionView, close_error: Error | None) -> None:
        """Record that the connection ended; ``close_error`` is the error of the router's close."""
        by, condition = self._ended if close_error is None else ("local", close_error.condition)
        self._recorder.emit(
            records.ConnectionClosedRecord(
                **peer.describe_connection(),
                opened_at=self._opened_us,
                duration_us=mono_us() - self._accepted_us,
                by=by,
                condition=condition or None,
                reason=peer.lifetime.failure or None,
                bytes_in=self.bytes_in,
                bytes_out=self.bytes_out,
            )
        )


def _direction(peer: ConnectionView) -> str:
    return "out" if peer.login.outgoing else "in"

"""Logs and records one connection: its open, its counts, and how it ended."""

from __future__ import annotations

from typing import Any, Protocol

from trouter import records
from trouter.hooks import PeerFacts
from trouter.logs.peer_text import describe_properties, name_word, word
from trouter.wire.performatives import Error, Open

from .clocks import mono_us, now_us
from .recorder import Recorder


class Accounted(Protocol):
    """The connection as its records see it."""

    @property
    def facts(self) -> PeerFacts: ...

    @property
    def outgoing(self) -> bool: ...

    @property
    def user(self) -> str: ...

    @property
    def mechanism(self) -> str: ...

    @property
    def failure(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def role(self) -> str: ...

    @property
    def listener(self) -> str: ...

    def about(self) -> dict[str, Any]:
        """Return the fields of every record about the connection."""


def describe_open(peer: Accounted, remote: Open) -> str:
    """Return the log line for an exchange of opens."""
    facts = peer.facts
    encrypted = facts.tls.version if facts.tls else "no"
    return (
        f"[C{peer.number}] Connection Opened: dir={_direction(peer)} host={facts.remote_host}:{facts.remote_port} "
        f"vhost={name_word(remote.hostname or '')} encrypted={encrypted} auth={name_word(peer.mechanism) or 'no'} "
        f"user={word(peer.user)} container_id={name_word(remote.container_id)} "
        f"props={describe_properties(remote.properties)}"
    )


class Account:
    """The byte counts of one connection; records its open and its end."""

    __slots__ = ("_accepted_us", "_ended", "_opened_us", "_recorder", "bytes_in", "bytes_out")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._accepted_us = mono_us()
        self._opened_us = 0
        self._ended = ("transport", "")
        self.bytes_in = 0
        self.bytes_out = 0

    def open(self, peer: Accounted, remote: Open) -> None:
        """Record that the opens were exchanged."""
        self._opened_us = now_us()
        tls = peer.facts.tls
        self._recorder.emit(
            records.ConnectionOpened(
                **peer.about(),
                listener=peer.listener,
                role=peer.role,
                dir=_direction(peer),
                container=remote.container_id,
                mech=peer.mechanism or None,
                tls_version=None if tls is None else tls.version,
                cipher=None if tls is None else tls.cipher,
            )
        )

    def ends(self, by: str, condition: str) -> None:
        """Note that the ``peer`` or the router (``local``) closed it; without that, the transport ended it."""
        self._ended = (by, condition)

    def close(self, peer: Accounted, farewell: Error | None) -> None:
        """Record that the connection ended; ``farewell`` is the error of the router's close."""
        by, condition = self._ended if farewell is None else ("local", farewell.condition)
        self._recorder.emit(
            records.ConnectionClosed(
                **peer.about(),
                opened_at=self._opened_us,
                duration_us=mono_us() - self._accepted_us,
                by=by,
                condition=condition or None,
                reason=peer.failure or None,
                bytes_in=self.bytes_in,
                bytes_out=self.bytes_out,
            )
        )


def _direction(peer: Accounted) -> str:
    return "out" if peer.outgoing else "in"

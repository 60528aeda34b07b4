"""A conversation written down: the peer sends, the engine reports, the engine sends; each line asserts as it goes.

The engine under test is a ``Connection``; the peer is the script, frame by literal frame. ``engine_reports`` and
``engine_sends`` list everything that happened since the last call, in order: an expectation is a value, a class, or
``like(cls, field=...)``, which compares the named fields only. ``b""`` stands for an empty frame, other bytes for a
protocol header.

    talk = Script(connection)
    talk.peer_sends(AMQP_HEADER, Open("peer")).engine_reports(ConnectionOpened)
    connection.open()
    talk.engine_sends(AMQP_HEADER, like(Open, container_id="R1"))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from trouter.engine.connection import Connection
from trouter.engine.events import Event
from trouter.wire.framing import AMQP_HEADER, FRAME_AMQP, FRAME_SASL, HEADER_BYTES, SASL_HEADER, TLS_HEADER, frame
from trouter.wire.performatives import (
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
    decode_performative,
    encode_performative,
)

_HEADERS = (AMQP_HEADER, TLS_HEADER, SASL_HEADER)
_SASL = (SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome)


@dataclass(frozen=True, slots=True)
class Sent:
    """One frame of ``size`` bytes; ``performative`` is None for an empty frame, and the bytes of a protocol header."""

    channel: int
    performative: Performative | bytes | None
    payload: bytes = b""
    size: int = field(default=0, compare=False, repr=False)


class Like:
    """Equal to any instance of ``cls`` whose named attributes are as given; made by ``like``."""

    __slots__ = ("_cls", "_fields")

    def __init__(self, cls: type, fields: dict[str, object]) -> None:
        self._cls = cls
        self._fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self._cls) and all(
            hasattr(other, name) and _fits(expected, getattr(other, name)) for name, expected in self._fields.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"{self._cls.__name__}({fields}, ...)"


Expected: TypeAlias = Performative | Sent | Event | Like | bytes | type


def like(cls: type, **fields: object) -> Like:
    """Return an expectation that compares ``fields`` only; they may be expectations themselves."""
    return Like(cls, fields)


def encode(what: Performative | bytes, channel: int = 0, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame with a performative; bytes are returned as they are."""
    if isinstance(what, bytes):
        return what
    kind = FRAME_SASL if isinstance(what, _SASL) else FRAME_AMQP
    return frame(channel, encode_performative(what) + payload, kind)


def decode(octets: bytes) -> list[Sent]:
    """Return the headers and frames in ``octets``; AssertionError if there is anything else."""
    found: list[Sent] = []
    at = 0
    while at < len(octets):
        if octets[at : at + 8] in _HEADERS:
            found.append(Sent(0, octets[at : at + 8], size=8))
            at += 8
            continue
        size = int.from_bytes(octets[at : at + 4], "big")
        left = len(octets) - at
        _demand(HEADER_BYTES <= size <= left, f"a frame of {size} bytes where {left} are left")
        _demand(octets[at + 4] == 2, f"data offset {octets[at + 4]}")
        kind, channel = octets[at + 5], int.from_bytes(octets[at + 6 : at + 8], "big")
        start, end = at + HEADER_BYTES, at + size
        at = end
        if start == end:
            found.append(Sent(channel, None, size=size))
            continue
        performative, behind = decode_performative(octets, start, end)
        if kind != (FRAME_SASL if isinstance(performative, _SASL) else FRAME_AMQP):
            raise AssertionError(f"{performative} in a frame of type {kind}")
        if behind != end and not isinstance(performative, Transfer):
            raise AssertionError(f"bytes behind {performative}")
        found.append(Sent(channel, performative, octets[behind:end], size))
    return found


class Script:
    """Drive ``connection`` in the place of the peer; with ``piecemeal`` the peer's bytes arrive one by one."""

    def __init__(self, connection: Connection, *, piecemeal: bool = False) -> None:
        self.connection = connection
        self.piecemeal = piecemeal

    def peer_sends(self, *what: Performative | bytes, channel: int = 0, payload: bytes = b"") -> Script:
        """Feed the peer's frames on ``channel`` in one read, ``payload`` behind the last; bytes are fed as they are."""
        octets = b"".join(encode(each, channel) for each in what[:-1])
        if what:
            octets += encode(what[-1], channel, payload)
        pieces = [octets[at : at + 1] for at in range(len(octets))] if self.piecemeal else [octets]
        for piece in pieces:
            self.connection.receive_data(piece)
        return self

    def engine_reports(self, *expected: Expected) -> Script:
        """Check that the events since the last call are those ``expected``; AssertionError if they are not."""
        events, self.connection.events[:] = self.connection.events[:], []
        _compare("reported", events, expected)
        return self

    def engine_sends(self, *expected: Expected) -> Script:
        """Check that the frames since the last call are those ``expected``; AssertionError if they are not."""
        _compare("sent", self.sent(), expected)
        return self

    def sent(self) -> list[Sent]:
        """Return the frames since the last call."""
        connection = self.connection
        connection.flush()
        octets = bytes(connection.out)
        connection.out.clear()
        connection.outbox.clear()
        return decode(octets)


def _compare(verb: str, found: list[Event] | list[Sent], expected: tuple[Expected, ...]) -> None:
    listing = "\n  ".join(str(each) for each in found) or "nothing"
    _demand(len(found) == len(expected), f"{len(found)} {verb}, not {len(expected)}:\n  {listing}")
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        candidates: tuple[object, ...] = (one,)
        if isinstance(one, Sent):
            candidates = (one, b"" if one.performative is None else one.performative)
        _demand(any(_fits(other, each) for each in candidates), f"{verb} at {number} was not {other!r}:\n  {listing}")


def _demand(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _fits(expected: object, found: object) -> bool:
    if isinstance(expected, type):
        return isinstance(found, expected)
    return bool(expected == found)

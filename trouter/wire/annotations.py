"""Router annotations: the entries that routers add to a message's annotations.

Their keys are symbols that start with ``x-opt-qd.``. All other entries, other ``x-opt-qd.`` keys included, belong to
the sender and keep their bytes and order, wherever in the map they are. The writer puts the sender's entries first,
then phase, stream, to, ingress and trace, each only if it has a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trouter.wire.codec import be32, decode, skip
from trouter.wire.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from cython import Py_ssize_t

MAX_TRACE_ENTRIES: Final = 64

_NOT_OURS: Final[Py_ssize_t] = -1
_DROPPED: Final[Py_ssize_t] = 0
_PHASE: Final[Py_ssize_t] = 1
_STREAM: Final[Py_ssize_t] = 2
_TO: Final[Py_ssize_t] = 3
_INGRESS: Final[Py_ssize_t] = 4
_TRACE: Final[Py_ssize_t] = 5
_KEYS: Final[dict[bytes, int]] = {
    b"x-opt-qd.": _DROPPED,
    b"x-opt-qd.class": _DROPPED,
    b"x-opt-qd.phase": _PHASE,
    b"x-opt-qd.stream": _STREAM,
    b"x-opt-qd.to": _TO,
    b"x-opt-qd.ingress": _INGRESS,
    b"x-opt-qd.trace": _TRACE,
}
_MAX_PHASE: Final[Py_ssize_t] = 0x7FFFFFFF

_OCTET: Final[list[bytes]] = [bytes((number,)) for number in range(256)]
_PHASE_KEY: Final[bytes] = b"\xa3\x0ex-opt-qd.phase"
_STREAM_ENTRY: Final[bytes] = b"\xa3\x0fx-opt-qd.stream\x54\x01"
_TO_KEY: Final[bytes] = b"\xa3\x0bx-opt-qd.to"
_INGRESS_KEY: Final[bytes] = b"\xa3\x10x-opt-qd.ingress"
_TRACE_KEY: Final[bytes] = b"\xa3\x0ex-opt-qd.trace"


class InvalidAnnotation(DecodeError):
    """The annotations are no map, or a router annotation has the wrong type; the text describes the rejection."""


class RouterAnnotations:
    """A message's annotations, parsed: the routers' entries as values, the sender's as encoded pairs in ``user``."""

    __slots__ = ("phase", "stream", "had_router_keys", "user_count", "to", "ingress", "trace", "user")

    def __init__(self) -> None:
        self.phase: Py_ssize_t = 0
        self.stream = False
        self.to: str | None = None
        self.ingress: str | None = None
        self.trace: tuple[str, ...] = ()
        self.user = b""
        self.user_count: Py_ssize_t = 0
        self.had_router_keys = False

    def _set_entry(self, key: Py_ssize_t, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Set the attribute for the router annotation whose value is ``data[start:end]``; InvalidAnnotation."""
        if key == _TO:
            self.to = _text(data, start, end, "to-override not a valid string type")
        elif key == _INGRESS:
            self.ingress = _text(data, start, end, "ingress router not a string type")
        elif key == _TRACE:
            self.trace = _texts(data, start, end)
        elif key == _PHASE:
            self.phase = _whole(data, start, end, "phase not a valid int type")
        elif key == _STREAM:
            self.stream = _whole(data, start, end, "stream not a valid int type") != 0


def parse_annotations(data: bytes, start: Py_ssize_t, end: Py_ssize_t, honour: bool) -> RouterAnnotations:
    """Return the parsed message-annotations section ``data[start:end]``, descriptor included; InvalidAnnotation.

    Without ``honour`` router annotations are dropped unread; only the length of a trace is checked (R-6.2b).
    """
    found = RouterAnnotations()
    try:
        _parse(found, data, start, end, honour)
    except InvalidAnnotation:
        raise
    except DecodeError as error:
        raise InvalidAnnotation(str(error), error.offset) from None
    return found


def _parse(found: RouterAnnotations, data: bytes, start: Py_ssize_t, end: Py_ssize_t, honour: bool) -> None:
    offset: Py_ssize_t = skip(data, start + 1, end)
    if skip(data, offset, end) != end:
        raise InvalidAnnotation("message annotations are not one map", offset)
    constructor: Py_ssize_t = data[offset]
    if constructor == 0xC1 and data[offset + 1] >= 1:
        count: Py_ssize_t = data[offset + 2]
        offset += 3
    elif constructor == 0xD1 and end - offset >= 9:
        count = be32(data, offset + 5)
        offset += 9
    else:
        raise InvalidAnnotation("message annotations are not a map", offset)
    if count & 1:
        raise InvalidAnnotation("Odd Number of Elements in a Map", offset)
    run: Py_ssize_t = offset  # the start of the sender's entries that are not in ``user`` yet
    while count > 0:
        value: Py_ssize_t = skip(data, offset, end)
        behind: Py_ssize_t = skip(data, value, end)
        key: Py_ssize_t = _key(data, offset, value)
        if key == _NOT_OURS:
            found.user_count += 1
        else:
            found.had_router_keys = True
            if run < offset:
                found.user += data[run:offset]
            run = behind
            if honour and key != _DROPPED:
                found._set_entry(key, data, value, behind)
            elif key == _TRACE:
                _trace_start(data, value, behind)
        offset = behind
        count -= 2
    if offset != end:
        raise InvalidAnnotation("message annotations have bytes behind the last entry", offset)
    if run < end:
        found.user += data[run:end]


def _key(data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
    """Return which router annotation the encoded key names; _NOT_OURS if none."""
    constructor: Py_ssize_t = data[start]
    if constructor == 0xA3:
        start += 2
    elif constructor == 0xB3:
        start += 5
    else:
        return _NOT_OURS
    if end - start < 9 or data[start + 6] != 0x71 or data[start + 7] != 0x64 or data[start + 8] != 0x2E:  # "qd."
        return _NOT_OURS
    return _KEYS.get(data[start:end], _NOT_OURS)


def _text(data: bytes, start: Py_ssize_t, end: Py_ssize_t, complaint: str) -> str:
    """Return the string at ``data[start:end]``; InvalidAnnotation with ``complaint``."""
    constructor: Py_ssize_t = data[start]
    if constructor == 0xA1:
        start += 2
    elif constructor == 0xB1:
        start += 5
    else:
        raise InvalidAnnotation(complaint, start)
    try:
        return data[start:end].decode()
    except UnicodeDecodeError:
        raise InvalidAnnotation(complaint, start) from None


def _texts(data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> tuple[str, ...]:
    """Return the list of strings at ``data[start:end]``; InvalidAnnotation."""
    count: Py_ssize_t
    start, count = _trace_start(data, start, end)
    if start < 0:
        raise InvalidAnnotation("trace annotation is not a list", end)
    entries: list[str] = []
    while count > 0:
        behind: Py_ssize_t = skip(data, start, end)
        entries.append(_text(data, start, behind, "trace list contains non-string entries"))
        start = behind
        count -= 1
    if start != end:
        raise InvalidAnnotation("trace list has bytes behind the last entry", start)
    return tuple(entries)


def _trace_start(data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> tuple[int, int]:
    """Return where the entries of the list at ``data[start:end]`` begin, and their number; -1, 0 if it is no list."""
    constructor: Py_ssize_t = data[start]
    count: Py_ssize_t = 0
    if constructor == 0x45:
        start += 1
    elif constructor == 0xC0 and end - start >= 3:
        count = data[start + 2]
        start += 3
    elif constructor == 0xD0 and end - start >= 9:
        count = be32(data, start + 5)
        start += 9
    else:
        return -1, 0
    if count > MAX_TRACE_ENTRIES:
        raise InvalidAnnotation(f"trace list has more than {MAX_TRACE_ENTRIES} entries", start)
    return start, count


def _whole(data: bytes, start: Py_ssize_t, end: Py_ssize_t, complaint: str) -> Py_ssize_t:
    """Return the integer at ``data[start:end]``, of any integer type, from 0 to ``_MAX_PHASE``; InvalidAnnotation."""
    if data[start] == 0x54 and data[start + 1] < 0x80:
        return data[start + 1]
    number = decode(data, start, end)[0]
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MAX_PHASE:
        raise InvalidAnnotation(complaint, start)
    return number


def compose_annotations(
    user: bytes,
    user_count: Py_ssize_t,
    phase: Py_ssize_t,
    stream: bool,
    to: str | None,
    ingress: str | None,
    trace: Sequence[str],
) -> bytes:
    """Return the whole message-annotations section, b"" if it would be empty; EncodeError."""
    entries, count = router_entries(phase, stream, to, ingress, trace)
    return join_annotations(user, user_count, entries, count)


def router_entries(
    phase: Py_ssize_t, stream: bool, to: str | None, ingress: str | None, trace: Sequence[str]
) -> tuple[bytes, int]:
    """Return the routers' entries as encoded pairs, and their number; many messages may share them. EncodeError."""
    if not 0 <= phase <= _MAX_PHASE:
        raise EncodeError(f"phase out of range: {phase}")
    pieces: list[bytes] = []
    count: Py_ssize_t = 0
    if phase:
        pieces.append(_PHASE_KEY)
        pieces.append(b"\x54" + _OCTET[phase] if phase < 0x80 else b"\x71" + phase.to_bytes(4, "big"))
        count += 1
    if stream:
        pieces.append(_STREAM_ENTRY)
        count += 1
    if to is not None:
        pieces.append(_TO_KEY)
        pieces.append(_string(to))
        count += 1
    if ingress is not None:
        pieces.append(_INGRESS_KEY)
        pieces.append(_string(ingress))
        count += 1
    if trace:
        pieces.append(_TRACE_KEY)
        pieces.append(_strings(trace))
        count += 1
    return b"".join(pieces), count


def join_annotations(user: bytes, user_count: Py_ssize_t, entries: bytes, count: Py_ssize_t) -> bytes:
    """Return the section with the sender's and the routers' encoded pairs, b"" without any; EncodeError."""
    items: Py_ssize_t = 2 * (user_count + count)
    if not items:
        return b""
    size: Py_ssize_t = len(user) + len(entries)
    if size < 255 and items < 256:
        return b"".join((b"\x00\x53\x72\xc1", _OCTET[size + 1], _OCTET[items], user, entries))
    if size + 4 > 0xFFFFFFFF:
        raise EncodeError(f"message annotations of {size} bytes")
    return b"\x00\x53\x72\xd1" + (size + 4).to_bytes(4, "big") + items.to_bytes(4, "big") + user + entries


def _string(text: str) -> bytes:
    try:
        octets: bytes = text.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"address or router id holds a lone surrogate: {text!r}") from None
    size: Py_ssize_t = len(octets)
    return b"\xa1" + _OCTET[size] + octets if size < 256 else b"\xb1" + size.to_bytes(4, "big") + octets


def _strings(texts: Sequence[str]) -> bytes:
    """Return an encoded list of strings; EncodeError."""
    body: bytes = b"".join([_string(text) for text in texts])
    size: Py_ssize_t = len(body)
    count: Py_ssize_t = len(texts)
    if size < 255 and count < 256:
        return b"".join((b"\xc0", _OCTET[size + 1], _OCTET[count], body))
    return b"".join((b"\xd0", (size + 4).to_bytes(4, "big"), count.to_bytes(4, "big"), body))

"""AMQP values as text, in the three formats that users read. They differ on purpose.

``trace_text`` is for the trace of frames: `@open(16) [container-id="x", ...]`, with types and field names, cut, and
without secrets. Credentials are never shown: SASL frames show only the fields named here, and maps hide values whose
key suggests a secret. ``property_text`` is for the log of messages, whose lines are those of Qpid Dispatch: `T` for
true, bytes in hex behind one backslash. ``json_value`` is for answers that programs read as JSON. The columns of the
pipeline keep the type of each value, and are read back (``pipeline/values.py``, ``pipeline/typed.py``).
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from trouter._text import escape_unprintable, visible_bytes
from trouter.wire.composite import Composite, class_of, fields_of
from trouter.wire.performatives import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from trouter.wire.types import (
    Array,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    PairMap,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

#: Characters of a whole value, and of one text or binary in it.
MAX_SHOWN: Final = 2000
MAX_TEXT: Final = 256
HIDDEN: Final = "<hidden>"

_SASL: Final = (SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome)
#: Fields of SASL frames without secrets, and the length of a text in them.
_SHOWN_OF_SASL: Final = frozenset({"mechanism", "hostname", "code", "sasl_server_mechanisms"})
_MAX_SASL_TEXT: Final = 255
_CLOSED_BY: Final = {"[": "]", "{": "}"}
_SECRET_KEY: Final = re.compile(r"pass|secret|token|credential|authorization|api.?key", re.IGNORECASE)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_QUOTES: Final = '"\\'
_UNSIGNED: Final = (UByte, UShort, UInt, ULong)
_UNSHOWN: Final = (float, Decimal32, Decimal64, Decimal128, uuid.UUID, Char)


def trace_text(value: object) -> str:
    """Return `value` on one line: at most MAX_SHOWN characters, plus the brackets that close a cut text."""
    parts: list[str] = []
    open_brackets: list[str] = []
    left = MAX_SHOWN
    for part in _parts(value):
        if len(part) > left:
            parts.extend(("...", *reversed(open_brackets)))  # keeps brackets and quotes paired for programs
            break
        parts.append(part)
        left -= len(part)
        if part in _CLOSED_BY or part.startswith("@<"):
            open_brackets.append(_CLOSED_BY[part[-1]])
        elif part in _CLOSED_BY.values():
            open_brackets.pop()
    return "".join(parts)


def name_of(descriptor: object) -> str:
    """Return a name such as `@open(16)`, or the descriptor itself if it is unknown."""
    cls = class_of(descriptor)
    if cls is not None:
        return f"@{_title(cls)}({cls.descriptor})"
    return f"@{int(descriptor)}" if isinstance(descriptor, int) else f"@{trace_text(descriptor)[:MAX_TEXT]}"


def is_sasl(descriptor: object) -> bool:
    """Return whether the described value is a SASL frame, which may hold secrets."""
    return class_of(descriptor) in _SASL


def _title(cls: type[Composite]) -> str:
    return cls.symbol.split(":")[1]


def _parts(value: object) -> Iterator[str]:
    if isinstance(value, Described):
        yield from _described(value)
    elif isinstance(value, dict | PairMap):
        yield "{"
        yield from _joined(_pair(key, item) for key, item in value.items())
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        yield from _joined(_parts(item) for item in value)
        yield "]"
    elif isinstance(value, Array):
        yield from _array(value)
    else:
        yield _scalar(value)


def _joined(items: Iterable[Iterator[str]]) -> Iterator[str]:
    for number, item in enumerate(items):
        if number:
            yield ", "
        yield from item


def _pair(key: object, item: object) -> Iterator[str]:
    yield from _parts(key)
    yield "="
    if isinstance(key, str) and _SECRET_KEY.search(key):
        yield HIDDEN
    else:
        yield from _parts(item)


def _described(value: Described) -> Iterator[str]:
    cls = class_of(value.descriptor)
    if cls is None:
        yield f"{name_of(value.descriptor)} "
        yield from _parts(value.value)
        return
    yield f"{name_of(value.descriptor)} "
    if isinstance(value.value, list):
        yield "["
        yield from _joined(_fields(cls, value.value))
        yield "]"
    elif cls in _SASL:
        yield HIDDEN
    else:
        yield from _parts(value.value)


def _fields(cls: type[Composite], values: list[object]) -> Iterator[Iterator[str]]:
    """Yield the fields that are not null, with their names; those beyond the type's last field without."""
    names = [field.name for field in fields_of(cls)]
    for number, value in enumerate(values):
        name = names[number] if number < len(names) else ""
        if value is not None:
            yield _field(cls, name, value)


def _field(cls: type[Composite], name: str, value: object) -> Iterator[str]:
    if name:
        yield f"{name.replace('_', '-')}="
    if cls in _SASL and not (name in _SHOWN_OF_SASL and _is_harmless(value)):
        yield HIDDEN
    else:
        yield from _parts(value)


def _is_harmless(value: object) -> bool:
    """Return whether the value has a type and length that may be shown of a SASL frame."""
    if isinstance(value, Array):
        return not value.descriptors and all(map(_is_harmless, value.items))
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= _MAX_SASL_TEXT)


def _array(array: Array) -> Iterator[str]:
    kind = "".join(f"{name_of(descriptor)} " for descriptor in array.descriptors[:4]) + array.of
    yield f"@<{kind}>["
    if any(map(is_sasl, array.descriptors)):
        yield HIDDEN
    else:
        yield from _joined(_parts(item) for item in array.items)
    yield "]"


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"0x{int(value):x}" if isinstance(value, _UNSIGNED) else int.__repr__(value)
    if isinstance(value, Symbol):
        return f":{value}" if len(value) <= MAX_TEXT and _PLAIN_NAME.fullmatch(value) else f":{_quoted(value)}"
    if isinstance(value, Char):
        return f"'{escape_unprintable(value)}'"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return _binary(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Decimal32 | Decimal64 | Decimal128):
        return f"0x{value.raw.hex()}"
    return str(value) if isinstance(value, uuid.UUID) else type(value).__name__


def _quoted(text: str) -> str:
    cut = "..." if len(text) > MAX_TEXT else ""
    return '"' + escape_unprintable(text[:MAX_TEXT], _QUOTES) + cut + '"'


def _binary(octets: bytes) -> str:
    cut = "..." if len(octets) > MAX_TEXT else ""
    return f'b"{visible_bytes(octets[:MAX_TEXT], _QUOTES.encode())}{cut}"'


def property_text(value: object) -> str:
    """Return a property's text in the log; floats, decimals, UUIDs and characters are empty."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, Symbol):
        return f':"{value}"'
    if isinstance(value, _UNSHOWN):
        return ""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bytes):
        return 'b"' + "".join(chr(byte) if 32 <= byte < 127 else f"\\{byte:02x}" for byte in value) + '"'
    if isinstance(value, Timestamp):
        return _format_time(value)
    if isinstance(value, dict | PairMap):
        return "{" + ", ".join(f"{property_text(key)}={property_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(property_text, value))}]"
    return str(value) if isinstance(value, int) else ""


def _format_time(milliseconds: int) -> str:
    """Return local time with milliseconds and the offset; the plain number if it is out of range."""
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, tz=UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)
    return f'"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d} {moment:%z}"'


def json_value(value: object) -> object:
    """Return an AMQP value in the types of JSON: bytes, a uuid and NaN as text, of a described value the value."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | str() | int() | float():
            return value
        case dict() | PairMap():
            return {_key(key): json_value(each) for key, each in value.items()}
        case list() | tuple() | Array():
            return [json_value(each) for each in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode(errors="backslashreplace")
        case uuid.UUID():
            return str(value)
        case Described():
            return json_value(value.value)
        case _:
            return repr(value)


def _key(key: object) -> str:
    found = json_value(key)
    return found if isinstance(found, str) else json.dumps(found)

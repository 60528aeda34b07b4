"""AMQP values as text in a frame trace: `@open(16) [container-id="x", ...]`, one line, cut, and without secrets.

Credentials are never shown: SASL frames show only the fields named here, and maps hide values whose key suggests a
secret.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final

from trouter.logs import one_line
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
_UNSIGNED: Final = (UByte, UShort, UInt, ULong)


def show(value: object) -> str:
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
    return f"@{int(descriptor)}" if isinstance(descriptor, int) else f"@{show(descriptor)[:MAX_TEXT]}"


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
        return f"'{one_line(value)}'"
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
    return '"' + one_line(text[:MAX_TEXT].replace("\\", "\\x5c").replace('"', "\\x22")) + cut + '"'


def _binary(octets: bytes) -> str:
    cut = "..." if len(octets) > MAX_TEXT else ""
    text = "".join(
        chr(octet) if 32 <= octet < 127 and octet not in b'"\\' else f"\\x{octet:02x}" for octet in octets[:MAX_TEXT]
    )
    return f'b"{text}{cut}"'

"""AMQP values from their forms in ``trouter_pipeline.values``: text with its type, and tagged JSON."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from trouter.wire.constants import MAX_NESTING
from trouter.wire.errors import EncodeError
from trouter.wire.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    PairMap,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from trouter_pipeline.values import DECIMALS


class BadValue(ValueError):
    """Text that is no value of its type."""


def _boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError
    return text == "true"


def _whole(python: Callable[[int], Any]) -> Callable[[str], Any]:
    return lambda text: python(int(text))


def _decimal(octets: int, python: type) -> Callable[[str], Any]:
    exponent_bits, bias, digits = DECIMALS[octets]
    width = 8 * octets
    fraction_bits = width - 1 - exponent_bits

    def read(text: str) -> Any:
        number = Decimal(text)
        sign, found, exponent = number.as_tuple()
        bits = sign << (width - 1)
        coefficient = int("".join(map(str, found)) or "0")
        if not isinstance(exponent, int):
            quiet = {"F": 0b11110 << (width - 6), "n": 0b111110 << (width - 7), "N": 0b111111 << (width - 7)}
            bits |= quiet[exponent] | coefficient
        elif coefficient >= 10**digits or not 0 <= exponent + bias < 3 << (exponent_bits - 2):
            raise ValueError
        elif coefficient >> fraction_bits:
            bits |= 0b11 << (width - 3) | (exponent + bias) << (fraction_bits - 2)
            bits |= coefficient & ((1 << (fraction_bits - 2)) - 1)
        else:
            bits |= (exponent + bias) << fraction_bits | coefficient
        return python(bits.to_bytes(octets))

    return read


#: Readers by the name of the type (part 1, 1.6).
FROM_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": _boolean,
    "ubyte": _whole(UByte),
    "ushort": _whole(UShort),
    "uint": _whole(UInt),
    "ulong": _whole(ULong),
    "byte": _whole(Byte),
    "short": _whole(Short),
    "int": _whole(Int),
    "long": _whole(int),
    "float": lambda text: Float(float(text)),
    "double": float,
    "decimal32": _decimal(4, Decimal32),
    "decimal64": _decimal(8, Decimal64),
    "decimal128": _decimal(16, Decimal128),
    "char": Char,
    "timestamp": _whole(Timestamp),
    "uuid": UUID,
    "binary": lambda text: b64decode(text, validate=True),
    "string": str,
    "symbol": Symbol,
}
#: Types with parts, whose text is JSON.
WITH_PARTS: Final = frozenset(("list", "map", "array", "described"))


def from_text(kind: str, text: str | None) -> Any:
    """Return the value of type ``kind`` for ``text``; BadValue."""
    if kind == "null":
        return None
    if text is None:
        raise BadValue(f"a {kind[:32]} without a value")
    if kind in WITH_PARTS:
        return from_json(text)
    read = FROM_TEXT.get(kind)
    if read is None:
        raise BadValue(f"there is no type {kind[:32]!r} in AMQP; there are {', '.join(FROM_TEXT)}")
    try:
        return read(text)
    except (ValueError, OverflowError, InvalidOperation, binascii.Error, EncodeError):
        raise BadValue(f"{text[:64]!r} is no {kind}") from None


def key_from_text(text: str, plain: Callable[[str], Any]) -> Any:
    """Return the key of a map: a value for `type:value`, else ``plain(text)``; BadValue, EncodeError."""
    kind, colon, value = text.partition(":")
    if colon and (kind in FROM_TEXT or kind in WITH_PARTS or kind == "null"):
        return from_text(kind, value)
    return plain(text)


def from_json(text: str) -> Any:
    """Return the value of tagged JSON; BadValue. A number without a tag is a long or a double, an object a map."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"no JSON: {error}") from None
    return _value(parsed, 0)


def _value(parsed: Any, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise BadValue(f"nested more than {MAX_NESTING} deep")
    if isinstance(parsed, list):
        return [_value(each, depth + 1) for each in parsed]
    if not isinstance(parsed, dict):
        return parsed
    tag, inner = next(iter(parsed.items()), ("", None))
    if len(parsed) != 1 or not tag.startswith("$"):
        return {key: _value(each, depth + 1) for key, each in parsed.items()}
    try:
        return _tagged(tag[1:], inner, depth)
    except (TypeError, ValueError, EncodeError) as error:
        if isinstance(error, BadValue):
            raise
        raise BadValue(f"{tag[:32]} holds what it cannot: {str(inner)[:64]}") from None


def _tagged(kind: str, inner: Any, depth: int) -> Any:
    if kind == "map":
        return PairMap((_value(key, depth + 1), _value(each, depth + 1)) for key, each in inner)
    if kind == "described":
        descriptor, value = inner
        return Described(_value(descriptor, depth + 1), _value(value, depth + 1))
    if kind == "array":
        of, items, *descriptors = inner
        read = [_value(item, depth + 1) for item in items]
        return Array(str(of), read, [_value(each, depth + 1) for each in (descriptors[0] if descriptors else ())])
    if not isinstance(inner, str):
        raise TypeError
    return from_text(kind, inner)

"""Converts values between text, JSON and AMQP, for words on the command line and printed answers."""

from __future__ import annotations

import json
import math
import uuid
from typing import Any, Final, NoReturn

from trouter.config.schema import Attribute, Kind
from trouter.wire.types import Array, Described, PairMap

_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_STRUCTURED: Final = frozenset({"MAP", "LIST", "PROPERTIES"})
_EXACT: Final = {"true": True, "false": False}


def value_of(text: str, attribute: Attribute | None) -> Any:
    """Return the value of `text` for an attribute, for an unknown one text, true or false; ValueError."""
    if attribute is None:
        return _EXACT.get(text, text)
    if attribute.kind is Kind.BOOLEAN:
        return _WORDS.get(text.lower(), text)
    if attribute.kind is Kind.INTEGER:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{attribute.name} is an integer, not {text!r}") from None
    if attribute.kind.name in _STRUCTURED:
        return json_or_text(text)
    return text


def from_json(text: str | bytes) -> Any:
    """Return the value of JSON as the standard has it, without NaN and Infinity; ValueError, RecursionError."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f'{name} is no number of JSON; write "{name}"')


def json_or_text(text: str) -> Any:
    """Return JSON, or the text itself if it does not look like any; ValueError."""
    try:
        return from_json(text)
    except ValueError as bad:
        if any(character in text for character in '"{}[]'):
            raise ValueError(f"this is not JSON ({bad}): {text[:200]}") from None
        return text
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def as_json(value: object, indent: int = 2) -> str:
    """Return an answer as JSON, on one line if `indent` is negative."""
    return json.dumps(plain(value), indent=None if indent < 0 else indent, allow_nan=False)


def plain(value: object) -> object:
    """Return an AMQP value in the types of JSON: bytes, a uuid and NaN as text, of a described value the value."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | str() | int() | float():
            return value
        case dict() | PairMap():
            return {_key(key): plain(each) for key, each in value.items()}
        case list() | tuple() | Array():
            return [plain(each) for each in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode(errors="backslashreplace")
        case uuid.UUID():
            return str(value)
        case Described():
            return plain(value.value)
        case _:
            return repr(value)


def _key(key: object) -> str:
    found = plain(key)
    return found if isinstance(found, str) else json.dumps(found)

"""Converts values between text, JSON and AMQP, for words on the command line and printed answers."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from trouter.config.schema import Attribute, Kind
from trouter.wire.value_text import json_value

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
    return json.dumps(json_value(value), indent=None if indent < 0 else indent, allow_nan=False)

"""Messages as JSON and as text, for `send --json` and for `receive`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import fields, replace
from typing import Any, Final

from trouter.client import BodyKind, Header, Message, Properties
from trouter.wire.value_text import json_value

from .values import as_json, from_json

#: The sections of a message that are maps, by their names in JSON.
_MAPS: Final = {
    "delivery-annotations": "delivery_annotations",
    "message-annotations": "message_annotations",
    "application-properties": "application_properties",
    "footer": "footer",
}
_LISTS: Final = {"header": Header, "properties": Properties}
_KINDS: Final = {kind.name.lower(): kind for kind in BodyKind}
_BODY: Final = frozenset({"body", "body-base64", "body-kind"})


def with_json(base: Message, text: str | bytes) -> Message:
    """Return `base` with the fields of a JSON object; ValueError."""
    try:
        given = from_json(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except ValueError as bad:
        raise ValueError(f"this is not JSON: {bad}") from None
    if not isinstance(given, dict):
        raise ValueError("a message is a JSON object")
    unknown = given.keys() - _BODY - _MAPS.keys() - _LISTS.keys()
    if unknown:
        known = ", ".join(sorted({*_BODY, *_MAPS, *_LISTS}))
        raise ValueError(f"a message has no {min(unknown)!r}; it has {known}")
    found: dict[str, Any] = {
        attribute: {**getattr(base, attribute), **_object(given, name)} for name, attribute in _MAPS.items()
    }
    for name, kind in _LISTS.items():
        found[name] = replace(getattr(base, name), **_fields(kind, name, _object(given, name)))
    return Message(**found, **_body(given))


def _object(given: dict[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"{name} is a JSON object")
    return value


def _fields(kind: type[Header | Properties], section: str, given: dict[str, Any]) -> dict[str, Any]:
    known = {field.name.replace("_", "-"): field.name for field in fields(kind)}
    unknown = given.keys() - known.keys()
    if unknown:
        raise ValueError(f"{section} has no {min(unknown)!r}; it has {', '.join(known)}")
    return {known[name]: value.encode() if name == "user-id" else value for name, value in given.items()}


def _body(given: dict[str, Any]) -> dict[str, Any]:
    kind = given.get("body-kind")
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"body-kind is one of {', '.join(_KINDS)}")
    if "body-base64" in given:
        if kind not in {None, "data", "value"} or "body" in given:
            raise ValueError("body-base64 is the only body, and its kind is data or value")
        try:
            data = base64.b64decode(given["body-base64"], validate=True)
            return {"body": data, "kind": _KINDS[kind or "data"]}
        except (TypeError, ValueError, binascii.Error):
            raise ValueError("body-base64 is no base64") from None
    body = given.get("body")
    if kind == "data":
        if not isinstance(body, str):
            raise ValueError("a body of the kind data is text, or given as body-base64")
        return {"body": body.encode()}
    return {"body": body, "kind": None if kind is None else _KINDS[kind]}


def as_map(message: Message) -> dict[str, object]:
    """Return the message as a map that `with_json` reads, without absent fields."""
    found: dict[str, object] = {}
    for name, kind in _LISTS.items():
        section = getattr(message, name)
        given = {
            field.name.replace("_", "-"): json_value(value)
            for field in fields(kind)
            if (value := getattr(section, field.name)) != field.default
        }
        found |= {name: given} if given else {}
    found |= {name: json_value(value) for name, attribute in _MAPS.items() if (value := getattr(message, attribute))}
    match message.kind, message.body:
        case BodyKind.DATA, bytes(body):
            text = _text(body)
            found |= {"body-base64": base64.b64encode(body).decode()} if text is None else {"body": text}
            found |= {} if text is None else {"body-kind": "data"}
        case BodyKind.VALUE, bytes(body):
            found |= {"body-base64": base64.b64encode(body).decode(), "body-kind": "value"}
        case BodyKind.VALUE, body:
            found["body"] = json_value(body)
        case BodyKind.SEQUENCE, body:
            found |= {"body": json_value(body), "body-kind": "sequence"}
        case _:
            found["body-kind"] = "absent"
    return found


def body_bytes(message: Message) -> bytes:
    """Return a body as a file holds it: bytes and text as they are, anything else as JSON."""
    body = message.body
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode(errors="surrogateescape")
    return b"" if message.kind is BodyKind.ABSENT else as_json(body, -1).encode()


def scalar(text: str) -> Any:
    """Return a number, boolean or null that the text writes as JSON does, else the text."""
    try:
        value = from_json(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str | list | dict) else value


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None

"""Converts the written value of an attribute into the value that the entity holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from trouter.config.nodes import Entry, Items, Map, Node, Scalar, literal
from trouter.config.passwords import Secret
from trouter.config.problems import SourcePosition, nearest
from trouter.config.schema import Attribute, BadValue, Kind, OutOfRange

TRUE: Final = frozenset({"yes", "true", "on"})
FALSE: Final = frozenset({"no", "false", "off"})
INT64: Final = range(-(2**63), 2**63)


def convert(attribute: Attribute, node: Node) -> tuple[object, object]:
    """Return the written value, a ``Secret`` for a secret, and the value for the entity's field; BadValue."""
    if attribute.kind is Kind.MAP:
        return plain(node), node if attribute.parse is None else attribute.parse(node)
    if attribute.entries and isinstance(node, Items):
        texts = [_string(attribute, item) for item in node.items]
        return texts, _parsed(attribute, texts)
    written = CONVERTERS[attribute.kind](attribute, node)
    if attribute.entries:
        return written, _parsed(attribute, str(written).split(","))
    value = written if attribute.parse is None else attribute.parse(written)
    return (Secret(str(written)) if attribute.secret else written), value


def _parsed(attribute: Attribute, texts: Iterable[str]) -> object:
    entries = tuple([entry for text in texts if (entry := text.strip())])
    return entries if attribute.parse is None else attribute.parse(entries)


def as_node(value: object, place: SourcePosition) -> Node:
    """Return the node of a typed value, of a request or of an entity's ``written``; BadValue."""
    match value:
        case Secret():
            return Scalar(value.reveal(), place, quoted=True)
        case Mapping():
            return Map(tuple(Entry(str(key), place, as_node(item, place)) for key, item in value.items()), place)
        case list() | tuple():
            return Items(tuple(as_node(item, place) for item in value), place)
        case bool() | None:
            return Scalar(value, place, quoted=True)
        case int():
            return Scalar(int(value), place, quoted=True)
        case float():
            return Scalar(float(value), place, quoted=True)
        case str():
            return Scalar(str(value), place, quoted=True)
    raise BadValue(f"a value of the type {type(value).__name__} cannot be used here", "a text, a number or a map")


def as_written(node: Node) -> str:
    """Return the text of a node for a problem; of a list or a map only its brackets."""
    match node:
        case Scalar(value=value):
            return text_of(value)
        case Items():
            return "[...]"
        case _:
            return "{...}"


def text_of(value: object) -> str:
    """Return a JSON scalar as its text in the `.conf` form."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _string(attribute: Attribute, node: Node) -> str:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    match node:
        case Scalar(value=value) if not attribute.text_only:
            return text_of(value)
        case Items(items=items) if not attribute.text_only and all(isinstance(item, Scalar) for item in items):
            return ", ".join(as_written(item) for item in items)
    name = attribute.name.capitalize()
    message = f"{name} must be a non-empty string type" if attribute.text_only else "must be text"
    raise BadValue(message, "write a text, in quotes if need be")


def _integer(attribute: Attribute, node: Node) -> int:
    text = as_written(node).strip()
    bounds = f"an integer from {attribute.low} to {attribute.high}"
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise BadValue("must be an integer", bounds)
    number = int(text) if len(text) < 20 else (INT64.start if text.startswith("-") else INT64.stop)
    if not attribute.low <= number <= attribute.high:
        raise OutOfRange(attribute.low if number < attribute.low else attribute.high, bounds)
    return number


def _boolean(attribute: Attribute, node: Node) -> bool:
    word = as_written(node).lower()
    if isinstance(node, Scalar) and isinstance(node.value, bool | str) and word in TRUE | FALSE:
        return word in TRUE
    if isinstance(node, Scalar) and isinstance(node.value, int):
        return bool(node.value)
    raise BadValue("must be yes or no", "yes, true, on, no, false or off")


def _enum(attribute: Attribute, node: Node) -> str:
    text = as_written(node)
    if text.isdecimal() and text.isascii() and len(text) < 4 and int(text) < len(attribute.values):
        text = attribute.values[int(text)]
    text = attribute.also.get(text.lower(), text)
    if text not in attribute.values:
        suggestion = nearest(text, attribute.values) or f"one of {', '.join(attribute.values)}"
        raise BadValue("is not one of the values", suggestion)
    return text


def _properties(attribute: Attribute, node: Node) -> Mapping[str, object]:
    if not isinstance(node, Map):
        raise BadValue("Properties must be a map", f"write: {attribute.name}: {{ name: value }}")
    return {entry.key: plain(entry.node) for entry in node.entries}


def plain(node: Node) -> object:
    """Return the Python value of a node, with the unquoted numbers and truth values of the `.conf` form; BadValue."""
    if isinstance(node, Map):
        return {key: plain(value) for key, _, value in node.entries}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    value = node.value
    if isinstance(value, str):
        if node.quoted:
            return value
        value = literal(value)
    if isinstance(value, int) and value not in INT64:
        raise BadValue("an integer must fit into 64 bits", "put it in quotes")
    return value


CONVERTERS: Final[dict[Kind, Callable[[Attribute, Node], object]]] = {
    Kind.STRING: _string,
    Kind.PATH: _string,
    Kind.INTEGER: _integer,
    Kind.BOOLEAN: _boolean,
    Kind.ENUM: _enum,
    Kind.PROPERTIES: _properties,
}

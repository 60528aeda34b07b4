"""The schema of GET-SCHEMA, which omits what is false, empty or zero."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from trouter.config.schema import PREFIX, Attribute, EntityType
from trouter.config.types import TYPES
from trouter.wire.codec import encode

from .kinds import listed_operations
from .providers.parted import AT_ONE, WORKER, WORKER_TEXT
from .values import to_wire

MAX_INDENT: Final = 16


@cache
def schema(of_node: tuple[str, ...], has_workers: bool = False) -> dict[str, Any]:
    """Return the answer to GET-SCHEMA; ``of_node`` are the operations of the management node.

    Entities of a router that ``has_workers`` have the number of theirs.
    """
    return {
        "prefix": PREFIX,
        "entityTypes": {
            kind.key: _with_worker(described(kind, of_node))
            if has_workers and kind.short in AT_ONE
            else described(kind, of_node)
            for kind in TYPES
        },
    }


def _with_worker(described: dict[str, Any]) -> dict[str, Any]:
    """Return a type whose entities have the attribute with the number of their worker."""
    attributes = {**described["attributes"], WORKER: {"type": "integer", "description": WORKER_TEXT}}
    return {**described, "attributes": attributes}


@cache
def encoded_schema(of_node: tuple[str, ...], has_workers: bool = False) -> bytes:
    """Return the schema as an encoded AMQP value."""
    return encode(to_wire(schema(of_node, has_workers)))


def schema_text(of_node: tuple[str, ...], indent: int | None, has_workers: bool = False) -> str:
    """Return the schema as JSON, on one line without ``indent``."""
    return json.dumps(
        schema(of_node, has_workers), indent=None if indent is None or indent < 0 else min(indent, MAX_INDENT)
    )


def described(kind: EntityType, of_node: tuple[str, ...]) -> dict[str, Any]:
    """Return one type in the answer to GET-SCHEMA; ``of_node`` are the operations of the management node."""
    attributes = {each.name: _attribute(each) for each in kind.attributes if each.name != "type"}
    return _without_nothing(
        {
            "attributes": attributes,
            "operations": list(listed_operations(kind, of_node)),
            "description": kind.doc,
            "fullyQualifiedType": kind.full_name,
            "deprecated": kind.deprecated,
            "singleton": kind.singleton,
        }
    )


def _attribute(attribute: Attribute) -> dict[str, Any]:
    return _without_nothing(
        {
            "type": attribute.type_name,
            "default": attribute.schema_default,
            "required": attribute.required,
            "unique": attribute.unique,
            "deprecated": attribute.deprecated,
            "description": attribute.doc,
            "graph": attribute.graph,
            # Qpid Dispatch leaves out what a client may set; its tools read past it.
            "create": attribute.create,
            "update": attribute.update,
        }
    )


def _without_nothing(described: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in described.items() if value}

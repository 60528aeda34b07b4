"""The schema as GET-SCHEMA tells it: what is false, empty or zero is left out."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from trouter.config.schema import Attribute, EntityType
from trouter.config.types import TYPES

from .kinds import listed_operations
from .values import to_wire

PREFIX: Final = "org.apache.qpid.dispatch"
MAX_INDENT: Final = 16


@cache
def schema() -> dict[str, Any]:
    """The answer to GET-SCHEMA."""
    return {"prefix": PREFIX, "entityTypes": {kind.schema_key: _described(kind) for kind in TYPES}}


def schema_text(indent: int | None) -> str:
    """The same as JSON, on one line without ``indent``."""
    return json.dumps(schema(), indent=None if indent is None or indent < 0 else min(indent, MAX_INDENT))


def _described(kind: EntityType) -> dict[str, Any]:
    attributes = {each.name: _attribute(each) for each in kind.attributes if each.name != "type"}
    return _without_nothing(
        {
            "attributes": attributes,
            "operations": list(listed_operations(kind)),
            "description": kind.doc,
            "fullyQualifiedType": kind.full_name,
            "deprecated": kind.deprecated,
            "singleton": kind.singleton,
        }
    )


def _attribute(attribute: Attribute) -> dict[str, Any]:
    kind = attribute.type_name
    return _without_nothing(
        {
            "type": kind if isinstance(kind, str) else list(kind),
            "default": _plain(attribute.default),
            "required": attribute.required,
            "unique": attribute.unique,
            "deprecated": attribute.deprecated,
            "description": attribute.doc,
            "graph": attribute.graph,
        }
    )


def _plain(value: object) -> object:
    """A default as JSON can say it."""
    made = to_wire(value)
    return int(made) if isinstance(made, int) and not isinstance(made, bool) else made


def _without_nothing(described: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in described.items() if value}

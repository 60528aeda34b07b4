"""The rows that management shows of configured entities."""

from __future__ import annotations

from typing import Final

from trouter.config.entities import Entity
from trouter.config.schema import Attribute, Unset

#: Stands for a secret. Writing it back changes nothing.
HIDDEN: Final = "*****"


def row(entity: Entity) -> dict[str, object]:
    """Return every attribute in the order of the schema, None if it has no value to show; secrets are hidden.

    An attribute with two names appears twice.
    """
    shown: dict[str, object] = {}
    for attribute in entity.type.own:
        value = shown_value(entity, attribute)
        shown[attribute.name] = value
        if attribute.twin:
            shown[attribute.twin] = value
    return {**shown, "name": entity.name or None, "identity": entity.identity, "type": entity.type.full_name}


def shown_value(entity: Entity, attribute: Attribute) -> object:
    """Return one attribute as management shows it: the written text if the value is not plain."""
    if not attribute.field:
        return None
    if attribute.unset is not Unset.DEFAULT and attribute.field not in entity.written:
        return attribute.unset
    value = getattr(entity, attribute.field)
    if attribute.secret:
        return None if value is None else HIDDEN
    if value is None or isinstance(value, str | int):
        return value
    return entity.written.get(attribute.field, attribute.shown)

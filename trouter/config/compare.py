"""Compares the configuration in force with the one that a reload has read."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from trouter.config.claims import Claim, World, claims
from trouter.config.configuration import HOLDS, INDEXES, ONE_ONLY, Configuration
from trouter.config.entities import (
    AddressEntity,
    AutoLinkEntity,
    BindingEntity,
    Entity,
    LinkRouteEntity,
    LogEntity,
    RecordLogEntity,
    VhostEntity,
)
from trouter.config.rows import shown_value
from trouter.config.schema import Attribute, Reload


@dataclass(frozen=True, slots=True)
class Updated:
    """An entity that changes, and the attributes that differ."""

    old: Entity
    new: Entity
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a reload, and the configuration that they lead to."""

    configuration: Configuration
    created: tuple[Entity, ...] = ()
    deleted: tuple[Entity, ...] = ()
    updated: tuple[Updated, ...] = ()
    kept: int = 0
    #: Sentences about changes that need a restart; the configuration does not have them.
    restart: tuple[str, ...] = ()


def compare(old: Configuration, new: Configuration) -> Changes:
    """Return the changes from the configuration in force, `old`, to the one that was read.

    Entities that the file does not name are deleted, even if management created them. Entities that stay keep their
    identities.
    """
    created: list[Entity] = []
    deleted: list[Entity] = []
    updated: list[Updated] = []
    restart: list[str] = []
    kept = 0
    fields: dict[str, Any] = {}
    for field in HOLDS:
        present = _by_key(old.held(field))
        numbers = {entity.numbered_by: entity.number for entity in sorted(present.values(), key=_number)}
        held: list[Entity] = []
        for key, wanted in _by_key(new.held(field)).items():
            entity = present.pop(key, None)
            if entity is None:
                fresh = _fresh(wanted, numbers)
                created.append(fresh)
                held.append(fresh)
                continue
            merged, changed = _merged(entity, wanted, restart)
            held.append(merged)
            if changed:
                updated.append(Updated(entity, merged, changed))
            else:
                kept += 1
        deleted += present.values()
        fields[field] = held[0] if field in ONE_ONLY else tuple(held)
    configuration = dataclasses.replace(new, **fields)
    for index in INDEXES:  # computed now: a reload may take the time, a later change may not
        getattr(configuration, index)
    return Changes(configuration, tuple(created), tuple(deleted), tuple(updated), kept, tuple(restart))


def _number(entity: Entity) -> int:
    return entity.number


def _by_key(entities: tuple[Entity, ...]) -> dict[Hashable, Entity]:
    """Return the entities by the key that identifies them in another configuration."""
    seen: Counter[Hashable] = Counter()
    found: dict[Hashable, Entity] = {}
    for entity in entities:
        key = _key(entity)
        found[key, seen[key]] = entity
        seen[key] += 1
    return found


def _key(entity: Entity) -> Hashable:
    match entity:
        case AddressEntity():
            return next((claim.key for claim in _claims(entity) if claim.field != "name"), None)
        case LogEntity():
            return entity.module
        case RecordLogEntity():
            return entity.dir
        case VhostEntity():
            return entity.hostname.casefold()
    if entity.type.singleton:
        return entity.type.short
    if entity.named:
        return "named", entity.name
    match entity:
        case LinkRouteEntity():
            return entity.direction, entity.prefix, entity.pattern, entity.connection, entity.container_id
        case AutoLinkEntity():
            return entity.direction, entity.address, entity.phase, entity.connection, entity.container_id
        case BindingEntity():
            return entity.exchange_name, entity.binding_key, entity.next_hop_address, entity.next_hop_phase
    return entity.numbered_by


def _claims(entity: Entity) -> Iterator[Claim]:
    return claims(entity.type, partial(getattr, entity), World())


def _fresh(entity: Entity, numbers: dict[str, int]) -> Entity:
    """Return ``entity`` as a new one, with a number that no other has."""
    if not entity.numbered_by:
        return entity
    number = numbers.get(entity.numbered_by, -1) + 1
    numbers[entity.numbered_by] = number
    return entity if entity.number == number else _renumbered(entity, number)


def _renumbered(entity: Entity, number: int, **others: Any) -> Entity:
    """Return the same entity with another number; a name by default follows the number."""
    name = entity.name if entity.named else ""
    return dataclasses.replace(entity, name=name, number=number, **others)


def _merged(old: Entity, new: Entity, restart: list[str]) -> tuple[Entity, tuple[str, ...]]:
    """Return the new form of `old` and its changed attributes; those that need a restart stay and go to `restart`."""
    changed: list[str] = []
    kept: dict[str, Any] = {}
    for attribute in new.type.fields:
        before, after = getattr(old, attribute.field), getattr(new, attribute.field)
        if attribute.field == "name":
            if old.named != new.named or (new.named and before != after):
                changed.append(attribute.name)
            continue
        if before == after:
            continue
        if attribute.reload is Reload.RESTART:
            kept[attribute.field] = before
            if attribute.field in old.written or attribute.field in new.written:
                restart.append(_described(old, new, attribute))
        else:
            changed.append(attribute.name)
    if kept:
        written = {field: value for field, value in new.written.items() if field not in kept}
        kept["written"] = {**written, **{field: old.written[field] for field in kept if field in old.written}}
    if not changed:
        return old if old.place == new.place else _renumbered(old, old.number, place=new.place), ()
    return _renumbered(new, old.number, **kept), tuple(changed)


def _described(old: Entity, new: Entity, attribute: Attribute) -> str:
    values = (shown_value(old, attribute), shown_value(new, attribute))
    before, after = ("none" if value is None else f"'{value}'" for value in values)
    return f"{old.type.section}.{attribute.name}: {before} stays until a restart, then {after}"

"""Changes of a configuration while the router runs: they obey the rules of files, and apply as a whole or not at all.

Nothing here touches running parts: each function returns another configuration, which its caller puts into service.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Final

from trouter.config.claims import NAME_CONFLICT, claims, references
from trouter.config.compare import Changes, Updated, compare
from trouter.config.configuration import Configuration
from trouter.config.draft import Draft, draft_of
from trouter.config.entities import MANAGEMENT, BindingEntity, Entity, ExchangeEntity, VhostEntity
from trouter.config.keepers import keepers_of_process
from trouter.config.nodes import Entry, Section, is_null
from trouter.config.problems import Findings, Problem, ProblemKind, fit_to_show
from trouter.config.remote import FILES, holds_secret, withheld, withheld_file, withheld_secret
from trouter.config.rows import HIDDEN, row, shown_value
from trouter.config.rules import check_one
from trouter.config.schema import Attribute, BadValue, EntityType, Unset
from trouter.config.trusted import judge_files
from trouter.config.types import type_named
from trouter.config.values import CONVERTERS, as_node, convert

__all__ = ["ChangeRefused", "Changes", "Updated", "compare", "created", "deleted", "row", "updated"]

BAD_REQUEST, FORBIDDEN, NOT_FOUND, NOT_IMPLEMENTED = 400, 403, 404, 501
#: The status that Qpid Dispatch answers, and its tools expect, if a vhost is invalid.
POLICY_ERROR: Final = 500


class Why(StrEnum):
    """What a program decides by, where a text is for people and a status has several meanings."""

    OTHER = ""
    #: The requester's rights do not suffice.
    RIGHTS = "rights"
    #: There is no such entity.
    ABSENT = "absent"


class ChangeRefused(Exception):
    """The change was not made; the status and the text are for the requester."""

    def __init__(self, status: int, description: str, why: Why = Why.OTHER) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.why = why


def created(
    configuration: Configuration, kind: EntityType, name: str | None, attributes: Mapping[str, object]
) -> tuple[Configuration, Entity]:
    """Return the configuration with a new entity and this change's warnings, and the entity; ChangeRefused."""
    if kind.short == "console":
        raise ChangeRefused(FORBIDDEN, "Forbidden")
    if kind.entity is None or "CREATE" not in kind.all_operations:
        raise ChangeRefused(NOT_IMPLEMENTED, f"Operation CREATE not implemented on {kind.full_name}")
    given = {key: value for key, value in attributes.items() if value is not None}
    _same_type(kind, given.pop("type", None))
    for key, value in given.items():
        if value == HIDDEN and (attribute := _attribute(kind, key)) is not None and attribute.secret:
            why = f"{HIDDEN} stands for a secret that is not shown; write the secret"
            raise ChangeRefused(BAD_REQUEST, f"{kind.section}.{attribute.name}: {why}")
    if name and given.setdefault("name", name) != name:
        raise ChangeRefused(BAD_REQUEST, f"Conflicting names: '{name}' and {_quoted(given['name'])}")
    if "identity" in given:
        raise ChangeRefused(BAD_REQUEST, f"The attribute 'identity' of '{kind.full_name}' cannot be set")
    draft, findings = _drafted(configuration, kind, [_entry(kind, key, value) for key, value in given.items()])
    entity = draft.build()
    if entity.numbered_by:
        alike = [one.number for one in configuration.of(kind.short) if one.numbered_by == entity.numbered_by]
        entity = draft.build(max(alike, default=-1) + 1)
    _permitted(configuration, entity, None)
    _unclaimed(configuration, entity, None)
    _served(configuration, entity)
    return configuration.with_entity(entity).with_warnings(findings.warnings), entity


def updated(
    configuration: Configuration,
    entity: Entity,
    attributes: Mapping[str, object],
    shown: Mapping[str, object] | None = None,
) -> tuple[Configuration, Entity]:
    """Return the configuration with other attributes of an entity, and the changed entity; ChangeRefused.

    Attributes that are not mentioned stay, None restores the default. `shown` has the attributes as management shows
    them: a read-only attribute may be mentioned with the value it has there.
    """
    kind = entity.type
    if "UPDATE" not in kind.all_operations:
        raise ChangeRefused(NOT_IMPLEMENTED, f"Operation UPDATE not implemented on {kind.full_name}")
    present = row(entity) if shown is None else shown
    given: list[Entry] = []
    mentioned: set[str] = set()
    for key, value in attributes.items():
        attribute = _attribute(kind, key)
        if attribute is not None and not (attribute.update and attribute.field):
            _unchanged(entity, attribute, value, present)
            continue
        if attribute is not None and attribute.secret and value == HIDDEN:
            continue
        if attribute is not None and _is_shown_as_unset(entity, attribute, value):
            continue
        if attribute is not None:
            mentioned.add(attribute.field)
        if value is not None or attribute is None:
            given.append(_entry(kind, key, value))
    kept = [
        _entry(kind, attribute.name, written)
        for attribute in kind.fields
        if attribute.field not in mentioned and (written := _written(entity, attribute)) is not None
    ]
    draft, findings = _drafted(configuration, kind, [*kept, *given])
    changed = draft.build(entity.number)
    _permitted(configuration, changed, entity)
    _unclaimed(configuration, changed, entity)
    _served(configuration, changed)
    return configuration.with_other(entity, changed).with_warnings(findings.warnings), changed


def deleted(configuration: Configuration, entity: Entity) -> Configuration:
    """Return the configuration without an entity; ChangeRefused."""
    kind = entity.type
    if kind.short == "console":
        raise ChangeRefused(FORBIDDEN, "Forbidden")
    if "DELETE" not in kind.all_operations:
        raise ChangeRefused(NOT_IMPLEMENTED, f"Operation DELETE not implemented on {kind.full_name}")
    if configuration.find(entity.identity) is not entity:
        raise ChangeRefused(NOT_FOUND, f"No entity with identity={entity.identity}", Why.ABSENT)
    user = _user_of(configuration, entity) if kind.referenced else None
    if user is not None:
        raise ChangeRefused(BAD_REQUEST, f"{user.identity} uses this {kind.short}; UPDATE changes it in its place")
    return configuration.without(entity).with_warnings(())


def lasting_warnings(present: Configuration, changed: Configuration) -> tuple[Problem, ...]:
    """Return the warnings about the file that still hold after a change: those in sections whose entities stay.

    A section without an entity, which was left out, counts as part of the section before it.
    """
    entities = sorted((entity for entity in present.entities if entity.place.line), key=lambda entity: entity.place)
    starts = [entity.place for entity in entities]
    lasting = []
    for warning in present.warnings:
        number = bisect_right(starts, warning.place) - 1
        owner = entities[number] if number >= 0 and starts[number].file == warning.place.file else None
        if owner is None or changed.find(owner.identity) is owner:
            lasting.append(warning)
    return tuple(lasting)


def _user_of(configuration: Configuration, entity: Entity) -> Entity | None:
    """Return an entity that refers to `entity` by its name; None without one."""
    for other in configuration.entities:
        for field, kind in references(other.type):
            named = getattr(other, field)
            if kind is entity.type and entity.name in (named if isinstance(named, tuple) else (named,)):
                return other
    return None


def _drafted(configuration: Configuration, kind: EntityType, entries: list[Entry]) -> tuple[Draft, Findings]:
    """Return a draft without errors, and the findings; ChangeRefused with all errors."""
    _sources_permitted(configuration, kind, entries)
    findings = Findings(secure=configuration.world.secure, single=True)
    draft = draft_of(kind, Section(kind.section, MANAGEMENT, tuple(entries)), findings)
    check_one(draft, configuration.world, partial(_names, configuration))
    judge_files([draft], findings, keepers_of_process())
    if findings.errors:
        status = POLICY_ERROR if kind.entity is VhostEntity else BAD_REQUEST
        raise ChangeRefused(status, _description(draft, findings.errors))
    return draft, findings


def _description(draft: Draft, problems: Collection[Problem]) -> str:
    """Return all problems in one line."""
    text = "; ".join(_described(draft.type, problem) for problem in problems)
    if draft.type.entity is VhostEntity:
        return f"PolicyError: Policy '{draft.values.get('hostname')}' is invalid: {text}"
    return text


#: Entities whose errors are shown as bare texts, as programs know them from Qpid Dispatch.
BARE: Final[tuple[type | None, ...]] = (ExchangeEntity, BindingEntity)


def _described(kind: EntityType, problem: Problem) -> str:
    if problem.message == "unknown attribute" and "." not in problem.key:
        suggestion = f" ({problem.suggestion})" if problem.suggestion else ""
        return f"Unknown attribute {fit_to_show(problem.key) or repr('')} for '{kind.full_name}'{suggestion}"
    if kind.entity in BARE or problem.kind is ProblemKind.OLDER:
        return problem.message
    return str(problem).removeprefix(f"{problem.place}: ")


def _names(configuration: Configuration, short: str) -> Collection[str]:
    return {entity.name for entity in configuration.of(short)}


def _written(entity: Entity, attribute: Attribute) -> object:
    """Return the written value of an attribute, or the one that follows from it; None if it has its default."""
    if attribute.name == "name":
        return entity.given_name or None
    value = getattr(entity, attribute.field)
    plain = value if isinstance(value, str | int) and value != attribute.default else None
    return entity.written.get(attribute.field, plain)


def _attribute(kind: EntityType, key: str) -> Attribute | None:
    return kind.attribute_spelled(key) or kind.attribute(key)


def _entry(kind: EntityType, key: str, value: object) -> Entry:
    try:
        return Entry(key, MANAGEMENT, as_node(value, MANAGEMENT))
    except BadValue as bad:
        raise ChangeRefused(BAD_REQUEST, f"{kind.section}.{fit_to_show(key)}: {bad.message}") from None


def _is_shown_as_unset(entity: Entity, attribute: Attribute, value: object) -> bool:
    """Return whether `value` is the one that management shows for an attribute that was never given."""
    return attribute.unset is not Unset.DEFAULT and attribute.field not in entity.written and value == attribute.unset


def _unchanged(entity: Entity, attribute: Attribute, value: object, present: Mapping[str, object]) -> None:
    """Raise ChangeRefused unless `value` is the present value of an attribute that cannot be changed."""
    kind = entity.type
    if attribute.name == "type":
        _same_type(kind, value)
        return
    there = present.get(attribute.name)
    if value == there or (value is None and there is None):
        return
    if attribute.field and attribute.field in entity.written:
        try:
            written, _ = convert(attribute, as_node(value, MANAGEMENT))
        except BadValue:
            written = None
        if written is not None and written in (there, shown_value(entity, attribute)):
            return
    raise ChangeRefused(BAD_REQUEST, f"The attribute '{attribute.name}' of '{kind.full_name}' cannot be changed")


def _same_type(kind: EntityType, value: object) -> None:
    if value is not None and (not isinstance(value, str) or type_named(value) is not kind):
        raise ChangeRefused(BAD_REQUEST, f"Conflicting types: '{kind.full_name}' and {_quoted(value)}")


def _quoted(value: object) -> str:
    return fit_to_show(str(value)) or repr("")


def _permitted(configuration: Configuration, entity: Entity, present: Entity | None) -> None:
    if reason := withheld(configuration, entity, present):
        raise ChangeRefused(FORBIDDEN, reason)


def withheld_sources(
    configuration: Configuration, kind: EntityType, entries: Iterable[Entry]
) -> Iterator[tuple[Entry, str]]:
    """Yield the entries whose secret or file would be read from a place that management may not use, and why.

    Call this before anything is read.
    """
    for entry in entries:
        attribute = _attribute(kind, entry.key)
        if attribute is None or is_null(entry.node) or not (holds_secret(attribute) or attribute.field in FILES):
            continue
        judge = withheld_secret if holds_secret(attribute) else withheld_file
        with suppress(BadValue):  # not a text: drafting reports that
            text = str(CONVERTERS[attribute.kind](attribute, entry.node))
            if reason := judge(configuration, attribute, text):
                yield entry, reason


def _sources_permitted(configuration: Configuration, kind: EntityType, entries: Iterable[Entry]) -> None:
    """Raise ChangeRefused if a secret or a file would be read from a place that management may not use."""
    for _, reason in withheld_sources(configuration, kind, entries):
        raise ChangeRefused(FORBIDDEN, f"{kind.section}.{reason}")


def _unclaimed(configuration: Configuration, entity: Entity, present: Entity | None) -> None:
    """Raise ChangeRefused if another entity has a unique value of this one."""
    for claim in claims(entity.type, partial(getattr, entity), configuration.world):
        owner = configuration.claimed.get(claim.key)
        if owner is not None and owner is not present:
            if entity.type.entity in BARE:
                raise ChangeRefused(BAD_REQUEST, claim.message)
            key = f"{entity.type.section}.{claim.field}: " if claim.field else ""
            if claim.message == NAME_CONFLICT:
                raise ChangeRefused(BAD_REQUEST, NAME_CONFLICT)  # other programs look for this text alone
            raise ChangeRefused(BAD_REQUEST, f"{key}{claim.message} ({owner.identity})")
    owner = configuration.find(entity.identity)
    if owner is not None and owner is not present:
        raise ChangeRefused(BAD_REQUEST, f"{entity.identity}: this identity is used already")


def _served(configuration: Configuration, entity: Entity) -> None:
    if reasons := configuration.unserved(entity):
        raise ChangeRefused(NOT_IMPLEMENTED, f"{entity.type.section}: not served: {'; '.join(reasons)}")

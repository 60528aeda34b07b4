"""A configuration as text, for other processes of the same router: the JSON form of a file, and what no file says.

The first line is a JSON object with what the sections cannot say: where each came from, passwords that were read from
files or the environment, values that follow from other sections, findings. The other lines are a file in the JSON form
with one section a line. The reader of files reads it, so a worker has what it would have read itself, except that
nothing is read again that the first worker has read: the file of a password may have changed since.

The text has the passwords in clear: it is for a socket or memory that only processes of the router have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from trouter.config.acceptances import Acceptance
from trouter.config.collector import held_back
from trouter.config.configuration import HOLDS, ONE_ONLY, Configuration
from trouter.config.draft import Draft, draft_section
from trouter.config.entities import Entity
from trouter.config.json_form import parse_json
from trouter.config.passwords import Secret
from trouter.config.problems import ConfigurationError, Findings, Problem, ProblemKind, Severity, SourcePosition
from trouter.config.rules import check_one, world_of

#: How the text calls itself in a finding about it.
FILE: Final = "(first worker)"
#: What stands in a section for a password; the password itself is in the first line.
_STAND_IN: Final = "literal:"


def write_portable(configuration: Configuration) -> bytes:
    """Return the configuration as text in UTF-8, with its passwords."""
    sections, entities = [], []
    for entity in configuration.entities:
        attributes, unwritten, secrets = _attributes(entity)
        sections.append(json.dumps([entity.type.section, attributes]))
        entities.append([*entity.place, entity.number, unwritten, secrets])
    head = {
        "source": configuration.source,
        "entities": entities,
        "warnings": [asdict(each) for each in configuration.warnings],
        "acceptances": [asdict(each) for each in configuration.acceptances],
    }
    return "\n".join([json.dumps(head), "[", ",\n".join(sections), "]"]).encode()


def read_portable(octets: bytes) -> Configuration:
    """Return the configuration in a text of ``write_portable``.

    ConfigurationError if an entity cannot be read; ValueError, LookupError or TypeError if this is no such text.
    """
    line, _, text = octets.decode().partition("\n")
    head = json.loads(line)
    findings = Findings()
    with held_back():
        sections = parse_json(text, FILE, findings)
        drafts = [draft for section in sections if (draft := draft_section(section, findings)) is not None]
        world = world_of(drafts)
        names: dict[str, set[str]] = {}
        for draft in drafts:
            names.setdefault(draft.type.short, set()).add(str(draft.value("name") or ""))
        for draft in drafts:
            check_one(draft, world, lambda short: names.get(short, ()))
        if findings.errors:
            raise ConfigurationError(findings.errors)
        entities = [_entity(draft, facts) for draft, facts in zip(drafts, head["entities"], strict=True)]
        return _configuration(head, entities)


def _attributes(entity: Entity) -> tuple[dict[str, object], list[str], dict[str, object]]:
    """Return the attributes of a section, the fields that the entity was not given, and its passwords by field."""
    attributes: dict[str, object] = {}
    unwritten: list[str] = []
    secrets: dict[str, object] = {}
    for attribute in entity.type.fields:
        field = attribute.field
        value = entity.given_name or None if field == "name" else getattr(entity, field)
        written = entity.written.get(field)
        if isinstance(value, Secret):
            secrets[field] = [value.reveal(), value.in_clear, value.path, value.fault, _revealed(written)]
            written = _STAND_IN
        elif field not in entity.written and value != attribute.default and isinstance(value, str | int):
            written = value
        if written is not None:
            attributes[attribute.name] = written
            if field not in entity.written:
                unwritten.append(field)
    return attributes, unwritten, secrets


def _revealed(written: object) -> object:
    return written.reveal() if isinstance(written, Secret) else written


def _entity(draft: Draft, facts: list[Any]) -> Entity:
    """Return the entity of a section with what the first line says of it."""
    file, line, column, number, unwritten, secrets = facts
    place = SourcePosition(file, line, column)
    for field, (text, in_clear, path, fault, written) in secrets.items():
        draft.values[field] = Secret(text, in_clear=in_clear, path=path, fault=fault)
        draft.written[field] = Secret(written)
    for field in unwritten:
        draft.written.pop(field, None)
    draft.section = draft.section._replace(place=place)
    return draft.build(number)


def _configuration(head: Mapping[str, Any], entities: list[Entity]) -> Configuration:
    fields: dict[str, Any] = {
        field: tuple(entity for entity in entities if type(entity) is kind) for field, kind in HOLDS.items()
    }
    for field in ONE_ONLY:
        (fields[field],) = fields[field]
    return Configuration(
        **fields,
        source=head["source"],
        warnings=tuple(map(_problem, head["warnings"])),
        acceptances=tuple(map(_acceptance, head["acceptances"])),
    )


def _problem(fields: dict[str, Any]) -> Problem:
    typed = {
        "place": SourcePosition(*fields["place"]),
        "severity": Severity(fields["severity"]),
        "kind": ProblemKind(fields["kind"]),
    }
    return Problem(**{**fields, **typed})


def _acceptance(fields: dict[str, Any]) -> Acceptance:
    places = {
        name: None if fields[name] is None else SourcePosition(*fields[name]) for name in ("place", "begin", "end")
    }
    return Acceptance(**{**fields, **places})

"""One section against its row of the table: names looked up, values converted, everything wrong reported."""

from __future__ import annotations

from dataclasses import dataclass, field

from trouter.config.entities import ENTITY_TYPES, LATER_SECTIONS
from trouter.config.nodes import Entry, Scalar, Section
from trouter.config.problems import Findings, Place, nearest
from trouter.config.schema import Attribute, BadValue, EntityType, attributes_of, same_name
from trouter.config.values import as_written, convert


@dataclass(slots=True)
class Draft:
    """A section whose values are converted; rules may still add to them or find fault."""

    type: EntityType
    section: Section
    findings: Findings
    values: dict[str, object] = field(default_factory=dict)
    #: Where each attribute was given, by field, with the name it was given by; also those whose value is wrong.
    given: dict[str, Entry] = field(default_factory=dict)

    def place(self, field_name: str = "") -> Place:
        entry = self.given.get(field_name)
        return entry.node.place if entry else self.section.place

    def value(self, field_name: str) -> object:
        """The value given, or the default; None if what was given is no value."""
        if field_name in self.given:
            return self.values.get(field_name)
        return next(row.default for row in attributes_of(self.type.entity) if row.field == field_name)

    def error(self, message: str, field_name: str = "", suggestion: str = "") -> None:
        entry = self.given.get(field_name)
        self.findings.error(
            self.place(field_name),
            message,
            section=self.section.name,
            key=entry.key if entry else "",
            text=as_written(entry.node) if entry else "",
            suggestion=suggestion,
        )

    def warning(self, message: str, field_name: str) -> None:
        self.findings.warning(
            self.place(field_name), message, section=self.section.name, key=self.given[field_name].key
        )


def draft_section(section: Section, findings: Findings) -> Draft | None:
    """The draft of one section; None, with the reason among the findings, when the section is not one of ours."""
    for entity_type in ENTITY_TYPES:
        if same_name(section.name, entity_type.section):
            draft = Draft(entity_type, section, findings)
            for entry in section.entries:
                _take(draft, entry)
            for row in attributes_of(entity_type.entity):
                if row.required and row.field not in draft.given:
                    draft.error(f"the attribute '{row.name}' must be given")
            return draft
    if any(same_name(section.name, name) for name in LATER_SECTIONS):
        findings.error(section.place, "this section is known, but not supported by this version", section=section.name)
    else:
        names = (*(entity_type.section for entity_type in ENTITY_TYPES), *LATER_SECTIONS)
        suggestion = nearest(section.name.rpartition(".")[2], names)
        findings.error(section.place, "unknown section", section=section.name, suggestion=suggestion)
    return None


def _take(draft: Draft, entry: Entry) -> None:
    """One attribute into the draft."""
    row = _row(draft, entry)
    if row is None or entry.node == Scalar(None, entry.node.place):
        return
    before = draft.given.get(row.field)
    draft.given[row.field] = entry
    if before and same_name(before.key, row.name) != same_name(entry.key, row.name):
        draft.error(f"'{row.old_names[0]}' is the old name of '{row.name}': both are given", row.field)
        return
    if before:
        draft.warning("given more than once: the last one counts", row.field)
    elif not same_name(entry.key, row.name):
        draft.warning(f"this is the old name of '{row.name}'", row.field)
    try:
        value = convert(row, entry.node)
    except BadValue as bad:
        draft.error(bad.message, row.field, bad.suggestion)
        return
    draft.values[row.field] = value
    if row.refused and value != row.default:
        draft.error("is known, but not supported by this version", row.field, row.refused)
    elif row.inert:
        draft.warning(f"accepted without effect: {row.inert}", row.field)


def _row(draft: Draft, entry: Entry) -> Attribute | None:
    """The attribute that an entry names; None, reported, when there is none to be set."""
    rows = attributes_of(draft.type.entity)
    for row in rows:
        if row.is_spelled(entry.key):
            return row
    if entry.key in {"type", "identity", *draft.type.reported}:
        message, suggestion = "this attribute is reported by management and cannot be set", ""
    else:
        message = "unknown attribute"
        suggestion = nearest(entry.key, [name for row in rows for name in (row.name, *row.old_names)])
    draft.findings.error(entry.place, message, section=draft.section.name, key=entry.key, suggestion=suggestion)
    return None

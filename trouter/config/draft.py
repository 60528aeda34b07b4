"""Checks one section against the table of its type: looks up names, converts values, reports all errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from trouter.config.earlier import MODULES, earlier_module, earlier_section, former_attribute, former_value
from trouter.config.entities import (
    DEFAULT_MODULE,
    AddressEntity,
    AutoLinkEntity,
    BindingEntity,
    Entity,
    ExchangeEntity,
    LinkRouteEntity,
    LogEntity,
    PolicyEntity,
    RouterEntity,
    VhostEntity,
)
from trouter.config.nodes import Entry, Section, is_null
from trouter.config.passwords import Secret
from trouter.config.problems import About, Findings, ProblemKind, SourcePosition, nearest
from trouter.config.schema import Attribute, BadValue, BadValues, Doubt, EntityType, Kind, OutOfRange, same_name
from trouter.config.strictness import doubt
from trouter.config.texts import levels, random_router_id
from trouter.config.types import CONFIGURED, type_of_section
from trouter.config.values import as_written, convert, plain

#: Start values of the log's module DEFAULT, by field: the text, and the value.
LOG_STARTS: Final[dict[str, tuple[object, object]]] = {
    "enable": ("info+", levels("info+")),
    "include_timestamp": (True, True),
    "include_source": (False, False),
    "output_file": ("stderr", "stderr"),
    "format": ("text", "text"),
}


#: Types that Qpid Dispatch creates one by one, so that it goes on without an invalid one.
ROUTES: Final = (AddressEntity, LinkRouteEntity, AutoLinkEntity, ExchangeEntity, BindingEntity)
#: Types whose numbers Qpid Dispatch checks against their bounds; elsewhere it takes any.
BOUNDED: Final = (PolicyEntity, VhostEntity)
LEAVE_OUT: Final = "leave it out; the manual has the list"
#: Attributes that identify an entity and cannot be set.
IDENTIFIES: Final = frozenset({"type", "identity"})


@dataclass(slots=True)
class Draft:
    """A section whose values are converted; rules may still add to them or find fault."""

    type: EntityType
    section: Section
    findings: Findings
    values: dict[str, Any] = field(default_factory=dict)
    #: The written values, plain, by field.
    written: dict[str, Any] = field(default_factory=dict)
    #: Field -> the entry that gave it, also if its value is wrong.
    given: dict[str, Entry] = field(default_factory=dict)
    #: The section is invalid in a way that makes the router leave it out.
    left_out: bool = False

    @property
    def lacks(self) -> bool:
        """Whether a required attribute is missing or wrong, so that no entity can be made."""
        return any(row.required and row.field not in self.values for row in self.type.fields)

    def place(self, field_name: str = "") -> SourcePosition:
        entry = self.given.get(field_name)
        return entry.node.place if entry else self.section.place

    def value(self, field_name: str) -> Any:
        """Return the given value, or the default; None if the given value is invalid."""
        if field_name in self.given or field_name in self.values:
            return self.values.get(field_name)
        return self.type.defaults[field_name]

    def about(self, field_name: str, suggestion: str) -> About:
        """Return the fields of a finding about an attribute or the section, except its message."""
        about = About(section=self.section.name, suggestion=suggestion)
        if entry := self.given.get(field_name):
            about |= {"key": entry.key, "text": as_written(entry.node)}
        return about

    def error(
        self, message: str, field_name: str = "", suggestion: str = "", kind: ProblemKind = ProblemKind.NONE
    ) -> None:
        about = self.about(field_name, suggestion)
        about["kind"] = kind
        self.findings.error(self.place(field_name), message, **about)

    def first_error(self, message: str, field_name: str, suggestion: str, kind: ProblemKind) -> None:
        """Report an error that comes before all others about the section, as it makes them pointless."""
        before = self.findings.errors
        self.findings.errors = []
        self.error(message, field_name, suggestion, kind)
        self.findings.errors = [*(replace(each, place=self.section.place) for each in self.findings.errors), *before]

    def warning(self, message: str, field_name: str = "", kind: ProblemKind = ProblemKind.NONE) -> None:
        key = entry.key if (entry := self.given.get(field_name)) else ""
        self.findings.warning(self.place(field_name), message, section=self.section.name, key=key, kind=kind)

    def doubt(self, point: str, message: str, field_name: str = "", suggestion: str = "") -> bool:
        """Report something that Qpid Dispatch serves in its own way; return whether it is served so here."""
        return doubt(self.findings, point, self.place(field_name), message, **self.about(field_name, suggestion))

    def leave_out(self, message: str, field_name: str = "", suggestion: str = "") -> None:
        """Leave out a section, as Qpid Dispatch does, and report it; an error if management requested it."""
        if self.findings.single:
            self.error(message, field_name, suggestion)
        else:
            self.doubt("left-out", message, field_name, suggestion)
            self.left_out = True

    def build(self, number: int = 0) -> Entity:
        """Return the entity; every required attribute must be given."""
        make: Any = self.type.entity
        entity: Entity = make(
            **self.values, place=self.section.place, number=number, written=MappingProxyType(self.written)
        )
        return entity


def draft_section(section: Section, findings: Findings) -> Draft | None:
    """Return the draft of one section; None, and a report, for one of an unknown type or of an earlier release."""
    if (kind := type_of_section(section.name)) is not None:
        if module := earlier_module(kind, section):
            message = f"only earlier releases of Qpid Dispatch have the module {module}; nothing is logged for it"
            _of_earlier_release(section, findings, message, MODULES[module])
            return None
        return draft_of(kind, section, findings)
    if (row := earlier_section(section.name)) is not None:
        message = f"only earlier releases of Qpid Dispatch have this section; {row.loss}"
        _of_earlier_release(section, findings, message, row.instead)
        return None
    names = [name for kind in CONFIGURED for name in kind.sections]
    suggestion = nearest(section.name.rpartition(".")[2], names) or f"one of {', '.join(names)}"
    findings.error(section.place, "unknown section", section=section.name, suggestion=suggestion)
    return None


def _of_earlier_release(section: Section, findings: Findings, message: str, instead: str) -> None:
    """Report a section that only earlier releases of Qpid Dispatch knew; the file is served without it."""
    doubt(findings, "earlier-release", section.place, message, section=section.name, suggestion=instead)


def draft_of(kind: EntityType, section: Section, findings: Findings) -> Draft:
    """Return the draft of a section of this kind."""
    draft = Draft(kind, section, findings)
    for entry in section.entries:
        _take(draft, entry)
    if kind.entity in COMPLETED:
        COMPLETED[kind.entity](draft)
    missing: dict[str, list[str]] = {}
    for row in draft.type.fields:
        if row.required and row.field not in draft.given | draft.values:
            message = row.missing or f"the attribute '{row.name}' must be given"
            missing.setdefault(message, []).append(f"{row.name}: {' or '.join(row.values[:2]) or '...'}")
    for message, cures in missing.items():
        draft.error(message, suggestion=f"add {', '.join(cures)}")
    return draft


def _take(draft: Draft, entry: Entry) -> None:
    """Add one attribute to the draft, or report why not."""
    row = _row(draft, entry)
    if row is None or is_null(entry.node):
        return
    before = draft.given.get(row.field)
    draft.given[row.field] = entry
    if before and same_name(before.key, row.name) != same_name(entry.key, row.name):
        message = f"'{row.old_names[0]}' is the old name of '{row.name}': both are given"
        draft.error(message, row.field, "leave one of them out")
        return
    if before:
        draft.warning("given more than once: the last one counts", row.field)
    elif not same_name(entry.key, row.name):
        draft.warning(f"this is the old name of '{row.name}'", row.field, ProblemKind.RENAMED)
    try:
        draft.written[row.field], draft.values[row.field] = convert(row, entry.node)
    except OutOfRange as bad:
        _bound(draft, row, entry, bad)
    except BadValue as bad:
        if today := former_value(draft.type.section, row.name, as_written(entry.node)):
            bad.suggestion = f"it is called {today} today; `trouter migrate` does it"
        _serve(draft, row, entry, bad)
    except BadValues as several:
        served = [_report(draft, row, one) for one in several.bad]
        if all(served):
            draft.written[row.field], draft.values[row.field] = plain(entry.node), several.value
    else:
        if row.inert:
            draft.warning(f"accepted without effect: {row.inert}", row.field, ProblemKind.UNUSED)


def _serve(draft: Draft, row: Attribute, entry: Entry, bad: BadValue) -> None:
    """Report a wrong value, and use the value that Qpid Dispatch uses instead, if that is served."""
    if _report(draft, row, bad):
        draft.written[row.field] = _written(row, entry)
        draft.values[row.field] = bad.value  # type: ignore[attr-defined]


def _bound(draft: Draft, row: Attribute, entry: Entry, bad: OutOfRange) -> None:
    """Report a number out of its bounds: by its type it is clamped, leaves its section out, or is an error."""
    if row.extra or draft.type.entity in BOUNDED:
        _serve(draft, row, entry, bad)
    elif draft.type.entity in ROUTES:
        draft.leave_out(row.wrong or bad.message, row.field, bad.suggestion)
    else:
        _serve(draft, row, entry, Doubt("size-clamped", bad.nearest, bad.message, bad.suggestion))


def _written(row: Attribute, entry: Entry) -> object:
    """Return the written form of a doubtful value that is served."""
    if row.kind in {Kind.MAP, Kind.PROPERTIES}:
        return plain(entry.node)
    return Secret(as_written(entry.node)) if row.secret else as_written(entry.node)


def _report(draft: Draft, row: Attribute, bad: BadValue) -> bool:
    """Report a wrong value at its most exact place; return whether it is served all the same."""
    draft.values.pop(row.field, None)
    about = draft.about(row.field, bad.suggestion)
    if bad.place is not None:
        about |= {"key": ".".join(part for part in (about["key"], bad.key) if part), "text": bad.text}
    if isinstance(bad, Doubt):
        about["text"] = "***" if row.secret else about["text"]
        return doubt(draft.findings, bad.point, bad.place or draft.place(row.field), bad.message, **about)
    message = bad.message if bad.place is not None else row.wrong or bad.message
    draft.findings.error(bad.place or draft.place(row.field), message, **about)
    return False


def _row(draft: Draft, entry: Entry) -> Attribute | None:
    """Return the attribute that an entry names; report an entry that names none that can be set, and return None."""
    if row := draft.type.field_spelled(entry.key):
        return row
    if draft.type.attribute_spelled(entry.key):
        message, suggestion = "this attribute is reported by management and cannot be set", "leave it out"
        if not (draft.findings.single or entry.key in IDENTIFIES):
            about = About(section=draft.section.name, key=entry.key, suggestion=suggestion)
            doubt(draft.findings, "reported-attribute", entry.place, message, **about)
            return None
    else:
        message = "unknown attribute"
        names = [name for row in draft.type.fields for name in (row.name, *row.old_names)]
        former = former_attribute(draft.type.section, entry.key)
        suggestion = former.instead if former else nearest(entry.key, names) or _owners(entry.key) or LEAVE_OUT
    draft.findings.error(entry.place, message, section=draft.section.name, key=entry.key, suggestion=suggestion)
    return None


def _owners(key: str) -> str:
    """Return a hint that names the sections with such an attribute; empty if there are none."""
    owners = [kind.section for kind in CONFIGURED if kind.field_spelled(key)]
    return f"it belongs to {' or '.join(owners)}" if owners else ""


def _complete_vhost(draft: Draft) -> None:
    """Use the name of a vhost as its host name if it has none."""
    if "hostname" not in draft.given and "name" in draft.values:
        draft.values["hostname"] = draft.values["name"]


def _complete_log(draft: Draft) -> None:
    """Give the module DEFAULT its start values, as there is no other module whose settings it could take."""
    if draft.values.get("module") == DEFAULT_MODULE:
        for name, (written, value) in LOG_STARTS.items():
            if name not in draft.given:
                draft.written[name], draft.values[name] = written, value


def _complete_router(draft: Draft) -> None:
    """Give a router without an id a random one that begins with its mode."""
    if "id" not in draft.given:
        draft.values["id"] = random_router_id(draft.values.get("mode", "standalone"))


COMPLETED: Final[dict[type | None, Callable[[Draft], None]]] = {
    RouterEntity: _complete_router,
    VhostEntity: _complete_vhost,
    LogEntity: _complete_log,
}

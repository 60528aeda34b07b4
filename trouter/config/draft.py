"""One section against its row of the table: names looked up, values converted, everything wrong reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

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
from trouter.config.problems import RENAMED, UNUSED, About, Findings, SourcePosition, nearest
from trouter.config.schema import Attribute, BadValue, BadValues, Doubt, EntityType, Kind, OutOfRange, same_name
from trouter.config.strictness import doubt
from trouter.config.texts import levels, random_router_id
from trouter.config.types import CONFIGURED, type_of_section
from trouter.config.values import as_written, convert, plain

#: What the log starts with where its module DEFAULT does not say: what was written, and what that is.
LOG_STARTS: Final[dict[str, tuple[object, object]]] = {
    "enable": ("info+", levels("info+")),
    "include_timestamp": (True, True),
    "include_source": (False, False),
    "output_file": ("stderr", "stderr"),
    "format": ("text", "text"),
}


#: What the older router puts into its core one by one, so that it goes on without the one that cannot be.
ROUTES: Final = (AddressEntity, LinkRouteEntity, AutoLinkEntity, ExchangeEntity, BindingEntity)
#: Numbers of these the older router holds to their bounds; elsewhere it takes any.
BOUNDED: Final = (PolicyEntity, VhostEntity)
#: What an entity is called by: never to be set.
IDENTIFIES: Final = frozenset({"type", "identity"})


@dataclass(slots=True)
class Draft:
    """A section whose values are converted; rules may still add to them or find fault."""

    type: EntityType
    section: Section
    findings: Findings
    values: dict[str, Any] = field(default_factory=dict)
    #: What was written for those values, plain.
    written: dict[str, Any] = field(default_factory=dict)
    #: Where each attribute was given, by field, with the name it was given by; also those whose value is wrong.
    given: dict[str, Entry] = field(default_factory=dict)
    #: The section says what cannot be, and nothing comes of it.
    left_out: bool = False

    def place(self, field_name: str = "") -> SourcePosition:
        entry = self.given.get(field_name)
        return entry.node.place if entry else self.section.place

    def value(self, field_name: str) -> Any:
        """Return the value given, or the default; None if what was given is no value."""
        if field_name in self.given or field_name in self.values:
            return self.values.get(field_name)
        return self.type.defaults[field_name]

    def about(self, field_name: str, suggestion: str) -> About:
        """Return what a finding about an attribute, or about the section as a whole, has beside its message."""
        about = About(section=self.section.name, suggestion=suggestion)
        if entry := self.given.get(field_name):
            about |= {"key": entry.key, "text": as_written(entry.node)}
        return about

    def error(self, message: str, field_name: str = "", suggestion: str = "") -> None:
        self.findings.error(self.place(field_name), message, **self.about(field_name, suggestion))

    def first_error(self, message: str, field_name: str, suggestion: str) -> None:
        """Report an error that comes before all others about the section, as it makes them pointless."""
        before = self.findings.errors
        self.findings.errors = []
        self.error(message, field_name, suggestion)
        self.findings.errors = [*(replace(each, place=self.section.place) for each in self.findings.errors), *before]

    def warning(self, message: str, field_name: str = "") -> None:
        key = entry.key if (entry := self.given.get(field_name)) else ""
        self.findings.warning(self.place(field_name), message, section=self.section.name, key=key)

    def doubt(self, point: str, message: str, field_name: str = "", suggestion: str = "") -> bool:
        """Tell of something that the older router serves in its own way; whether it is served that way here."""
        return doubt(self.findings, point, self.place(field_name), message, **self.about(field_name, suggestion))

    def leave_out(self, message: str, field_name: str = "", suggestion: str = "") -> None:
        """Find fault with a section that the older router leaves out; management refuses such a request."""
        if self.findings.single:
            self.error(message, field_name, suggestion)
        else:
            self.doubt("left-out", message, field_name, suggestion)
            self.left_out = True

    def build(self, number: int = 0) -> Entity:
        """Return the entity; every attribute that is required must be there."""
        make: Any = self.type.entity
        entity: Entity = make(
            **self.values, place=self.section.place, number=number, written=MappingProxyType(self.written)
        )
        return entity


def draft_section(section: Section, findings: Findings) -> Draft | None:
    """Return the draft of one section; None, with the reason among the findings, when there is no such section."""
    if (kind := type_of_section(section.name)) is not None:
        return draft_of(kind, section, findings)
    names = [name for kind in CONFIGURED for name in kind.sections]
    suggestion = nearest(section.name.rpartition(".")[2], names) or f"one of {', '.join(names)}"
    findings.error(section.place, "unknown section", section=section.name, suggestion=suggestion)
    return None


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
    """One attribute into the draft."""
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
        draft.warning(f"{RENAMED} '{row.name}'", row.field)
    try:
        draft.written[row.field], draft.values[row.field] = convert(row, entry.node)
    except OutOfRange as bad:
        _bound(draft, row, entry, bad)
    except BadValue as bad:
        _serve(draft, row, entry, bad)
    except BadValues as several:
        served = [_report(draft, row, one) for one in several.bad]
        if all(served):
            draft.written[row.field], draft.values[row.field] = plain(entry.node), several.value
    else:
        if row.inert:
            draft.warning(f"{UNUSED}: {row.inert}", row.field)


def _serve(draft: Draft, row: Attribute, entry: Entry, bad: BadValue) -> None:
    """Tell what is wrong with a value, and have what the older router has for it, if it has something."""
    if _report(draft, row, bad):
        draft.written[row.field] = _written(row, entry)
        draft.values[row.field] = bad.value  # type: ignore[attr-defined]


def _bound(draft: Draft, row: Attribute, entry: Entry, bad: OutOfRange) -> None:
    """A number out of its bounds: the nearest within them, no section at all, or an error, by what it is about."""
    if row.extra or draft.type.entity in BOUNDED:
        _serve(draft, row, entry, bad)
    elif draft.type.entity in ROUTES:
        draft.leave_out(row.wrong or bad.message, row.field, bad.suggestion)
    else:
        _serve(draft, row, entry, Doubt("size-clamped", bad.nearest, bad.message, bad.suggestion))


def _written(row: Attribute, entry: Entry) -> object:
    """Return what was written of a value that is served though it is doubtful."""
    if row.kind in {Kind.MAP, Kind.PROPERTIES}:
        return plain(entry.node)
    return Secret(as_written(entry.node)) if row.secret else as_written(entry.node)


def _report(draft: Draft, row: Attribute, bad: BadValue) -> bool:
    """Tell what is wrong with a value, at its own place if it has one within; whether it is served all the same."""
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
    """Return the attribute that an entry names; None, reported, when there is none to be set."""
    if row := draft.type.field_spelled(entry.key):
        return row
    if any(row.is_spelled(entry.key) for row in draft.type.attributes):
        message, suggestion = "this attribute is reported by management and cannot be set", "leave it out"
        if not (draft.findings.single or entry.key in IDENTIFIES):
            about = About(section=draft.section.name, key=entry.key, suggestion=suggestion)
            doubt(draft.findings, "reported-attribute", entry.place, message, **about)
            return None
    else:
        message = "unknown attribute"
        names = [name for row in draft.type.fields for name in (row.name, *row.old_names)]
        suggestion = nearest(entry.key, names) or _owners(entry.key) or "leave it out; the manual has the list"
    draft.findings.error(entry.place, message, section=draft.section.name, key=entry.key, suggestion=suggestion)
    return None


def _owners(key: str) -> str:
    """Return the sections that do have such an attribute."""
    owners = [kind.section for kind in CONFIGURED if any(row.is_spelled(key) for row in kind.fields)]
    return f"it belongs to {' or '.join(owners)}" if owners else ""


def _complete_vhost(draft: Draft) -> None:
    """A vhost without a host name has its name for one."""
    if "hostname" not in draft.given and "name" in draft.values:
        draft.values["hostname"] = draft.values["name"]


def _complete_log(draft: Draft) -> None:
    """Give the module DEFAULT its start values, as there is no other module whose settings it could take."""
    if draft.values.get("module") == DEFAULT_MODULE:
        for name, (written, value) in LOG_STARTS.items():
            if name not in draft.given:
                draft.written[name], draft.values[name] = written, value


def _complete_router(draft: Draft) -> None:
    """A router without an id gets one that tells its mode."""
    if "id" not in draft.given:
        draft.values["id"] = random_router_id(draft.values.get("mode", "standalone"))


COMPLETED: Final[dict[type | None, Callable[[Draft], None]]] = {
    RouterEntity: _complete_router,
    VhostEntity: _complete_vhost,
    LogEntity: _complete_log,
}

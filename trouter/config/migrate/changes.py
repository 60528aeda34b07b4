"""Finds the changes for an old configuration, each with its place and its reason.

Drafts and rules decide what a value counts as and which sections are left out, as they do for the router; the table
of strictness has the texts. This module decides only what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from trouter.config.collector import held_back
from trouter.config.draft import Draft, draft_section
from trouter.config.entities import GROUP_SETTINGS, QUOTAS, AuthServicePluginEntity, PolicyEntity, RouterEntity
from trouter.config.migrate import foreign, oldest
from trouter.config.migrate.source import SourceText
from trouter.config.nodes import Entry, Map, Scalar, Section, is_null
from trouter.config.problems import ConfigurationError, Findings, Problem, SourcePosition, fit_to_show
from trouter.config.rules import check
from trouter.config.schema import Attribute, EntityType, Kind, same_name
from trouter.config.texts import split_host_and_port
from trouter.config.values import as_written

#: Points of the table of strictness for which the effective value is written.
COUNTS_AS: Final = frozenset({"size-clamped", "port-too-high"})
#: Points for which the attribute is removed, as it has no effect.
WITHOUT_EFFECT: Final = frozenset(
    {"unknown-in-group", "reported-attribute", "key-alone", "password-without-user", "unknown-uid-letter"}
)
#: Points for which the section is removed, as the router leaves it out.
LEFT_OUT: Final = frozenset({"left-out", "same-addresses"})
#: Maps within a vhost, and within its groups.
QUOTA_MAPS: Final = frozenset({"per_user", "per_host"})

RENAMED: Final = "this is its name today"
NO_EFFECT: Final = "it has no effect today"
ESCAPE: Final = "JSON has no such escape: the backslash counts as one, as it does in this form"
RESPELLED: Final = "names have one spelling"
SECURE: Final = "secureDefaults turns every point of docs/migration.md to its strict side"
ALL_USERS: Final = (
    "with secureDefaults no client gets in without a vhost; this one allows what was allowed, for each user that "
    "logs in: narrow it"
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: its place in the old file, the old text, the new text (empty if it is removed), and the reason.

    unsupported: the old text did something that is not served here; `why` then says what to use instead.
    """

    place: SourcePosition
    old: str
    new: str
    why: str
    unsupported: bool = False


@dataclass(slots=True)
class Migrated:
    """The new text, and the changes in the order of the old file."""

    text: str
    changes: list[Edit] = field(default_factory=list)
    #: The old text may be a configuration of a router; an empty one is, too.
    recognized: bool = True


def migrated(text: str, file: str, *, secure: bool = False) -> Migrated:
    """Return an old text in today's form; ``secure``: with secureDefaults, and the vhost that clients then need.

    Raise ConfigurationError for a text that is no configuration, or that Qpid Dispatch would not start with.
    """
    with held_back():
        return _Migration(text, file).result(secure=secure)


class _Migration:
    """The migration of one text."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.findings = Findings()
        self.source = SourceText(text, file, self.findings)
        self.changes: list[Edit] = []
        #: Place and point of the table of strictness -> the finding.
        self.warnings: dict[tuple[SourcePosition, str], Problem] = {}

    def result(self, *, secure: bool) -> Migrated:
        if not self.source.sections and self.findings.errors:
            return Migrated(self.source.edited(), recognized=False)
        sections = [kept for section in self.source.sections if (kept := self._known(section))]
        drafts = [draft for section in sections if (draft := draft_section(section, self.findings))]
        served = check(drafts)
        if self.findings.errors:
            raise ConfigurationError(sorted(self.findings.errors, key=lambda problem: problem.place))
        self.warnings = {(one.place, one.point): one for one in self.findings.warnings if one.point}
        numbers = {id(draft) for draft in served}
        for draft in drafts:
            if id(draft) in numbers:
                self._section(draft)
            else:
                self._left_out(draft)
        if secure:
            self._secure(served)
        return Migrated(self.source.edited(), sorted(self.changes, key=lambda change: change.place))

    # ---------------------------------------------------------------- of Qpid Dispatch 0.x
    def _renewed(self, section: Section) -> Section | None:
        """Return the section as 1.x knows it; None if others stand for it, which are written."""
        if (others := oldest.rewritten(section, self.source.sections)) is not None:
            if others.made:
                self.source.exchange(section, others.made)
            else:
                self.source.remove(section)
            new = ", ".join(name for name, _ in others.made)
            self._change(section.place, section.name, new, others.why)
            return None
        if oldest.is_section(section, oldest.CONTAINER):
            return self._container(section)
        return section._replace(entries=tuple(self._named_today(section)))

    def _container(self, section: Section) -> Section | None:
        """Move the attributes of a container to the router section, or make it one if there is none."""
        router = next((each for each in self.source.sections if oldest.is_section(each, "router")), None)
        if router is None:
            self._rename(section, "router", RENAMED)
            return self._renewed(section._replace(name="router"))
        moved = oldest.moved(section, router)
        for name, text in moved.items():
            self.source.insert(router, name, text)
        new = ", ".join(f"router.{name}" for name in moved)
        self._remove(section, section.name, "its attributes stand in the router section today")
        if new:
            self._change(section.place, section.name, new, RENAMED)
        return None

    def _named_today(self, section: Section) -> Iterator[Entry]:
        """Yield the attributes of a section, those of 0.x with their names and values of today."""
        given = {entry.key for entry in section.entries}
        for entry in section.entries:
            found = oldest.today_of(section, entry)
            if found is None:
                yield entry
                continue
            name, value = found
            if not name or (name in given and entry.key != name):
                why = f"{name} says it" if name else NO_EFFECT
                self._remove(entry, _shown(section.name, entry), why)
                continue
            given.add(name)
            yield self._rewrite(section, entry, name, value)

    def _rewrite(self, section: Section, entry: Entry, name: str, value: str | bool) -> Entry:
        """Write an attribute of 0.x with its name and value of today, and return it so."""
        written = self.source.written(value)
        self._change(entry.place, _shown(section.name, entry), f"{name}: {written}", RENAMED)
        if entry.key != name:
            self.source.rename(entry, name)
        if isinstance(value, str) and as_written(entry.node) == value:
            return entry._replace(key=name)
        self.source.set(entry, value)
        return Entry(name, entry.place, Scalar(value, entry.node.place, quoted=True))

    # ---------------------------------------------------------------- of other routers
    def _known(self, old: Section) -> Section | None:
        """Return the section without the parts that only other routers serve; None if the whole section is one."""
        section = self._renewed(old)
        if section is None:
            return None
        name = section.name
        for entry in section.entries:
            value = entry.node.value if isinstance(entry.node, Scalar) else None
            instead = foreign.VALUES.get((name, entry.key), {}).get(str(value))
            if instead:
                self._remove(section, f"{name} with {entry.key}: {value}", instead, unsupported=True)
                return None
        if instead := foreign.instead_of(name):
            self._remove(section, name, instead, unsupported=True)
            return None
        kept = []
        for entry in section.entries:
            if instead := foreign.ATTRIBUTES.get((name, entry.key)):
                self._remove(entry, _shown(name, entry), instead, unsupported=True)
            else:
                kept.append(entry)
        return section._replace(entries=tuple(kept))

    # ---------------------------------------------------------------- sections
    def _left_out(self, draft: Draft) -> None:
        """Remove a section that the router leaves out, with the reason."""
        places = [draft.section.place, *(entry.node.place for entry in draft.given.values())]
        warnings = [self.warnings.get((place, point)) for place in places for point in sorted(LEFT_OUT)]
        reason = next((one.message for one in warnings if one is not None), "it is left out")
        self._remove(draft.section, draft.section.name, reason)

    def _section(self, draft: Draft) -> None:
        """Migrate one section that is served, or that Qpid Dispatch served in another way."""
        kind, section = draft.type, draft.section
        if kind.unserved:
            self._remove(section, section.name, kind.unserved, unsupported=True)
            return
        if section.name not in kind.sections:
            self._rename(section, kind.section, RESPELLED)
        for entry in section.entries:
            row = kind.field_spelled(entry.key)
            last = row is None or is_null(entry.node) or draft.given[row.field] is entry
            if not last:
                self._remove(entry, _shown(section.name, entry, row), "it is given again below, which counts")
            elif not self._by_point(draft, entry, row) and row is not None:
                self._attribute(draft, entry, row)

    def _by_point(self, draft: Draft, entry: Entry, row: Attribute | None) -> bool:
        """Write the effective value of a doubtful one, or remove its attribute; return whether it was such a value."""
        name = draft.section.name
        for place in (entry.place, entry.node.place):
            for point in sorted(WITHOUT_EFFECT):
                if (place, point) in self.warnings:
                    self._remove(entry, _shown(name, entry, row), self.warnings[place, point].message)
                    return True
            for point in sorted(COUNTS_AS):
                if row is not None and (place, point) in self.warnings:
                    value = draft.values[row.field]
                    why = f"{self.warnings[place, point].message}, which is this one"
                    self._change(entry.place, _shown(name, entry, row), str(value), why)
                    self.source.set(entry, value)
                    self._name(name, entry, row, record=False)
                    return True
        return False

    # ---------------------------------------------------------------- attributes
    def _attribute(self, draft: Draft, entry: Entry, row: Attribute) -> None:
        """Migrate one attribute that has an effect."""
        section = draft.section.name
        if row.inert:
            self._remove(entry, _shown(section, entry, row), row.inert, unsupported=True)
        elif row.field == "password_file":
            self._password_file(draft, entry)
        elif row.field == "auth_service" and draft.type.entity is AuthServicePluginEntity:
            self._auth_service(draft, entry)
        else:
            self._name(section, entry, row)
            value = draft.values.get(row.field)
            written = as_written(entry.node)
            if row.kind is Kind.ENUM and value in row.values and written not in row.values:
                self._change(entry.place, f"{section}.{row.name}: {written}", str(value), "this is its name")
                self.source.set(entry, str(value))
            elif self.source.has_unknown_escape(entry):
                self._change(entry.place, _shown(section, entry, row), f"{row.name} in quotes", ESCAPE)
                self.source.set(entry, as_written(entry.node))
            if isinstance(entry.node, Map):
                self._nested(section, entry.node, row)

    def _name(self, section: str, entry: Entry, row: Attribute, *, record: bool = True) -> None:
        """Rename an attribute to its present name."""
        if entry.key != row.name:
            why = RESPELLED if same_name(entry.key, row.name) else RENAMED
            if record:
                self._rename(entry, row.name, why, section)
            else:
                self.source.rename(entry, row.name)

    def _nested(self, where: str, node: Map, row: Attribute) -> None:
        """Rename or remove the attributes within a map of groups or quotas."""
        for place, entry, table in _within(node, row, where):
            inner = table.field_spelled(entry.key)
            if inner is None:  # reported by unknown-in-group: anything else is an error
                why = "no such setting of a group: it was ignored"
                self._remove(entry, f"{place}.{entry.key}", why)
            else:
                self._name(place, entry, inner)

    def _password_file(self, draft: Draft, entry: Entry) -> None:
        """Replace the attribute of a password file by `password`."""
        old = f"{draft.section.name}.{entry.key}: {as_written(entry.node)}"
        if "password" in draft.given:
            self._remove(entry, old, "password is given too, and counts")
            return
        path = as_written(entry.node)
        self._change(entry.place, old, f"password: file:{path}", RENAMED)
        self.source.replace(entry, {"password": f"file:{path}"})

    def _auth_service(self, draft: Draft, entry: Entry) -> None:
        """Replace the attribute of a service by `host` and `port`."""
        old = f"{draft.section.name}.{entry.key}: {as_written(entry.node)}"
        if draft.value("host"):
            self._remove(entry, old, "host and port are given too, and count")
            return
        host, port = split_host_and_port(str(draft.values["auth_service"]))
        self._change(entry.place, old, f"host: {host}, port: {port}", RENAMED)
        self.source.replace(entry, {"host": host, "port": port})
        if other := draft.given.get("port"):
            self._remove(other, f"{draft.section.name}.{other.key}: {as_written(other.node)}", f"{entry.key} counted")

    # ---------------------------------------------------------------- secureDefaults
    def _secure(self, drafts: list[Draft]) -> None:
        """Turn secureDefaults on, and write the vhost without which no client is admitted."""
        router = next((draft for draft in drafts if draft.type.entity is RouterEntity), None)
        place = router.section.place if router else SourcePosition(self.file, 1, 1)
        if router is None:
            self.source.add("router", {"secureDefaults": True})
        elif entry := router.given.get("secure_defaults"):
            if router.value("secure_defaults"):
                return
            self.source.set(entry, True)
        else:
            self.source.insert(router.section, "secureDefaults", True)
        self._change(place, "router", "router.secureDefaults: yes", SECURE)
        policy = next((draft for draft in drafts if draft.type.entity is PolicyEntity), None)
        held = policy is not None and ("enable_vhost_policy" in policy.given or policy.value("policy_dir"))
        if not held and all(draft.type.short != "vhost" for draft in drafts):
            hostname = (policy.value("default_vhost") if policy else None) or "$default"
            self.source.add("vhost", everything(hostname))
            self._change(place, "no vhost", f"vhost {hostname}", ALL_USERS)

    # ---------------------------------------------------------------- reports
    def _change(self, place: SourcePosition, old: str, new: str, why: str, *, unsupported: bool = False) -> None:
        self.changes.append(Edit(place, old, new, why, unsupported))

    def _remove(self, part: Entry | Section, old: str, why: str, *, unsupported: bool = False) -> None:
        self.source.remove(part)
        self._change(part.place, old, "", why, unsupported=unsupported)

    def _rename(self, part: Entry | Section, name: str, why: str, section: str = "") -> None:
        old = f"{section}.{part.key}" if isinstance(part, Entry) else part.name
        self.source.rename(part, name)
        self._change(part.place, old, name, why)


def everything(hostname: str) -> dict[str, Any]:
    """Return a vhost with the rights of a connection without one, except management."""
    rights = ("allowDynamicSource", "allowAnonymousSender", "allowUserIdProxy")
    group = {"remoteHosts": "*", "sources": "*", "targets": "*", **dict.fromkeys(rights, True)}
    return {"hostname": hostname, "allowUnknownUser": True, "groups": {"$default": group}}


def _within(node: Map, row: Attribute, where: str) -> Iterator[tuple[str, Entry, EntityType]]:
    """Yield the entries within the maps of an attribute, each with its path and the table of its attributes."""
    if row.field in QUOTA_MAPS:
        yield from ((f"{where}.{row.name}", entry, QUOTAS) for entry in node.entries)
    elif row.field == "groups":
        for group in node.entries:
            if isinstance(group.node, Map):
                place = f"{where}.{row.name}.{group.key}"
                for entry in group.node.entries:
                    yield place, entry, GROUP_SETTINGS
                    inner = GROUP_SETTINGS.field_spelled(entry.key)
                    if inner is not None and isinstance(entry.node, Map):
                        yield from _within(entry.node, inner, place)


def _shown(section: str, entry: Entry, row: Attribute | None = None) -> str:
    """Return an attribute with its value, without secrets."""
    if row is not None and row.secret:
        return f"{section}.{entry.key}: ***"
    return f"{section}.{entry.key}: {fit_to_show(as_written(entry.node), entry.key)}"

"""Sections, attributes and values of Qpid Dispatch 0.x, written as the router knows them.

Each function decides what to write instead of a section, from its values and those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from trouter.config.earlier import former_attribute, former_value
from trouter.config.entities import RouterEntity
from trouter.config.nodes import Entry, Scalar, Section
from trouter.config.schema import same_name
from trouter.config.types import type_of_section
from trouter.config.values import TRUE, as_written
from trouter.core.patterns import SEPARATORS

#: A section to be written: its name and its attributes.
Made = tuple[str, dict[str, object]]
FIXED_ADDRESS: Final = "fixedAddress"
WAYPOINT: Final = "waypoint"
LINK_ROUTE: Final = "linkRoutePattern"
CONTAINER: Final = "container"
#: By fanout and bias the distribution of a fixed address; bias counts for single alone.
DISTRIBUTIONS: Final = {"closest": "closest", "spread": "balanced"}
MULTICAST: Final = "multicast"
#: The attributes of a container that the router section has today, by their names there.
MOVED: Final = {
    "containerName": "id",
    "debugDump": "debugDumpFile",
    "saslConfigPath": "saslConfigDir",
    "saslConfigName": "saslConfigName",
}


ANONYMOUS: Final = "ANONYMOUS"


class Rewritten(NamedTuple):
    """The sections that stand for an old one, none if it is left out, and the reason."""

    made: Sequence[Made]
    why: str


def is_section(section: Section, name: str) -> bool:
    """Return whether a section is one of 0.x with this name."""
    return same_name(section.name, name)


def text_of(section: Section, *names: str) -> str:
    """Return the value of an attribute by a spelling of one of its names; empty if it is not given."""
    given = [entry for entry in section.entries if any(same_name(entry.key, name) for name in names)]
    return as_written(given[-1].node) if given and isinstance(given[-1].node, Scalar) else ""


def is_yes(text: str) -> bool:
    return text.lower() in TRUE


def rewritten(section: Section, sections: Sequence[Section]) -> Rewritten | None:
    """Return what to write instead of a section of addresses or routes; None for another one."""
    if is_section(section, FIXED_ADDRESS):
        return _address(section, sections)
    if is_section(section, WAYPOINT):
        return _waypoint(section, sections)
    if is_section(section, LINK_ROUTE):
        return _link_route(section)
    return None


def today_of(section: Section, entry: Entry) -> tuple[str, str | bool] | None:
    """Return the name and the value today of an attribute or a value of 0.x; an empty name if it has none today.

    None for an attribute that is served, or that only the operator can write otherwise.
    """
    text = as_written(entry.node)
    kind = type_of_section(section.name)
    if kind is None:
        return None
    if row := kind.field_spelled(entry.key):
        now = former_value(kind.section, row.name, text)
        return (row.name, now) if now else None
    former = former_attribute(kind.section, entry.key)
    if former is None or former.by_hand:
        return None
    if former.today == "authenticatePeer":
        return former.today, _must_log_in(section)
    if former.today == "requireSsl":
        return former.today, not is_yes(text)
    return former.today, text


def _must_log_in(section: Section) -> bool:
    """Return whether clients of a listener must log in; those that may be ANONYMOUS need not."""
    if is_yes(text_of(section, "requirePeerAuth")):
        return True
    refuses = text_of(section, "allowNoSasl")
    return bool(refuses) and not is_yes(refuses) and ANONYMOUS not in text_of(section, "saslMechanisms").split()


def moved(container: Section, router: Section) -> dict[str, str]:
    """Return the attributes of a container that the router section lacks, by their names there."""
    has = {row.name for entry in router.entries if (row := RouterEntity.type.field_spelled(entry.key))}
    if text_of(router, "routerId"):
        has.add("id")
    found = {name: text_of(container, old, name) for old, name in MOVED.items() if name not in has}
    return {name: text for name, text in found.items() if text}


def _address(section: Section, sections: Sequence[Section]) -> Rewritten:
    """Return the address of a fixed one; of several phases of one prefix the first counts."""
    prefix = _prefix(section)
    first = next(_fixed(sections, prefix))
    if first is not section:
        return Rewritten((), "phases of one prefix have one distribution: that of its first section counts")
    matched = {"prefix": prefix} if prefix else {"pattern": "#"}
    made = {**_named(section), **matched, "distribution": _distribution(section)}
    return Rewritten([("address", made)], "fanout and bias are called distribution today")


def _fixed(sections: Sequence[Section], prefix: str) -> Iterator[Section]:
    """Yield the fixed addresses of a prefix, the lowest phase first."""
    found = [each for each in sections if is_section(each, FIXED_ADDRESS) and _prefix(each) == prefix]
    yield from sorted(found, key=lambda each: _phase(each, "phase", 0))


def _prefix(section: Section) -> str:
    return text_of(section, "prefix").strip(SEPARATORS)


def _distribution(section: Section) -> str:
    if text_of(section, "fanout") != "single":
        return MULTICAST
    return DISTRIBUTIONS.get(text_of(section, "bias") or "closest", "closest")


def _named(section: Section) -> dict[str, object]:
    name = text_of(section, "name")
    return {"name": name} if name else {}


def _phase(section: Section, name: str, default: int) -> int:
    text = text_of(section, name)
    return int(text) if text.isdecimal() and text.isascii() else default


def _waypoint(section: Section, sections: Sequence[Section]) -> Rewritten:
    """Return the two auto links of a waypoint, and before those of the first one of an address the address."""
    address, connector = text_of(section, "address"), text_of(section, "connector")
    passed = [each for each in sections if is_section(each, WAYPOINT) and text_of(each, "address") == address]
    phases = [(_phase(each, "inPhase", 0), _phase(each, "outPhase", 1)) for each in passed]
    made: list[Made] = []
    if passed[0] is section:
        ingress, egress = min(each for each, _ in phases), max(each for _, each in phases)
        path = {"waypoint": True} if (ingress, egress) == (0, 1) else {"ingressPhase": ingress, "egressPhase": egress}
        distribution = _covering(address, sections)
        made.append(("address", {"pattern": address.strip(SEPARATORS), "distribution": distribution, **path}))
    into, out = _phase(section, "inPhase", 0), _phase(section, "outPhase", 1)
    for direction, phase in (("out", into), ("in", out)):
        link = {"address": address, "direction": direction, "phase": phase, "connection": connector}
        made.append(("autoLink", link))
    return Rewritten(made, "a waypoint is an address of two phases, an auto link out and an auto link in")


def _covering(address: str, sections: Sequence[Section]) -> str:
    """Return the distribution of the fixed address with the longest prefix of an address; balanced without one."""
    tokens = address.strip(SEPARATORS).replace(".", "/")
    best = None
    for each in sections:
        prefix = _prefix(each).replace(".", "/") if is_section(each, FIXED_ADDRESS) else None
        if prefix is None or not f"{tokens}/".startswith(f"{prefix}/" if prefix else ""):
            continue
        if best is None or len(prefix) > len(_prefix(best)):
            best = each
    return "balanced" if best is None else _distribution(next(_fixed(sections, _prefix(best))))


def _link_route(section: Section) -> Rewritten:
    """Return a link route for each direction."""
    direction = text_of(section, "dir", "direction") or "both"
    connector = text_of(section, "connector")
    target = {"connection": connector} if connector else {}
    routes: list[Made] = [
        ("linkRoute", {"prefix": text_of(section, "prefix"), "direction": each, **target})
        for each in (("in", "out") if direction == "both" else (direction,))
    ]
    return Rewritten(routes, "each direction has a section today")

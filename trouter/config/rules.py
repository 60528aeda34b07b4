"""What attributes and sections must have to do with each other (routing.md 5.1, 6.8 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from trouter.config.draft import Draft
from trouter.config.entities import AddressEntity, ListenerEntity, RouterEntity
from trouter.core.patterns import PatternError, normalise_pattern, pattern_tokens, prefix_pattern

ROUTER_ROLES: Final = frozenset({"inter-router", "edge"})


def check(drafts: list[Draft]) -> None:
    """Apply every rule; what is wrong goes to the drafts' findings, what follows from other values into the drafts."""
    for draft in drafts:
        if rule := RULES.get(draft.type.entity):
            rule(draft)
    _at_most_one(drafts)
    _unique(drafts, _name, "this name is used already")
    _unique(drafts, _key, "this module has a section already")
    _unique(drafts, _match, "the same addresses are configured already")
    _unique(drafts, _socket, "this host and port belong to a listener already")
    _roles(drafts)


def _listener(draft: Draft) -> None:
    if draft.value("open_properties") and draft.value("role") in ROUTER_ROLES:
        draft.error(f"openProperties not allowed for role {draft.value('role')}", "open_properties")
    if draft.value("allow_insecure_plain") == "yes":
        draft.warning("passwords may cross the network unencrypted", "allow_insecure_plain")
    if draft.value("initial_handshake_timeout_seconds") == 0:
        draft.warning("peers that never open a connection may stay for ever", "initial_handshake_timeout_seconds")


def _address(draft: Draft) -> None:
    given = [name for name in ("prefix", "pattern") if name in draft.given]
    if not given:
        draft.error("Either a 'prefix' or 'pattern' attribute must be provided")
    elif len(given) == 2:
        draft.error("Cannot specify both a 'prefix' and a 'pattern' attribute", "pattern")
    for name in given:
        _normalise(draft, name)
    _phases(draft)


def _normalise(draft: Draft, name: str) -> None:
    text = draft.values.get(name)
    if not isinstance(text, str):
        return
    if not text:
        draft.error(f"{name.capitalize()} must be a non-empty string type", name)
        return
    try:
        pattern = prefix_pattern(text) if name == "prefix" else normalise_pattern(text)
    except PatternError:
        draft.error(f"{name.capitalize()} invalid - no tokens", name)
        return
    normal = pattern.removesuffix("/#") if name == "prefix" else pattern
    if normal != text.strip("./"):
        draft.warning(f"this pattern is the same as '{normal}'", name)
    draft.values[name] = normal


def _phases(draft: Draft) -> None:
    given = [name for name in ("ingress_phase", "egress_phase") if name in draft.given]
    if len(given) == 1:
        draft.error("ingressPhase and egressPhase must be given together", given[0])
    if draft.value("waypoint") and not given:
        draft.values["egress_phase"] = 1
    phased = draft.value("waypoint") or draft.value("ingress_phase") or draft.value("egress_phase")
    if draft.value("enable_fallback") and phased:
        draft.error(
            "Fallback cannot be specified with waypoint or non-zero ingress and egress phases", "enable_fallback"
        )


def _at_most_one(drafts: list[Draft]) -> None:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.type.singleton and first.setdefault(draft.type.section, draft) is not draft:
            draft.error(f"there is one already, at {first[draft.type.section].place()}")


def _unique(drafts: list[Draft], what: Callable[[Draft], tuple[Hashable, str] | None], message: str) -> None:
    """Report each draft whose (value, field) was seen before."""
    first: dict[Hashable, Draft] = {}
    for draft in drafts:
        if found := what(draft):
            value, field_name = found
            if first.setdefault(value, draft) is not draft:
                draft.error(f"{message}, at {first[value].place(field_name)}", field_name)


def _name(draft: Draft) -> tuple[Hashable, str] | None:
    name = draft.value("name")
    return ((draft.type.section, str(name)), "name") if name else None


def _key(draft: Draft) -> tuple[Hashable, str] | None:
    key = draft.type.key
    return ((draft.type.section, str(draft.values[key])), key) if key in draft.values else None


def _match(draft: Draft) -> tuple[Hashable, str] | None:
    if draft.type.entity is not AddressEntity:
        return None
    for name in ("prefix", "pattern"):
        text = draft.values.get(name)
        if isinstance(text, str) and text.strip("./"):
            return pattern_tokens(prefix_pattern(text) if name == "prefix" else text), name
    return None


def _socket(draft: Draft) -> tuple[Hashable, str] | None:
    if draft.type.entity is not ListenerEntity or draft.value("port") in {None, "0"}:
        return None
    return (draft.value("host"), draft.value("port"), draft.value("socket_address_family")), "port"


def _roles(drafts: list[Draft]) -> None:
    """A router that stands alone has no neighbours to listen for."""
    routers = [draft for draft in drafts if draft.type.entity is RouterEntity and "mode" in draft.given]
    alone = all(draft.values.get("mode") == "standalone" for draft in routers)
    for draft in drafts:
        if draft.type.entity is ListenerEntity and draft.value("role") in ROUTER_ROLES and alone:
            draft.error("role='standalone' not allowed to connect to or accept connections from other routers.", "role")


RULES: Final[dict[type, Callable[[Draft], None]]] = {ListenerEntity: _listener, AddressEntity: _address}

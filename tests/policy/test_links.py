"""The links that a connection may have: each row is one attach, with the decision and its rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trouter.policy.judge import Admission, judge_attach
from trouter.policy.kinds import LINK_DENIED, TOO_MANY_LINKS
from trouter.wire.performatives import Attach, Coordinator, Error, Source, Target
from trouter.wire.types import Symbol

from .policies import admit, group, opened

STRICT = "sources: in\ntargets: out\nmaxSenders: 2\nmaxReceivers: 3\nallowWaypointLinks: no\nallowFallbackLinks: no"
LENIENT = "sources: *\n targets: *\n allowDynamicSource: yes\n allowAnonymousSender: yes"


def sender(target: Any) -> Attach:
    return Attach("link", 0, False, source=Source(), target=target, initial_delivery_count=0)


def receiver(source: Any) -> Attach:
    return Attach("link", 0, True, source=source, target=Target())


def capable(*capabilities: str) -> dict[str, Any]:
    return {"capabilities": tuple(map(Symbol, capabilities))}


ROWS: dict[str, tuple[Attach, bool, str, bool, str]] = {
    "a target of its own": (sender(Target("out")), True, "targets:1", True, "targets:1"),
    "another target": (sender(Target("in")), False, "targets:none", True, "targets:1"),
    "a source of its own": (receiver(Source("in")), True, "sources:1", True, "sources:1"),
    "another source": (receiver(Source("out")), False, "sources:none", True, "sources:1"),
    "no target": (sender(None), False, "allowAnonymousSender", True, "allowAnonymousSender"),
    "an empty target": (sender(Target("")), False, "allowAnonymousSender", True, "allowAnonymousSender"),
    "a dynamic target": (sender(Target(dynamic=True)), False, "allowAnonymousSender", True, "allowAnonymousSender"),
    "a dynamic target with an address": (
        sender(Target("out", dynamic=True)), False, "allowAnonymousSender", True, "allowAnonymousSender"),
    "a target that is no text": (sender(Target(7)), False, "target", False, "target"),
    "a dynamic source": (receiver(Source(dynamic=True)), False, "allowDynamicSource", True, "allowDynamicSource"),
    "a dynamic source with an address": (
        receiver(Source("in", dynamic=True)), False, "allowDynamicSource", True, "allowDynamicSource"),
    "no source": (receiver(None), False, "source", False, "source"),
    "an empty source": (receiver(Source("")), False, "source", False, "source"),
    "a source that is no text": (receiver(Source(7)), False, "source", False, "source"),
    "a coordinator": (sender(Coordinator()), True, "coordinator", True, "coordinator"),
    "a waypoint": (sender(Target("out", **capable("qd.waypoint"))), False, "allowWaypointLinks", True, "targets:1"),
    "the waypoint of a phase": (
        receiver(Source("in", **capable("x", "qd.waypoint_3"))), False, "allowWaypointLinks", True, "sources:1"),
    "a fallback": (receiver(Source("in", **capable("qd.fallback"))), False, "allowFallbackLinks", True, "sources:1"),
    "another capability": (receiver(Source("in", **capable("qd.way", "queue"))), True, "sources:1", True, "sources:1"),
}  # fmt: skip


def judged(settings: str, attach: Attach, others: int = 0) -> tuple[bool, str, Error | None]:
    """Return whether a link is allowed, the rule, and the error for its peer."""
    verdict = judge_attach(opened(group(settings)), attach, lambda: others)
    assert (verdict.vhost, verdict.group, verdict.direction) == ("v", "g", "out" if attach.role else "in")
    return verdict.allowed, verdict.rule, verdict.error


@pytest.mark.parametrize(("attach", "strictly", "rule", "leniently", "other"), ROWS.values(), ids=ROWS)
def test_a_link_is_judged(attach: Attach, strictly: bool, rule: str, leniently: bool, other: str) -> None:
    assert judged(STRICT, attach) == (strictly, f"v:g:{rule}", None if strictly else LINK_DENIED)
    assert judged(LENIENT, attach) == (leniently, f"v:g:{other}", None if leniently else LINK_DENIED)


@pytest.mark.attack
def test_a_dynamic_link_that_names_a_link_route_needs_its_address() -> None:
    """Else it would reach the container of each link route: the route takes it by the address that it names."""
    settings = "sources: in\n targets: out\n allowDynamicSource: yes\n allowAnonymousSender: yes"
    for address, receives in (("in", True), ("out", False)):
        named: dict[str, Any] = {"dynamic": True, "dynamic_node_properties": {Symbol("x-opt-qd.address"): address}}
        for is_secure in (True, False):
            admission = replace(opened(group(settings)), judges_routes=is_secure)
            assert judge_attach(admission, receiver(Source(**named)), lambda: 0).allowed == (receives or not is_secure)
            assert judge_attach(admission, sender(Target(**named)), lambda: 0).allowed == (not (receives and is_secure))
            without = replace(opened(group("sources: *\n targets: *")), judges_routes=is_secure)
            assert not judge_attach(without, receiver(Source(**named)), lambda: 0).allowed
            assert not judge_attach(without, sender(Target(**named)), lambda: 0).allowed


@pytest.mark.parametrize(
    ("attach", "maximum", "limit"),
    [(sender(Target("out")), 2, "maxSenders"), (receiver(Source("in")), 3, "maxReceivers")],
    ids=["senders", "receivers"],
)
def test_a_group_has_its_limit_of_links(attach: Attach, maximum: int, limit: str) -> None:
    assert judged(STRICT, attach, maximum - 1)[0]
    assert judged(STRICT, attach, maximum) == (False, f"v:g:{limit}", TOO_MANY_LINKS)
    assert judged(LENIENT, attach, 10**6)[0]


def test_a_connection_without_limits_is_not_counted() -> None:
    def counts() -> int:
        raise AssertionError("nobody need count")

    admission = admit(group(STRICT, vhost=" maxConnections: 9"), None, "us", "x", authenticated=False, connector=True)
    assert isinstance(admission, Admission)
    assert judge_attach(admission, receiver(None), counts).allowed

"""Decides which links a peer may attach, by number, flags and addresses (security.md 4.6, 4.9).

The decoder delivers the capabilities of a terminus as symbols, whether they were one symbol, an array or a list, and
refuses deeper nesting. Each of them counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trouter.security.policy import Admission
from trouter.security.settings import UNLIMITED
from trouter.wire.performatives import Attach, Coordinator, Source, Target

_WAYPOINT = "qd.waypoint"
_FALLBACK = "qd.fallback"


class LinkVerdict(NamedTuple):
    """The decision on a link, and its rule. ``too_many``: the peer has as many links as it may."""

    allowed: bool
    rule: str
    too_many: bool = False


def judge_link(admission: Admission, attach: Attach, others: Callable[[], int]) -> LinkVerdict:
    """Return the decision on an attach; ``others`` returns how many links the peer has in this direction already."""
    if admission.unrestricted:
        return LinkVerdict(True, admission.rule)
    label = f"{admission.vhost}:{admission.group}"
    settings = admission.settings
    sends = not attach.role
    limit = settings.max_senders if sends else settings.max_receivers
    if limit < UNLIMITED and others() >= limit:
        return LinkVerdict(False, f"{label}:{'maxSenders' if sends else 'maxReceivers'}", too_many=True)
    terminus = attach.target if sends else attach.source
    if isinstance(terminus, Coordinator):
        return LinkVerdict(True, f"{label}:coordinator")  # the core decides on it: it has no address to judge
    if isinstance(terminus, Source | Target):
        for flag, capability in (("allowWaypointLinks", _WAYPOINT), ("allowFallbackLinks", _FALLBACK)):
            allowed = settings.allow_waypoint_links if capability is _WAYPOINT else settings.allow_fallback_links
            if not allowed and any(each.startswith(capability) for each in terminus.capabilities):
                return LinkVerdict(False, f"{label}:{flag}")
    if sends:
        return _judge_target(admission, label, terminus)
    return _judge_source(admission, label, terminus)


def _judge_target(admission: Admission, label: str, target: object) -> LinkVerdict:
    """Return the decision on a target; one without an address, or a dynamic one, is that of an anonymous sender."""
    if target is not None and not isinstance(target, Target):
        return LinkVerdict(False, f"{label}:target")
    if target is None or target.dynamic or target.address in (None, ""):
        return LinkVerdict(admission.settings.allow_anonymous_sender, f"{label}:allowAnonymousSender")
    if not isinstance(target.address, str):
        return LinkVerdict(False, f"{label}:target")
    return LinkVerdict(*_verdict(admission, target.address, sends=True))


def _judge_source(admission: Admission, label: str, source: object) -> LinkVerdict:
    if not isinstance(source, Source):
        return LinkVerdict(False, f"{label}:source")
    if source.dynamic:
        return LinkVerdict(admission.settings.allow_dynamic_source, f"{label}:allowDynamicSource")
    if not isinstance(source.address, str) or not source.address:
        return LinkVerdict(False, f"{label}:source")
    return LinkVerdict(*_verdict(admission, source.address, sends=False))


def _verdict(admission: Admission, address: str, *, sends: bool) -> tuple[bool, str]:
    verdict = admission.may_send(address) if sends else admission.may_receive(address)
    return verdict.allowed, verdict.rule

"""The explanation why messages for an address flow or do not: its links on this router and what they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from trouter.engine.connection import Connection

from .addresses import AREA, EDGE, MAX_ADDRESS_BYTES, MOBILE, ROUTER, UPLINK_KEY, Address
from .edge.protocol import SERVICES
from .egress import Egress
from .exchanges import Exchange
from .ingress import Ingress
from .pace import settled_count
from .routes import IN, LINK_BALANCED, OUT, RoutePattern
from .table import AddressRule
from .watch import STUCK_AFTER_S, zero_credit_s

if TYPE_CHECKING:
    from .entry import AddressEntry
    from .router import Router

#: Links of each direction in the explanation: those with the most load.
MAX_LINKS: Final = 100
#: Links that a verdict names.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """One link to or from the address. ``waits_for`` is credit, window, output or empty."""

    link: int
    connection: int
    container: str
    name: str
    credit: int
    zero_credit_s: float
    undelivered: int
    unsettled: int
    stuck: int
    settle_rate: float
    waits_for: str

    def as_map(self) -> dict[str, object]:
        """Return it as a map for a management answer."""
        return {
            "link": self.link,
            "connection": self.connection,
            "container": self.container,
            "name": self.name,
            "credit": self.credit,
            "zeroCreditSeconds": int(self.zero_credit_s),
            "undelivered": self.undelivered,
            "unsettled": self.unsettled,
            "stuck": self.stuck,
            "settleRate": int(self.settle_rate),
            "waitsFor": self.waits_for,
        }


@dataclass(frozen=True, slots=True)
class AddressExplanation:
    """The explanation of an address; ``key`` is the key of its senders' messages.

    ``consumers`` and ``senders`` are at most ``MAX_LINKS`` each, the counts beside them are of all. ``fallback`` is the
    key that messages without a consumer go to, or empty.
    """

    address: str
    key: str
    rule: str
    treatment: str
    in_process: int
    consumer_count: int
    consumers: tuple[LinkFacts, ...]
    sender_count: int
    senders: tuple[LinkFacts, ...]
    fallback: str
    verdict: str
    #: The verdict is that messages would flow, and that no client here sends any.
    lacks_sender: bool = False

    def as_map(self) -> dict[str, object]:
        """Return it as a map for a management answer."""
        return {
            "address": self.address,
            "key": self.key,
            "rule": self.rule,
            "treatment": self.treatment,
            "inProcess": self.in_process,
            "consumerCount": self.consumer_count,
            "consumers": [each.as_map() for each in self.consumers],
            "senderCount": self.sender_count,
            "senders": [each.as_map() for each in self.senders],
            "fallback": self.fallback,
            "verdict": self.verdict,
            "lacksSender": self.lacks_sender,
        }


def explain(router: Router, address: str) -> AddressExplanation:
    """Return the explanation of ``address``, which may be any text, without changing anything."""
    if len(address.encode("utf-8", "replace")) > MAX_ADDRESS_BYTES:
        return _without_entry(address[:_SHOWN], "", "", "", "no address: too long")
    table = router.table
    parsed = table.parse(address)
    rule = table.rule_for(parsed)
    key = parsed.key_in_phase(str(rule.ingress_phase))
    routed = _routed(router, parsed)
    if routed:
        return _without_entry(address, key, "", LINK_BALANCED, routed)
    entry = table.entries.get(key)
    if entry is None:
        verdict = _why_no_entry(router, parsed, rule)
        return _without_entry(address, key, _describe(router, rule), rule.distribution, verdict)
    consumers: list[Egress] = entry.forwarder.consumers
    senders = _senders(entry)
    taken = _fallback(entry)
    held = _judge_held(router, parsed, rule, entry)
    return AddressExplanation(
        address,
        key,
        _describe(router, rule),
        entry.treatment,
        len(entry.forwarder.subscriptions),
        len(consumers),
        _facts(router, consumers),
        len(senders),
        _facts(router, senders),
        "" if taken is None else taken.key,
        held or _judge_free(router, entry),
        lacks_sender=not held and not entry.senders,
    )


def _without_entry(address: str, key: str, rule: str, treatment: str, verdict: str) -> AddressExplanation:
    return AddressExplanation(address, key, rule, treatment, 0, 0, (), 0, (), "", verdict)


def _routed(router: Router, address: Address) -> str:
    """Return where links to the address are routed; empty if neither direction's are."""
    if address.letter != MOBILE or router.table.is_served(address):
        return ""
    found = [(way, router.routes.find(address.text, way)) for way in (IN, OUT)]
    return "; ".join(f"{_WHOSE[way]} {_where(router, pattern)}" for way, pattern in found if pattern is not None)


def _where(router: Router, pattern: RoutePattern) -> str:
    hops = [f"{hop.container.container_id} on connection {hop.container.number}" for hop in pattern.hops[:_NAMED]]
    more = f" and {len(pattern.hops) - _NAMED} more" if len(pattern.hops) > _NAMED else ""
    if hops:
        return f"are routed by {pattern.key[1:]} to container {', '.join(hops)}{more}"
    others = [each for each in pattern.routers if each not in router.network.siblings]
    if others:
        return f"are routed by {pattern.key[1:]} to router {', '.join(others[:_NAMED])}"
    if pattern.routers:
        return f"are routed by {pattern.key[1:]} to another worker"
    return f"are refused: {pattern.key[1:]} is routed, and its container is not connected"


#: The links of each direction.
_WHOSE: Final = {IN: "senders", OUT: "receivers"}


def _describe(router: Router, rule: AddressRule) -> str:
    """Return the rule in the words of its entity."""
    if rule is router.table.default_rule:
        return f"defaultDistribution: {rule.distribution}"
    kind = "prefix" if rule.is_prefix else "pattern"
    name = f"{rule.name}: " if rule.name else ""
    phases = f", phases {rule.ingress_phase} to {rule.egress_phase}" if rule.ingress_phase or rule.egress_phase else ""
    fallback = ", fallback" if rule.enable_fallback else ""
    return f"{name}{kind} {rule.pattern}, {rule.distribution}{phases}{fallback}"


def _why_no_entry(router: Router, address: Address, rule: AddressRule) -> str:
    """Return the verdict for an address without users."""
    if not address.rest:
        return "no address: empty"
    if address.rest in SERVICES:
        return "closed to clients: the router's own"
    if address.letter in (ROUTER, AREA, EDGE) or address.key == UPLINK_KEY:
        return "elsewhere: belongs to a router that this one does not know"
    if router.table.is_refused(address):
        return "unavailable by configuration"
    if rule.ingress_phase != rule.egress_phase:
        waiting = router.table.entries.get(address.key_in_phase(str(rule.egress_phase)))
        if waiting is not None and waiting.count_destinations() > 0:
            return _no_waypoint(rule, waiting)
    return "unknown address: no client sends to it or receives from it"


def _no_waypoint(rule: AddressRule, waiting: AddressEntry) -> str:
    return (
        f"no consumer in phase {rule.ingress_phase}, where messages enter: nothing takes them on to phase "
        f"{rule.egress_phase}, which has {_count(waiting.count_destinations(), 'consumer')}"
    )


def _judge_held(router: Router, address: Address, rule: AddressRule, entry: AddressEntry) -> str:
    """Return the worst verdict on what holds messages back; empty if nothing does."""
    if isinstance(entry.forwarder, Exchange):
        return _judge_exchange(entry.forwarder)
    taken = _fallback(entry)
    served = entry if taken is None else taken
    if served.count_destinations() == 0:
        return _judge_unserved(router, address, rule, entry)
    where = "" if taken is None else "on fallback: "
    consumers: list[Egress] = served.forwarder.consumers
    busy = [each for each in consumers if each.count_load() > 0]
    stuck = [each for each in consumers if router.deliveries_stuck(each.link) > 0]
    unpaid = [each for each in consumers if each.link.credit <= 0]
    if consumers and not served.forwarder.subscriptions and len(unpaid) == len(consumers):
        return f"{where}consumers without credit: {_name(unpaid)}"
    for reason, text in _BLOCKED.items():
        blocked = [each for each in busy if each.backlog > 0 and _waits_for(each) == reason]
        if blocked:
            return f"{where}held by {_name(blocked)}: {text}"
    if stuck:
        holder = max(stuck, key=Egress.count_load)
        count = router.deliveries_stuck(holder.link)
        return f"{where}held by {_name([holder])}: {count} waiting or unsettled for more than {STUCK_AFTER_S:.0f} s"
    thirsty = [each for each in _senders(entry) if each.link.credit <= 0]
    if thirsty and len(thirsty) == len(entry.senders) and busy:
        holder = max(busy, key=Egress.count_load)
        return f"{where}senders without credit: {_name([holder])} has {holder.count_load()} waiting or unsettled"
    if thirsty and len(thirsty) == len(entry.senders) and not consumers:
        waiting = sum(each.unsettled for each in thirsty)
        return f"{where}senders without credit: other routers have {waiting} of their deliveries waiting or unsettled"
    behind = [each for each in busy if each.backlog > 0]
    if behind:
        return f"{where}flowing, but {_name(behind)} {'is' if len(behind) == 1 else 'are'} behind"
    return ""


def _judge_free(router: Router, entry: AddressEntry) -> str:
    """Return the verdict on an address whose messages nothing holds back."""
    taken = _fallback(entry)
    served, where = (entry, "") if taken is None else (taken, "on fallback: ")
    if not entry.senders:
        return f"{where}ready: no sender of its own"
    moves = any(each.count_load() > 0 for each in served.forwarder.consumers) or _moves(router, served)
    return f"{where}flowing" if moves else f"{where}ready: nothing is under way"


def _senders(entry: AddressEntry) -> list[Ingress]:
    return [each for each in entry.senders if isinstance(each, Ingress)]


def _judge_exchange(exchange: Exchange) -> str:
    where = _count(exchange.bindings, "binding")
    unserved = [hop.to for hop in exchange.list_hops() if hop.entry.count_destinations() == 0]
    missing = f"; no client receives from {', '.join(unserved[:_NAMED])}" if unserved else ""
    more = f" and {len(unserved) - _NAMED} more" if len(unserved) > _NAMED else ""
    return f"taken by exchange {exchange.rule.name}, which has {where}{missing}{more}"


def _judge_unserved(router: Router, address: Address, rule: AddressRule, entry: AddressEntry) -> str:
    waiting = None
    if rule.ingress_phase != rule.egress_phase:
        waiting = router.table.entries.get(address.key_in_phase(str(rule.egress_phase)))
    if waiting is not None and waiting is not entry and waiting.count_destinations() > 0:
        return _no_waypoint(rule, waiting)
    if entry.senders:
        return f"no consumer: {_count(len(entry.senders), 'sender')} without new credit until one comes"
    return "no consumer"


#: Why a link waits although its receiver gave credit.
_BLOCKED: Final = {"window": "its session's window is closed", "output": "its connection takes nothing in"}


def _waits_for(endpoint: Egress | Ingress) -> str:
    """Return what a link waits for; empty if it can continue."""
    if isinstance(endpoint, Egress) and endpoint.link.waiting:
        return "window" if endpoint.link.session.windows.outgoing_frames <= 0 else "output"
    return "credit" if endpoint.link.credit <= 0 else ""


def _moves(router: Router, entry: AddressEntry) -> bool:
    now_s = router.shared.now_s
    ends: tuple[Egress | Ingress, ...] = (*entry.forwarder.consumers, *_senders(entry))
    return any(each.pace.rate(settled_count(each), now_s) > 0 for each in ends)


def _fallback(entry: AddressEntry) -> AddressEntry | None:
    """Return the fallback that gets the messages now, or None."""
    fallback = entry.fallback
    return (
        fallback
        if fallback is not None and entry.count_destinations() == 0 and fallback.count_destinations() > 0
        else None
    )


def _facts(router: Router, endpoints: Sequence[Egress | Ingress]) -> tuple[LinkFacts, ...]:
    """Return the facts of the busiest links, by identity."""
    chosen = nlargest(MAX_LINKS, endpoints, key=_load) if len(endpoints) > MAX_LINKS else endpoints
    return tuple(_fact(router, each) for each in sorted(chosen, key=lambda each: each.identity))


def _load(endpoint: Egress | Ingress) -> int:
    return endpoint.count_load() if isinstance(endpoint, Egress) else endpoint.unsettled


def _fact(router: Router, endpoint: Egress | Ingress) -> LinkFacts:
    now_s = router.shared.now_s
    connection = endpoint.link.session.connection
    remote = connection.remote_open if isinstance(connection, Connection) else None
    return LinkFacts(
        link=endpoint.identity,
        connection=endpoint.connection_number,
        container="" if remote is None else remote.container_id,
        name=endpoint.link.name,
        credit=max(0, endpoint.link.credit),
        zero_credit_s=zero_credit_s(endpoint, now_s),
        undelivered=endpoint.backlog if isinstance(endpoint, Egress) else 0,
        unsettled=endpoint.unsettled,
        stuck=router.deliveries_stuck(endpoint.link),
        settle_rate=endpoint.pace.rate(settled_count(endpoint), now_s),
        waits_for=_waits_for(endpoint),
    )


def _name(endpoints: Iterable[Egress | Ingress]) -> str:
    """Return ``link 3 on connection 2, link 5 ... and 7 more``."""
    some = sorted(endpoints, key=lambda each: each.identity)
    named = ", ".join(f"link {each.identity} on connection {each.connection_number}" for each in some[:_NAMED])
    return f"{named} and {len(some) - _NAMED} more" if len(some) > _NAMED else named


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


#: Characters of an invalid address that are returned.
_SHOWN: Final = 256

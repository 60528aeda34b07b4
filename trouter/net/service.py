"""What of a configuration is put into service, and what is withheld because nobody could keep its promise.

A listener that asks for TLS and gets none would let people in whom it was to keep out. So an entity that asks for
something this version does not do is not served at all, and the log says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trouter.config import AddressEntity, Configuration, ConnectorEntity, LinkRouteEntity, ListenerEntity
from trouter.core.patterns import PatternTree, pattern_tokens
from trouter.core.table import UNAVAILABLE, AddressRule


@dataclass(frozen=True, slots=True)
class Service:
    """What is to run. ``withheld`` tells, a line for each, which entities are not, and why."""

    listeners: tuple[ListenerEntity, ...] = ()
    connectors: tuple[ConnectorEntity, ...] = ()
    rules: tuple[AddressRule, ...] = ()
    #: Whether anybody may be let in to speak AMQP.
    serves_amqp: bool = True
    withheld: tuple[str, ...] = ()


def service_of(configuration: Configuration) -> Service:
    """The part of ``configuration`` that this version serves."""
    return Service(
        tuple(listener for listener in configuration.listeners if not configuration.unserved(listener)),
        tuple(connector for connector in configuration.connectors if not configuration.unserved(connector)),
        tuple(rules_of(configuration.addresses, configuration.link_routes)),
        serves_amqp=not configuration.policy.enable_vhost_policy,
        withheld=tuple(_withheld(configuration)),
    )


def _withheld(configuration: Configuration) -> Iterator[str]:
    for entities, what in ((configuration.listeners, "is not opened"), (configuration.connectors, "does not dial")):
        for entity in entities:
            if reasons := configuration.unserved(entity):
                yield f"{entity.identity} ({entity.place}) {what}: {'; '.join(reasons)}"


def rules_of(addresses: Iterable[AddressEntity], link_routes: Iterable[LinkRouteEntity]) -> Iterator[AddressRule]:
    """The core's rules. What belongs to a link route can be had by nobody: it is not ours to treat as messages."""
    routed: PatternTree[AddressRule] = PatternTree()
    for link_route in link_routes:
        rule = _rule(link_route, UNAVAILABLE)
        if rule.tree_pattern not in routed:
            routed.insert(rule.tree_pattern, rule)
    for address in addresses:
        rule = replace(
            _rule(address, address.distribution),
            ingress_phase=address.ingress_phase,
            egress_phase=address.egress_phase,
            priority=-1 if address.priority is None else address.priority,
            enable_fallback=address.enable_fallback,
        )
        if routed.match("/".join(pattern_tokens(rule.tree_pattern))) is None:
            yield rule
    yield from (rule for _, rule in routed.items())


def _rule(entity: AddressEntity | LinkRouteEntity, distribution: str) -> AddressRule:
    if entity.prefix is not None:
        return AddressRule(entity.prefix, True, distribution, name=entity.name)
    return AddressRule(entity.pattern or "", False, distribution, name=entity.name)

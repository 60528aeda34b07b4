"""Address rules: what the configuration says of addresses, in the core's table, and how that changes.

There may be thousands, and most of them stay when one changes; so what was made of an entity is kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trouter.config import AddressEntity, LinkRouteEntity
from trouter.core.patterns import PatternTree, pattern_tokens
from trouter.core.table import UNAVAILABLE, AddressRule, AddressTable

#: An entity, what was made of it, and the rule's tokens as one text.
Made = tuple[AddressEntity | LinkRouteEntity, AddressRule, str]


class Rules:
    """The rules in one table."""

    def __init__(self, table: AddressTable) -> None:
        self.table = table
        #: What was made, by the identity of the entity's object, which is kept and so is unique.
        self.made: dict[int, Made] = {}
        self.present: dict[int, AddressRule] = {}

    def prepare(self, addresses: Iterable[AddressEntity], link_routes: Iterable[LinkRouteEntity]) -> PendingRules:
        """The rules for these; they hold for addresses that come into being afterwards.

        What belongs to a link route can be had by nobody: it is not ours to treat as messages.
        """
        entities: tuple[AddressEntity | LinkRouteEntity, ...] = (*addresses, *link_routes)
        made = {id(entity): self.made.get(id(entity)) or _make(entity) for entity in entities}
        routed: PatternTree[AddressRule] = PatternTree()
        wanted: dict[int, AddressRule] = {}
        for entity, rule, pattern in made.values():
            if isinstance(entity, LinkRouteEntity) and pattern not in routed:  # one for each direction is enough
                routed.insert(pattern, rule)
                wanted[id(rule)] = rule
        for entity, rule, pattern in made.values():
            if isinstance(entity, AddressEntity) and not (len(routed) and routed.match(pattern)):
                wanted[id(rule)] = rule
        return PendingRules(self, made, wanted)


class PendingRules:
    """Rules that are ready to hold."""

    def __init__(self, rules: Rules, made: dict[int, Made], wanted: dict[int, AddressRule]) -> None:
        self._rules = rules
        self._made = made
        self._wanted = wanted

    def apply(self) -> None:
        present, table = self._rules.present, self._rules.table
        gone = dict.fromkeys(rule for key, rule in present.items() if key not in self._wanted)
        come = [rule for key, rule in self._wanted.items() if key not in present]
        alike = gone.keys() & set(come)
        for rule in gone:
            if rule not in alike:
                table.remove_rule(rule)
        for rule in come:
            if rule not in alike:
                table.add_rule(rule)
        self._rules.made, self._rules.present = self._made, self._wanted

    def drop(self) -> None:
        """Nothing was opened."""


def _make(entity: AddressEntity | LinkRouteEntity) -> Made:
    if entity.prefix is not None:
        rule = AddressRule(entity.prefix, True, name=entity.name)
    else:
        rule = AddressRule(entity.pattern or "", False, name=entity.name)
    if isinstance(entity, AddressEntity):
        rule = replace(
            rule,
            distribution=entity.distribution,
            ingress_phase=entity.ingress_phase,
            egress_phase=entity.egress_phase,
            priority=-1 if entity.priority is None else entity.priority,
            enable_fallback=entity.enable_fallback,
        )
    else:
        rule = replace(rule, distribution=UNAVAILABLE)
    return entity, rule, "/".join(pattern_tokens(rule.tree_pattern))

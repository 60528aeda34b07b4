"""The configured rules about addresses: their changes, applied to the core's table.

There may be thousands of rules, and most of them stay when one changes, so the rule of each entity is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from trouter.config import AddressEntity
from trouter.core.patterns import normal_form
from trouter.core.table import AddressRule, AddressTable
from trouter.net.parts import Step

#: An entity and its rule.
Made = tuple[AddressEntity, AddressRule]


class ConfiguredAddresses:
    """The configured rules of one table of addresses."""

    def __init__(self, table: AddressTable) -> None:
        self.table = table
        #: By ``id`` of the entity, which is kept here, so that its id stays unique.
        self.made: dict[int, Made] = {}
        self.present: dict[int, AddressRule] = {}

    def prepare(self, addresses: Iterable[AddressEntity]) -> Step:
        """Return the step to the rules of these entities; they hold for addresses that are created afterwards."""
        made = {id(entity): self.made.get(id(entity)) or (entity, _make(entity)) for entity in addresses}
        return Step(partial(self._replace, made, {id(rule): rule for _, rule in made.values()}))

    def _replace(self, made: dict[int, Made], wanted: dict[int, AddressRule]) -> None:
        gone = dict.fromkeys(rule for key, rule in self.present.items() if key not in wanted)
        come = [rule for key, rule in wanted.items() if key not in self.present]
        alike = gone.keys() & set(come)
        for rule in gone:
            if rule not in alike:
                self.table.remove_rule(rule)
        for rule in come:
            if rule not in alike:
                self.table.add_rule(rule)
        self.made, self.present = made, wanted
        self.table.count_by_rules(wanted.values())


def _make(entity: AddressEntity) -> AddressRule:
    is_prefix = entity.prefix is not None
    pattern = normal_form(entity.prefix or entity.pattern or "", is_prefix=is_prefix)
    return AddressRule(
        pattern,
        is_prefix,
        name=entity.name,
        distribution=entity.distribution,
        ingress_phase=entity.ingress_phase,
        egress_phase=entity.egress_phase,
        priority=-1 if entity.priority is None else entity.priority,
        enable_fallback=entity.enable_fallback,
        counted_as=(entity.given_name or pattern) if entity.metrics else "",
    )

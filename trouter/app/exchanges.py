"""The configured exchanges and bindings: their changes, applied to the core, and their counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from trouter.config import BindingEntity, ExchangeEntity
from trouter.core.exchanges import Binding, BindingRule, Exchange, ExchangeRule
from trouter.core.router import Router
from trouter.net.parts import Step
from trouter.wire.types import UInt, ULong


class ConfiguredExchanges:
    """The exchanges and bindings of the configuration. ``flush`` writes the output that a change causes."""

    def __init__(self, router: Router, flush: Callable[[], None]) -> None:
        self.exchanges = router.exchanges
        self.flush = flush
        #: By the entity's identity.
        self.made: dict[str, tuple[ExchangeEntity, Exchange]] = {}
        self.bound: dict[str, tuple[BindingEntity, Exchange, Binding]] = {}

    def prepare(self, exchanges: Iterable[ExchangeEntity], bindings: Iterable[BindingEntity]) -> Step:
        """Return the step that makes exactly these exist; exchanges and bindings that stay keep their counts."""
        wanted = {entity.identity: entity for entity in exchanges}
        return Step(partial(self._replace_exchanges, wanted, {entity.identity: entity for entity in bindings}))

    def _replace_exchanges(
        self, exchanges: Mapping[str, ExchangeEntity], bindings: Mapping[str, BindingEntity]
    ) -> None:
        """Remove what is gone or changed before adding, so that another exchange may take over an address or a name."""
        for key in [key for key, (entity, _) in self.made.items() if exchanges.get(key) != entity]:
            _, exchange = self.made.pop(key)
            for bound in [bound for bound, (_, its, _) in self.bound.items() if its is exchange]:
                exchange.unbind(self.bound.pop(bound)[2])
            self.exchanges.remove(exchange)
        for key in [key for key, (entity, _, _) in self.bound.items() if bindings.get(key) != entity]:
            _, exchange, binding = self.bound.pop(key)
            exchange.unbind(binding)
        for key, entity in exchanges.items():
            if key not in self.made:
                self.made[key] = entity, self.exchanges.add(exchange_rule(entity))
        named = {entity.name: exchange for entity, exchange in self.made.values()}
        for key, binding_entity in bindings.items():
            if key not in self.bound:
                exchange = named[binding_entity.exchange_name]
                self.bound[key] = binding_entity, exchange, exchange.bind(binding_rule(binding_entity))
        self.flush()

    def status(self, entity: ExchangeEntity | BindingEntity) -> Mapping[str, object]:
        """Return the counters of an exchange or binding; none if it is not in service."""
        if isinstance(entity, BindingEntity):
            _, _, binding = self.bound.get(entity.identity, (None, None, None))
            return {} if binding is None else {"matchedCount": ULong(binding.matched)}
        _, exchange = self.made.get(entity.identity, (None, None))
        if exchange is None:
            return {}
        return {
            "bindingCount": UInt(exchange.bindings),
            "receivedCount": ULong(exchange.received),
            "droppedCount": ULong(exchange.dropped),
            "forwardedCount": ULong(exchange.forwarded),
            "divertedCount": ULong(exchange.diverted),
        }


def exchange_rule(entity: ExchangeEntity) -> ExchangeRule:
    """Return the rule of the exchange that an entity describes."""
    return ExchangeRule(
        entity.name,
        entity.address,
        entity.phase,
        entity.alternate_address or "",
        entity.alternate_phase,
        entity.match_method,
    )


def binding_rule(entity: BindingEntity) -> BindingRule:
    """Return the rule of the binding that an entity describes."""
    return BindingRule(entity.binding_key or "#", entity.next_hop_address, entity.next_hop_phase)

"""Configured exchanges and their bindings, in the core, and how that changes; what is counted of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trouter.config import BindingEntity, ExchangeEntity
from trouter.core.exchanges import Binding, BindingRule, Exchange, ExchangeRule
from trouter.core.router import Router
from trouter.wire.types import UInt, ULong


class ConfiguredExchanges:
    """What of both is configured. ``flush`` writes out what a change leaves to be written."""

    def __init__(self, router: Router, flush: Callable[[], None]) -> None:
        self.exchanges = router.exchanges
        self.flush = flush
        #: By the identity of the entity's object, which is kept and so is unique.
        self.made: dict[int, tuple[ExchangeEntity, Exchange]] = {}
        self.bound: dict[int, tuple[BindingEntity, Exchange, Binding]] = {}

    def prepare(self, exchanges: Iterable[ExchangeEntity], bindings: Iterable[BindingEntity]) -> PendingExchanges:
        """These and no others; what of them is there already keeps its counts."""
        return PendingExchanges(self, list(exchanges), list(bindings))

    def status(self, entity: ExchangeEntity | BindingEntity) -> Mapping[str, object]:
        """What is counted of one."""
        if isinstance(entity, BindingEntity):
            _, _, binding = self.bound.get(id(entity), (None, None, None))
            return {} if binding is None else {"matchedCount": ULong(binding.matched)}
        _, exchange = self.made.get(id(entity), (None, None))
        if exchange is None:
            return {}
        return {
            "bindingCount": UInt(exchange.bindings),
            "receivedCount": ULong(exchange.received),
            "droppedCount": ULong(exchange.dropped),
            "forwardedCount": ULong(exchange.forwarded),
            "divertedCount": ULong(exchange.diverted),
        }


class PendingExchanges:
    """Exchanges and bindings that are ready to be; what cannot be was found out when they were read."""

    def __init__(
        self, configured: ConfiguredExchanges, exchanges: list[ExchangeEntity], bindings: list[BindingEntity]
    ) -> None:
        self._configured = configured
        self._exchanges = {id(entity): entity for entity in exchanges}
        self._bindings = {id(entity): entity for entity in bindings}

    def apply(self) -> None:
        """What is gone goes first, so that an address or a name may pass to another."""
        present, core = self._configured, self._configured.exchanges
        for key in [key for key in present.made if key not in self._exchanges]:
            _, exchange = present.made.pop(key)
            for bound in [bound for bound, (_, its, _) in present.bound.items() if its is exchange]:
                exchange.unbind(present.bound.pop(bound)[2])
            core.remove(exchange)
        for key in [key for key in present.bound if key not in self._bindings]:
            _, exchange, binding = present.bound.pop(key)
            exchange.unbind(binding)
        for key, entity in self._exchanges.items():
            if key not in present.made:
                present.made[key] = entity, core.add(exchange_rule(entity))
        named = {entity.name: exchange for entity, exchange in present.made.values()}
        for key, binding_entity in self._bindings.items():
            if key not in present.bound:
                exchange = named[binding_entity.exchange_name]
                present.bound[key] = binding_entity, exchange, exchange.bind(binding_rule(binding_entity))
        present.flush()

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


def exchange_rule(entity: ExchangeEntity) -> ExchangeRule:
    """The exchange that an entity asks for."""
    return ExchangeRule(
        entity.name,
        entity.address,
        entity.phase,
        entity.alternate_address or "",
        entity.alternate_phase,
        entity.match_method,
    )


def binding_rule(entity: BindingEntity) -> BindingRule:
    """The binding that an entity asks for."""
    return BindingRule(entity.binding_key or "#", entity.next_hop_address, entity.next_hop_phase)

"""Checks whether the routers of several configurations make a network, as far as the files show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from . import texts
from .configuration import Configuration
from .entities import ConnectorEntity, ListenerEntity
from .hosts import EVERY_ADDRESS

ROLE: Final = "inter-router"


class Remark(NamedTuple):
    """A remark about a network; ``grave`` if the network cannot work."""

    text: str
    grave: bool


def remarks(configurations: Sequence[Configuration]) -> Iterator[Remark]:
    """Yield remarks about problems and oddities in the network of these routers."""
    yield from _same_ids(configurations)
    interior = [each for each in configurations if each.router.mode == "interior"]
    dials = [(each, connector) for each in interior for connector in _connectors(each)]
    if len(configurations) > 1 and dials and not any(_listeners(each) for each in interior):
        yield Remark(f"connectors dial, but no file has a listener of role {ROLE} that answers them", True)
    for each, connector in dials:
        for other in configurations:
            if other is not each:
                yield from _call(each, connector, other)


def _same_ids(configurations: Sequence[Configuration]) -> Iterator[Remark]:
    seen: dict[str, Configuration] = {}
    for each in configurations:
        if each.router.mode == "standalone":
            continue
        other = seen.setdefault(each.router.id, each)
        if other is not each:
            yield Remark(f"{each.source}: the router has the id {each.router.id}, as that of {other.source} has", True)


def _call(each: Configuration, connector: ConnectorEntity, other: Configuration) -> Iterator[Remark]:
    """Yield a remark if a connector does not fit the listener of another file that it dials."""
    called = next((listener for listener in other.listeners if _leads_to(connector, listener)), None)
    if called is None:
        return
    who = f"{each.source}: the connector {connector.name} dials the listener {called.name} of {other.source}"
    if called.role != ROLE:
        yield Remark(f"{who}, whose role is {called.role}, not {ROLE}", True)
    elif called.cost != connector.cost:
        cost = max(called.cost, connector.cost)
        yield Remark(f"{who}: costs {connector.cost} here and {called.cost} there; {cost} counts on both sides", False)


def _leads_to(connector: ConnectorEntity, listener: ListenerEntity) -> bool:
    """Return whether both have the same host and port; a listener on all addresses may be on any host."""
    if listener.serves_http or texts.port_or_service(connector.port) != texts.port_or_service(listener.port):
        return False
    return listener.host in EVERY_ADDRESS or listener.host.lower() == connector.host.lower()


def _listeners(configuration: Configuration) -> list[ListenerEntity]:
    return [each for each in configuration.listeners if each.role == ROLE]


def _connectors(configuration: Configuration) -> list[ConnectorEntity]:
    return [each for each in configuration.connectors if each.role == ROLE]

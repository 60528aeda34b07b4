"""What of a configuration is put into service, and what is withheld because nobody could keep its promise.

A listener that asks for TLS and gets none would let people in whom it was to keep out. So an entity that asks for
something this version does not do is not served at all, and the log says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trouter.config import Configuration, ConnectorEntity, ListenerEntity


@dataclass(frozen=True, slots=True)
class Service:
    """What is to run. ``withheld`` tells, a line for each, which entities are not, and why."""

    listeners: tuple[ListenerEntity, ...] = ()
    connectors: tuple[ConnectorEntity, ...] = ()
    withheld: tuple[str, ...] = ()


def service_of(configuration: Configuration) -> Service:
    """The part of ``configuration`` that this version serves."""
    return Service(
        tuple(listener for listener in configuration.listeners if not configuration.unserved(listener)),
        tuple(connector for connector in configuration.connectors if not configuration.unserved(connector)),
        withheld=tuple(_withheld(configuration)),
    )


def _withheld(configuration: Configuration) -> Iterator[str]:
    for entities, what in ((configuration.listeners, "is not opened"), (configuration.connectors, "does not dial")):
        for entity in entities:
            if reasons := configuration.unserved(entity):
                yield f"{entity.identity} ({entity.place}) {what}: {'; '.join(reasons)}"

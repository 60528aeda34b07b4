"""What of a configuration is put into service, and what is withheld because nobody could keep its promise."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.config import Configuration, ListenerEntity
from trouter.core.table import AddressRule

from .settings import address_rule


@dataclass(frozen=True, slots=True)
class Service:
    """What is to run. ``withheld`` tells, a line for each, which entities are not, and why."""

    listeners: tuple[ListenerEntity, ...]
    rules: tuple[AddressRule, ...]
    withheld: tuple[str, ...] = ()


def service_of(configuration: Configuration) -> Service:
    """The part of ``configuration`` that this version serves."""
    return Service(configuration.listeners, tuple(address_rule(entity) for entity in configuration.addresses))

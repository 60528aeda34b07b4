"""Which parts of a configuration are served, and which are withheld because the router cannot keep their promise.

A listener that asks for TLS and gets none would admit clients that it was to keep out. So an entity that asks for
something this version does not do, or this machine has no certificate for, is not served at all, and the log says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trouter.config import Configuration, ConnectorEntity, ListenerEntity, Problem
from trouter.config.findings import NO_FAULTS, not_served, reasons_against


@dataclass(frozen=True, slots=True)
class Service:
    """What is to run. ``withheld`` tells which entities are not, and why."""

    listeners: tuple[ListenerEntity, ...] = ()
    connectors: tuple[ConnectorEntity, ...] = ()
    withheld: tuple[Problem, ...] = ()


def service_of(configuration: Configuration, faults: Mapping[str, str] = NO_FAULTS) -> Service:
    """Return the part of ``configuration`` that can be served; ``faults``: why sslProfiles cannot be used, by name."""
    return Service(
        tuple(one for one in configuration.listeners if not reasons_against(configuration, one, faults)),
        tuple(one for one in configuration.connectors if not reasons_against(configuration, one, faults)),
        withheld=tuple(not_served(configuration, faults)),
    )

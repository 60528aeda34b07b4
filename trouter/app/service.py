"""Which listeners and connectors are served, and which are withheld because the router cannot do what they ask for.

A listener that asks for TLS and gets none would admit clients that it should keep out. So an entity that asks for
a feature that this version lacks, or whose certificate is missing, is withheld, and the log says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trouter.config import Configuration, ConnectorEntity, ListenerEntity, Problem
from trouter.config.findings import NO_FAULTS, not_served, reasons_against


@dataclass(frozen=True, slots=True)
class Service:
    """The entities to serve. ``withheld`` holds a problem for each entity that is not served."""

    listeners: tuple[ListenerEntity, ...] = ()
    connectors: tuple[ConnectorEntity, ...] = ()
    withheld: tuple[Problem, ...] = ()


def service_of(configuration: Configuration, faults: Mapping[str, str] = NO_FAULTS) -> Service:
    """Return the part of ``configuration`` that can be served; ``faults``: the fault of each unusable sslProfile."""
    return Service(
        tuple(one for one in configuration.listeners if not reasons_against(configuration, one, faults)),
        tuple(one for one in configuration.connectors if not reasons_against(configuration, one, faults)),
        withheld=tuple(not_served(configuration, faults)),
    )

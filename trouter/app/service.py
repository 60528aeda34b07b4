"""Which listeners and connectors are served, and which are withheld because the router cannot do what they ask for.

An entity that asks for a feature that this version lacks is withheld, and so is a connector whose certificate is
missing; the log says so. A listener whose certificate is missing opens, as on Qpid Dispatch, and refuses its clients
(``tls/secure.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trouter.config import Configuration, ConnectorEntity, ListenerEntity, Problem
from trouter.config.findings import NO_FAULTS, not_served, reasons_against


@dataclass(frozen=True, slots=True)
class Service:
    """The entities to serve. ``withheld`` holds a problem for each that is not served, or whose TLS will fail."""

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

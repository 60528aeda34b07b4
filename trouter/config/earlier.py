"""Sections and log modules that earlier 1.x releases of Qpid Dispatch knew and 1.19 does not: a file is served
without them, and the findings say what does not work, and what to do instead.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trouter.config.nodes import Scalar, Section
from trouter.config.schema import EntityType, same_name


class Earlier(NamedTuple):
    """What no longer works without a section, and what to use in its place."""

    loss: str
    instead: str


_TCP: Final = "connect the programs by AMQP, or run a bridge for TCP beside the router"
_HTTP: Final = "connect the programs by AMQP or AMQP over WebSockets (a listener with http: yes)"
NO_LOG: Final = "the module logs a part that is not here: leave it out"

#: Sections.
SECTIONS: Final = {
    "tcpListener": Earlier("no program can connect by TCP at this port", _TCP),
    "tcpConnector": Earlier("no messages go to this TCP server", _TCP),
    "httpListener": Earlier("no program can send HTTP requests to this port", _HTTP),
    "httpConnector": Earlier("no messages go to this HTTP server", _HTTP),
    "container": Earlier("none of its attributes has an effect", "write id and saslConfigName in the router section"),
    "fixedAddress": Earlier(
        "its addresses have the distribution of all others", "write an address section with prefix and distribution"
    ),
    "waypoint": Earlier(
        "messages to its address do not pass through the broker",
        "write an address section with waypoint: yes, and an autoLink in and an autoLink out",
    ),
    "linkRoutePattern": Earlier(
        "no link is routed to the broker", "write a linkRoute section with prefix, direction and connection"
    ),
}
#: Modules of a `log` section.
MODULES: Final = dict.fromkeys(("TCP_ADAPTOR", "HTTP_ADAPTOR", "CONFIG", "DISPATCH"), NO_LOG)


def earlier_section(spelling: str) -> Earlier | None:
    """Return the row of a section by a spelling of its name; None if no earlier release knew it."""
    return next((row for name, row in SECTIONS.items() if same_name(spelling, name)), None)


def earlier_module(kind: EntityType, section: Section) -> str:
    """Return the module of a `log` section if only earlier releases knew it; else an empty text."""
    if kind.short != "log":
        return ""
    named = [entry.node for entry in section.entries if same_name(entry.key, "module")]
    value = named[-1].value if named and isinstance(named[-1], Scalar) else None
    return value if isinstance(value, str) and value in MODULES else ""

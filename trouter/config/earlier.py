"""Names that earlier releases of Qpid Dispatch knew and 1.19 does not, and those that this router has given up.

A file is served without their sections and log modules, and the findings say what does not work, and what to do
instead. An attribute or a value of 0.x is refused, as by 1.19, with what it is called today; `trouter migrate` writes
that (``migrate/oldest.py``).
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
#: Ends the advice about a name that `trouter migrate` replaces.
_MIGRATED: Final = "; `trouter migrate` does it"
NO_LOG: Final = "the module logs a part that is not here: leave it out"

#: Sections.
SECTIONS: Final = {
    "tcpListener": Earlier("no program can connect by TCP at this port", _TCP),
    "tcpConnector": Earlier("no messages go to this TCP server", _TCP),
    "httpListener": Earlier("no program can send HTTP requests to this port", _HTTP),
    "httpConnector": Earlier("no messages go to this HTTP server", _HTTP),
    "container": Earlier(
        "none of its attributes has an effect", f"write id and saslConfigDir in the router section{_MIGRATED}"
    ),
    "fixedAddress": Earlier(
        "its addresses have the distribution of all others",
        f"write an address section with prefix and distribution{_MIGRATED}",
    ),
    "waypoint": Earlier(
        "messages to its address do not pass through the broker",
        f"write an address section with waypoint: yes, and an autoLink in and an autoLink out{_MIGRATED}",
    ),
    "linkRoutePattern": Earlier(
        "no link is routed to the broker", f"write a linkRoute section with prefix, direction and connection{_MIGRATED}"
    ),
}


class Former(NamedTuple):
    """A former attribute: its name today, empty if it has none, and what to write; ``by_hand``: only operators can."""

    today: str
    instead: str
    by_hand: bool = False


def _called(name: str) -> Former:
    return Former(name, f"it is called {name} today{_MIGRATED}")


_ANSWERED: Final = Former("authenticatePeer", f"write authenticatePeer, yes or no{_MIGRATED}")
_IN_PROFILE: Final = Former(
    "", "write it into an sslProfile section, and the name of that as sslProfile here", by_hand=True
)
#: Attributes of 0.x that have another name today, or none, by section.
ATTRIBUTES: Final = {
    ("router", "routerId"): _called("id"),
    ("router", "containerName"): _called("id"),
    ("router", "mobileAddrMaxAge"): Former("", f"leave it out: it has no effect since 0.6{_MIGRATED}"),
    ("listener", "addr"): _called("host"),
    ("listener", "requirePeerAuth"): _ANSWERED,
    ("listener", "allowNoSasl"): Former(
        "authenticatePeer", f"write the opposite as authenticatePeer, and no where ANONYMOUS is allowed{_MIGRATED}"
    ),
    ("listener", "allowUnsecured"): Former("requireSsl", f"write the opposite as requireSsl{_MIGRATED}"),
    ("connector", "addr"): _called("host"),
    ("connector", "requirePeerAuth"): Former("", f"leave it out: an sslProfile verifies the server{_MIGRATED}"),
    ("connector", "allowNoSasl"): Former("", f"leave it out: a connector always logs in by SASL{_MIGRATED}"),
    ("connector", "allowUnsecured"): Former("", f"leave it out: a connector with an sslProfile uses TLS{_MIGRATED}"),
    **{
        (section, name): _IN_PROFILE
        for section in ("listener", "connector")
        for name in ("certDb", "certFile", "keyFile", "password", "passwordFile")
    },
}
#: Attributes that earlier releases of this router had: only operators can tell what they want in their place.
REMOVED: Final = {
    ("sslProfile", "ocsp"): Former(
        "",
        "leave it out: the router asks no OCSP responder; name revocation lists with crlFile, or issue certificates "
        "that end soon",
        by_hand=True,
    )
}
#: Values of 0.x and what they are called today, by section and attribute.
VALUES: Final = {("connector", "role"): {"on-demand": "route-container"}, ("listener", "role"): {"on-demand": "normal"}}
#: Modules of a `log` section.
MODULES: Final = dict.fromkeys(("TCP_ADAPTOR", "HTTP_ADAPTOR", "CONFIG", "DISPATCH"), NO_LOG)


def earlier_section(spelling: str) -> Earlier | None:
    """Return the row of a section by a spelling of its name; None if no earlier release knew it."""
    return next((row for name, row in SECTIONS.items() if same_name(spelling, name)), None)


def former_attribute(section: str, spelling: str) -> Former | None:
    """Return the row of an attribute of 0.x or a removed one, by a spelling of its name; None if it is none."""
    rows = ((name, row) for (of, name), row in {**ATTRIBUTES, **REMOVED}.items() if of == section)
    return next((row for name, row in rows if same_name(spelling, name)), None)


def former_value(section: str, attribute: str, text: str) -> str:
    """Return what a value of 0.x is called today; empty if it is none."""
    return VALUES.get((section, attribute), {}).get(text, "")


def earlier_module(kind: EntityType, section: Section) -> str:
    """Return the module of a `log` section if only earlier releases knew it; else an empty text."""
    if kind.short != "log":
        return ""
    named = [entry.node for entry in section.entries if same_name(entry.key, "module")]
    value = named[-1].value if named and isinstance(named[-1], Scalar) else None
    return value if isinstance(value, str) and value in MODULES else ""

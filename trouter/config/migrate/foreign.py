"""Parts of files of related routers that trouter does not serve, each with what to use instead.

skupper-router reads the JSON form, with most of the sections of the older router; AMQP between routers and clients is
what the two have in common. Bridges for TCP and HTTP, of both, have no counterpart here.
"""

from __future__ import annotations

from typing import Final

_TCP: Final = "connect the programs by AMQP, or run a bridge for TCP beside the router"
_HTTP: Final = "connect the programs by AMQP or AMQP over WebSockets (a listener with http: yes)"
_NO_LOG: Final = "the module logs a part that is not here: leave it out"

#: Sections.
SECTIONS: Final = {
    "tcpListener": _TCP,
    "tcpConnector": _TCP,
    "httpListener": _HTTP,
    "httpConnector": _HTTP,
    "site": "name the place in router.metadata; the records of a recordLog name the router",
}
#: Attributes, by section.
ATTRIBUTES: Final = {
    ("router", "vanId"): "separate networks by TLS authorities, or tenants by vhosts",
    ("router", "dataConnectionCount"): "one connection carries the traffic of two routers; messages are interleaved",
    ("router", "dropTcpConnections"): "there are no bridges for TCP",
    ("sslProfile", "version"): "ordinal, with oldestValidOrdinal",
    ("sslProfile", "oldestValidVersion"): "oldestValidOrdinal, with ordinal",
}
#: Values that leave out the whole section, by section and attribute.
VALUES: Final = {
    ("listener", "role"): {"inter-edge": "connect each edge router to an interior router (role: edge)"},
    ("connector", "role"): {"inter-edge": "connect each edge router to an interior router (role: edge)"},
    ("log", "module"): dict.fromkeys(
        (
            "TCP_ADAPTOR",
            "HTTP_ADAPTOR",
            "FLOW_LOG",
            "ADDRESS_WATCH",
            "HTTP1_OBSERVER",
            "HTTP2_OBSERVER",
            "HTTP2_DECODER",
        ),
        _NO_LOG,
    ),
}

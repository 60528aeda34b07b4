"""Parts of files of related routers that trouter does not serve, each with what to use instead.

skupper-router reads the JSON form, with most of the sections of Qpid Dispatch; AMQP between routers and clients is
what the two have in common. Bridges for TCP and HTTP, of it and of earlier releases of Qpid Dispatch, have no
counterpart here.
"""

from __future__ import annotations

from typing import Final

from trouter.config import earlier
from trouter.config.schema import same_name

#: Sections.
SECTIONS: Final = {
    **{name: row.instead for name, row in earlier.SECTIONS.items()},
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
    ("log", "module"): {
        **earlier.MODULES,
        **dict.fromkeys(
            ("FLOW_LOG", "ADDRESS_WATCH", "HTTP1_OBSERVER", "HTTP2_OBSERVER", "HTTP2_DECODER"), earlier.NO_LOG
        ),
    },
}


def instead_of(section: str) -> str:
    """Return what to use instead of a section, by a spelling of its name; empty for one that is served."""
    return next((instead for name, instead in SECTIONS.items() if same_name(section, name)), "")

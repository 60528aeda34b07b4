"""The names, limits and errors of what edge routers and their interior router exchange (inter-router.md 6)."""

from __future__ import annotations

from typing import Final

from trouter.wire.performatives import Error

LOOKUP: Final = "_$qd.addr_lookup"
TRACKING: Final = "_$qd.edge_addr_tracking"
HEARTBEAT: Final = "_$qd.edge_heartbeat"
#: The services of an interior router for edge routers, each for links of one kind (routing.md 1.4).
SERVICES: Final = frozenset({LOOKUP, TRACKING, HEARTBEAT})
DOWNLINK: Final = "qd.router-edge-downlink"

LOOKUP_CREDIT: Final = 32
HEARTBEAT_CREDIT: Final = 2
#: Seconds without a heartbeat after which an edge router is disconnected.
SILENCE_S: Final = 8.0

#: The statuses of a look-up's answer.
OK: Final = 0
BAD_VERSION: Final = 1
BAD_OPCODE: Final = 2
NOT_FOUND: Final = 3
INVALID: Final = 4
LOOKUP_VERSION: Final = 1
LOOKUP_OPCODE: Final = 1

STOLEN: Final = Error("amqp:link:stolen", "the edge router has connected anew")
ONE_DOWNLINK: Final = Error("amqp:not-allowed", "an edge router has one downlink on a connection")
ONE_TRACKER: Final = Error("amqp:not-allowed", "an edge router has one tracking link on a connection")
NO_EDGE: Final = Error("amqp:invalid-field", "the source of a downlink is the id of an edge router")
DETACH: Final = "link-detach"
#: The longest router id, in characters.
MAX_EDGE_ID: Final = 4096

"""Numbers that several modules need: descriptors and ports of the AMQP 1.0 standard, and limits of ours.

``encodings.py`` has the format codes, ``performatives.py`` the descriptors of performatives.
"""

from __future__ import annotations

from typing import Final

#: The longest symbol, in octets; names of properties, capabilities and mechanisms are shorter in practice.
MAX_SYMBOL_BYTES: Final = 1024

# Descriptors that are read without a table: a delivery state (part 3, 3.4.1), sections of messages (part 3, 3.2).
RECEIVED: Final = 0x23
HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
AMQP_SEQUENCE: Final = 0x76
AMQP_VALUE: Final = 0x77
FOOTER: Final = 0x78
#: The sections by their symbolic descriptors.
SECTION_SYMBOLS: Final = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": AMQP_SEQUENCE,
    "amqp:amqp-value:*": AMQP_VALUE,
    "amqp:footer:map": FOOTER,
}
#: The order of the sections; those of a body exclude one another.
SECTION_RANKS: Final = {
    HEADER: 1,
    DELIVERY_ANNOTATIONS: 2,
    MESSAGE_ANNOTATIONS: 3,
    PROPERTIES: 4,
    APPLICATION_PROPERTIES: 5,
    DATA: 6,
    AMQP_SEQUENCE: 6,
    AMQP_VALUE: 6,
    FOOTER: 7,
}

# Registered ports (part 2, 2.1; part 5, 5.2.1).
PORT: Final = 5672
SECURE_PORT: Final = 5671

# Limits of ours, against hostile input. Real values nest about six deep.
MAX_NESTING: Final = 32
#: Keys of one map whose hash a sender can choose, like a uuid's: a dict of many such keys takes quadratic time.
MAX_CHOSEN_HASHES: Final = 64
MAX_ZERO_WIDTH_ITEMS: Final = 4096
#: Values in one performative, nested ones included; an attach may list unsettled deliveries.
MAX_NODES: Final = 1024
MAX_ATTACH_NODES: Final = 65536
#: The same in a client's attach: more than the unsettled deliveries that fit into a frame of 16 kB.
MAX_CLIENT_ATTACH_NODES: Final = 8192

"""Numbers that the AMQP 1.0 standard fixes: descriptors (parts 2, 3, 4 and 5), limits and defaults.

Format codes are not here: each encoding has one row in ``encodings.py``.
"""

from __future__ import annotations

from typing import Final

#: The most octets of a symbol; names of properties, capabilities and mechanisms are shorter in practice.
MAX_SYMBOL_BYTES: Final = 1024

# Descriptors: transport (part 2, 2.7 and 2.8).
OPEN: Final = 0x10
BEGIN: Final = 0x11
ATTACH: Final = 0x12
FLOW: Final = 0x13
TRANSFER: Final = 0x14
DISPOSITION: Final = 0x15
DETACH: Final = 0x16
END: Final = 0x17
CLOSE: Final = 0x18
ERROR: Final = 0x1D

# Descriptors: delivery states and termini (part 3, 3.4 and 3.5), transactions (part 4, 4.5).
RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27
SOURCE: Final = 0x28
TARGET: Final = 0x29
DELETE_ON_CLOSE: Final = 0x2B
DELETE_ON_NO_LINKS: Final = 0x2C
DELETE_ON_NO_MESSAGES: Final = 0x2D
DELETE_ON_NO_LINKS_OR_MESSAGES: Final = 0x2E
COORDINATOR: Final = 0x30
DECLARE: Final = 0x31
DISCHARGE: Final = 0x32
DECLARED: Final = 0x33
TRANSACTIONAL_STATE: Final = 0x34

# Descriptors: SASL (part 5, 5.3.3).
SASL_MECHANISMS: Final = 0x40
SASL_INIT: Final = 0x41
SASL_CHALLENGE: Final = 0x42
SASL_RESPONSE: Final = 0x43
SASL_OUTCOME: Final = 0x44

# Descriptors: message sections (part 3, 3.2).
HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
AMQP_SEQUENCE: Final = 0x76
AMQP_VALUE: Final = 0x77
FOOTER: Final = 0x78

# Link roles and settle modes (part 2, 2.8.1 to 2.8.3).
ROLE_SENDER: Final = False
ROLE_RECEIVER: Final = True
SND_UNSETTLED: Final = 0
SND_SETTLED: Final = 1
SND_MIXED: Final = 2
RCV_FIRST: Final = 0
RCV_SECOND: Final = 1

# SASL outcome codes (part 5, 5.3.3.6).
SASL_OK: Final = 0
SASL_AUTH: Final = 1
SASL_SYS: Final = 2
SASL_SYS_PERM: Final = 3
SASL_SYS_TEMP: Final = 4

# Terminus durability (part 3, 3.5.5).
DURABLE_NONE: Final = 0
DURABLE_CONFIGURATION: Final = 1
DURABLE_UNSETTLED_STATE: Final = 2

# Defaults and bounds of the standard.
PORT: Final = 5672
SECURE_PORT: Final = 5671
MIN_MAX_FRAME_SIZE: Final = 512
DEFAULT_MAX_FRAME_SIZE: Final = 0xFFFFFFFF
DEFAULT_CHANNEL_MAX: Final = 0xFFFF
DEFAULT_HANDLE_MAX: Final = 0xFFFFFFFF
DEFAULT_PRIORITY: Final = 4
MAX_DELIVERY_TAG_BYTES: Final = 32

# Bounds of ours, against hostile input. Real values nest about six deep.
MAX_NESTING: Final = 32
#: Keys of one map whose hash a sender can choose, as that of a uuid: a dict of many takes the square of their number.
MAX_CHOSEN_HASHES: Final = 64
MAX_ZERO_WIDTH_ITEMS: Final = 4096
#: Values in one performative, those within others included; an attach may list unsettled deliveries.
MAX_NODES: Final = 1024
MAX_ATTACH_NODES: Final = 65536

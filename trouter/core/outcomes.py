"""Delivery states that the router writes (AMQP 1.0 part 3, 3.4)."""

from __future__ import annotations

from typing import Final

from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Error, Modified, Rejected, TransactionalState, decode_state, encode_state

RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27
TRANSACTIONAL: Final = 0x34

#: The outcomes without details, encoded, by code.
BARE: Final = {code: bytes((0, 0x53, code, 0x45)) for code in (ACCEPTED, REJECTED, RELEASED, MODIFIED)}
ACCEPTED_STATE: Final = BARE[ACCEPTED]
RELEASED_STATE: Final = BARE[RELEASED]
#: The outcome of a delivery that was sent in full to a receiver that was then lost.
FAILED_STATE: Final = encode_state(Modified(delivery_failed=True))


def rejected_state(condition: str, description: str) -> bytes:
    """Return an encoded rejected outcome with an error."""
    return encode_state(Rejected(Error(condition, description)))


def has_outcome_in_transaction(state: bytes) -> bool:
    """Return whether an encoded transactional state has an outcome, which holds once the transaction is committed."""
    try:
        found, _ = decode_state(state, 0, len(state))
    except DecodeError:
        return False
    return isinstance(found, TransactionalState) and found.outcome is not None

"""The header that tells AMQP from TLS, SASL and everything else (AMQP 1.0 part 2, 2.2)."""

from __future__ import annotations

from trouter._text import visible_bytes
from trouter.wire.framing import AMQP_HEADER, TLS_HEADER, FrameReader

from .faults import Fault, PeerFault


def take_amqp_header(reader: FrameReader) -> bool:
    """Take the protocol header from the input; return False while it is incomplete; PeerFault if it is another."""
    seen = reader.peek_bytes(8)
    if seen == AMQP_HEADER:
        reader.take_bytes(8)
        return True
    if AMQP_HEADER.startswith(seen) or (TLS_HEADER.startswith(seen) and seen != TLS_HEADER):
        return False
    if seen == TLS_HEADER or seen[:2] == b"\x16\x03":
        raise PeerFault(Fault.TLS_NOT_CONFIGURED)
    known = seen.startswith(b"AMQP")
    kind = "Incompatible AMQP connection detected" if known else "Unknown protocol detected"
    raise PeerFault(Fault.FRAMING, detail=f"{kind}: '{visible_bytes(seen)}'")

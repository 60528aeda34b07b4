"""What can go wrong between bytes and values. Nothing else leaves the decoders and encoders of this room."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes are not valid AMQP 1.0; ``offset`` is the position of the fault, -1 if it has none."""

    def __init__(self, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.offset = offset


class EncodeError(ValueError):
    """The value cannot be said in AMQP 1.0: out of range, of an unknown type, or nested too deeply."""

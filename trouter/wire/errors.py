"""The errors of this room; its decoders and encoders raise no others."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes are not valid AMQP 1.0; ``offset`` is the position of the fault, -1 if it has none."""

    def __init__(self, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.offset = offset


class EncodeError(ValueError):
    """The value has no AMQP 1.0 encoding: out of range, of an unknown type, or nested too deeply."""

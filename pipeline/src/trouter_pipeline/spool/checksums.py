"""The CRC-32 of spools and segments: zlib's, in the processor's own instructions where `isal` is installed."""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:  # there is no wheel for this machine
    from zlib import crc32

__all__ = ["crc32"]

"""Any bytes yield the same frames, then the same error, in whatever pieces they arrive; less than one frame is kept.

The first byte seeds the cuts and picks the maximum frame size. Allowed: FramingError, because most bytes are no frames.
"""

from __future__ import annotations

import random
from itertools import pairwise

from trouter.testing.fuzz import behind
from trouter.testing.fuzz import frames as framed
from trouter.wire.framing import HEADER_BYTES, FrameReader, FramingError

MUTATOR = behind(1, framed)
COVERS = ("trouter.wire.framing",)

Frame = tuple[int, int, bytes]


def read(pieces: list[bytes], most: int) -> tuple[list[Frame], str]:
    """Return the frames, and the text of the framing error behind the last one ("" for none)."""
    reader = FrameReader(most)
    found: list[Frame] = []
    for piece in pieces:
        reader.add_bytes(piece)
        try:
            while reader.next_frame():
                assert HEADER_BYTES <= reader.start <= reader.end <= len(reader.data)
                body = reader.data[reader.start : reader.end]
                assert len(body) + HEADER_BYTES <= most
                found.append((reader.channel, reader.frame_type, bytes(body)))
        except FramingError as error:
            return found, str(error)
        assert reader.count_pending_bytes() < most
    return found, ""


def check(data: bytes) -> None:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    most = (512, 513, 600, 4096)[how & 3]
    whole = read([stream], most)
    assert read([stream[at : at + 1] for at in range(len(stream))], most) == whole
    rng = random.Random(how)
    edges = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(12)))
    edges = [0, *edges, len(stream)]
    assert read([stream[a:b] for a, b in pairwise(edges)], most) == whole
    frames = whole[0]
    again = b"".join(
        (len(body) + HEADER_BYTES).to_bytes(4, "big") + b"\2" + bytes((kind,)) + channel.to_bytes(2, "big") + body
        for channel, kind, body in frames
    )
    assert read([again], most) == (frames, "")

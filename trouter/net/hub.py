"""One pass: input goes through engine and core, then every connection with output is written once.

No task switch comes between a transfer's arrival and its copy's departure: the connection that read passes it on, and
``flush`` writes the others' output.
"""

from __future__ import annotations

from typing import Any

import trio

from trouter.core.router import Router
from trouter.engine.connection import Connection
from trouter.wire.transfers import FrequentFrames


class Hub:
    """Joins the peers' connections to the routing core."""

    def __init__(self, router: Router) -> None:
        self.router = router
        #: Connections with output to write; engine and core append, ``flush`` empties it.
        self.outbox: list[Connection] = []
        #: The readers of frames that all connections share.
        self.frequent_frames = FrequentFrames()

    def update_clock(self) -> None:
        """Set the core's clock; once per round of reads."""
        self.router.shared.now_s = trio.current_time()

    def flush(self) -> None:
        """Write every touched connection once."""
        outbox = self.outbox
        while outbox:
            touched = outbox[:]
            outbox.clear()
            for connection in touched:
                connection.flush()
                owner: Any = connection.owner  # a Peer; its stream is called directly, because this is done so often
                owner.stream.write_nowait()

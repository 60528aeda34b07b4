"""One pass: input goes through engine and core, then every connection with output is written once.

No task switch comes between a transfer's arrival and its copy's departure: the connection that read passes it on, and
``flush`` writes the others' output.
"""

from __future__ import annotations

import trio

from trouter.core.router import Router
from trouter.engine.ports import ConnectionPort
from trouter.wire.transfers import FrequentFrames


class Hub:
    """Joins the peers' connections to the routing core."""

    __slots__ = ("router", "outbox", "frequent_frames")

    def __init__(self, router: Router) -> None:
        self.router = router
        #: Connections with output to write; engine and core append, ``flush`` empties it.
        self.outbox: list[ConnectionPort] = []
        #: The readers of frames that all connections share.
        self.frequent_frames = FrequentFrames()

    def update_clock(self) -> None:
        """Set the core's clock; once per round of reads."""
        self.router.shared.now_s = trio.current_time()

    def flush(self) -> None:
        """Write every touched connection once; a bug of ours ends the connection in which it happens."""
        outbox: list[ConnectionPort] = self.outbox
        while outbox:
            touched: list[ConnectionPort] = outbox[:]
            outbox.clear()
            connection: ConnectionPort
            for connection in touched:
                owner = connection.owner
                if owner is None:  # it has ended since
                    continue
                try:
                    connection.flush()
                    owner.write_output()
                except Exception as error:  # noqa: BLE001 - a bug in one connection's output must not end the others
                    owner.drop_after_bug(error)

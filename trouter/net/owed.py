"""Small amounts of credit owed to senders, granted once no delivery comes for a moment.

The core grants credit in portions, which is cheap on a busy link. A sender that continues only after a flow would wait
for the rest of a portion forever.
"""

from __future__ import annotations

from typing import Final

import trio

from .hub import Hub

#: Seconds without a delivery after which a link gets its owed credit.
MOMENT_S: Final = 0.01
#: Links checked at a time.
PORTION: Final = 500


class OwedCredit:
    """Grants owed credit while there is some, and sleeps while there is none."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._bell = trio.Event()
        hub.router.pulse.on_owing = self._ring

    def _ring(self) -> None:
        self._bell.set()

    async def run(self) -> None:
        """Grant owed credit until cancelled."""
        while True:
            await self._bell.wait()
            self._bell = trio.Event()
            more = True
            while more:
                await trio.sleep(MOMENT_S)
                more = self._hub.router.return_owed_credit(PORTION)
                self._hub.flush()

"""Credit that is owed to senders and too little to be granted at once: it is granted when nothing comes for a moment.

The core grants credit in portions, which costs a busy link next to nothing. A sender that goes on only for a flow would
wait for the rest of a portion for ever.
"""

from __future__ import annotations

from typing import Final

import trio

from .hub import Hub

#: A moment: a link that brought nothing for as long gets what it is owed.
MOMENT_S: Final = 0.01
#: Links to look at in one moment.
PORTION: Final = 500


class OwedCredit:
    """Looks as long as anything is owed, and sleeps when nothing is."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._bell = trio.Event()
        hub.router.pulse.on_owing = self._ring

    def _ring(self) -> None:
        self._bell.set()

    async def run(self) -> None:
        """Return what is owed, for ever."""
        while True:
            await self._bell.wait()
            self._bell = trio.Event()
            more = True
            while more:
                await trio.sleep(MOMENT_S)
                more = self._hub.router.return_owed_credit(PORTION)
                self._hub.flush()

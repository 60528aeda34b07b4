"""Repeated checks of logins: plugins reload their files, then the user of each connection is checked again."""

from __future__ import annotations

from typing import Final

import trio

from trouter.hooks import Plugins

from .registry import Connections

#: Seconds between two checks: a changed file is in force, and an invalid login ended, after at most this time.
CHECK_S: Final = 2.0
#: Connections checked before other tasks get their turn.
PORTION: Final = 500


class LoginChecks:
    """The repeated checks of all logins of a router."""

    def __init__(self, plugins: Plugins, connections: Connections) -> None:
        self._plugins = plugins
        self._connections = connections
        self._waiter = trio.CapacityLimiter(1)  # its own, because threads that check passwords may be busy

    async def check_all(self) -> None:
        """Reload the plugins' files, then check every login; to be called every ``CHECK_S`` seconds."""
        plugins, connections = self._plugins, self._connections
        if await trio.to_thread.run_sync(plugins.refresh, limiter=self._waiter, abandon_on_cancel=True):
            plugins.offers.forget()
        ended: list[int] = []
        for checked, number in enumerate(connections, 1):
            if not self._has_good_login(number):
                ended.append(number)
            if checked % PORTION == 0:
                await trio.lowlevel.checkpoint()
        for number in ended:  # together, so that no peer whose connection ends hears of another's end
            if number in connections:
                connections[number].end_login()

    def _has_good_login(self, number: int) -> bool:
        """Check one connection, apart from the loop, whose local variables would keep it alive."""
        connection = self._connections.get(number)
        if connection is None:
            return True
        try:
            return connection.login.is_good()
        except Exception as error:  # noqa: BLE001 - what cannot be checked is not trusted; the others are checked
            connection.drop_after_bug(error)
            return True

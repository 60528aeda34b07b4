"""Notifies the service manager, if there is one (sd_notify(3)): ready, alive, stopping."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Final

_MICROSECONDS: Final = 1_000_000
#: Signs of life within one period of the watchdog.
SIGNS: Final = 3


class Supervisor:
    """Sender of notifications to the socket in NOTIFY_SOCKET, as often as WATCHDOG_USEC asks for."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Remove the variables from the environment, so that no child process inherits them."""
        path = environment.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        alarm = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", str(os.getpid()))
        due = alarm.isdecimal() and int(alarm) > 0 and pid == str(os.getpid())
        #: Seconds between two signs of life; None if the manager waits for none.
        self.pause_s = int(alarm) / _MICROSECONDS / SIGNS if due and self._address else None

    def ready(self) -> None:
        """Notify the manager that every listener is open."""
        self._notify("READY=1")

    def stopping(self) -> None:
        """Notify the manager that the router is stopping."""
        self._notify("STOPPING=1")

    def send_sign_of_life(self) -> None:
        """Notify the manager that the router is alive; to be called every ``pause_s``."""
        self._notify("WATCHDOG=1")

    def _notify(self, line: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            try:
                sock.sendto(line.encode(), self._address)
            except OSError:
                pass  # the manager does not listen: the router runs without it

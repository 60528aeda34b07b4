"""Finds the URL of a configuration's web console, and opens it in a browser."""

from __future__ import annotations

import os
import subprocess
import sys

from trouter.config import Configuration, ListenerEntity
from trouter.config.hosts import EVERY_ADDRESS


def console_url(configuration: Configuration) -> str | None:
    """Return the URL of the web console on this machine; None if no listener serves it on a known port."""
    from trouter.http.settings import http_settings  # noqa: PLC0415  # most routers do not use this room

    for listener in configuration.listeners:
        served = listener.serves_http and not configuration.unserved(listener) and http_settings(listener).console
        if served and listener.port_or_service:
            return _url(listener)
    return None


def _url(listener: ListenerEntity) -> str:
    host = "localhost" if listener.host in EVERY_ADDRESS else listener.host
    scheme = "https" if listener.ssl_profile else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.port_or_service}/"


def at_a_desktop() -> bool:
    """Return whether the command was typed on a terminal by a user other than root, on a machine with a screen."""
    has_screen = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return has_screen and os.geteuid() != 0 and sys.stdin.isatty() and sys.stdout.isatty()


def show_in_browser(url: str) -> None:
    """Open ``url`` in the user's browser without waiting for it."""
    subprocess.Popen(  # noqa: S603  # the standard library's own program
        [sys.executable, "-m", "webbrowser", url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

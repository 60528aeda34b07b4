"""For plugins that fetch something from the web: bounded, and without redirections."""

from __future__ import annotations

from trouter._fetch import FetchError, get

__all__ = ["FetchError", "get"]

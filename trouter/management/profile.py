"""PROFILE: a profile of the management node's work, between a start and a stop."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .status import bad_request

_LINES: Final = 60


class WorkProfile:
    """Measures the work on requests, and only that: not while other tasks run."""

    def __init__(self) -> None:
        self._profile: cProfile.Profile | None = None
        #: Whether it measures now; several requests may be under way at the same time.
        self._measures = False

    def start(self) -> None:
        """Start a new profile; the rest of the current request counts in it."""
        self.rest()  # two profiles cannot run at the same time
        self._profile = cProfile.Profile()

    def stop(self) -> str:
        """Stop, and return the report; Refusal if no profile was started."""
        if self._profile is None:
            raise bad_request("PROFILE was not started")
        self.rest()
        profile, self._profile = self._profile, None
        text = io.StringIO()
        profile.create_stats()
        if profile.getstats():
            pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_LINES)
        return text.getvalue() or "nothing was asked in between\n"

    def work(self) -> None:
        """Measure from now on."""
        if self._profile is not None and not self._measures:
            self._measures = True
            self._profile.enable()

    def rest(self) -> None:
        """Stop measuring: other tasks run."""
        if self._profile is not None and self._measures:
            self._measures = False
            self._profile.disable()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure the work on one request."""
        self.work()
        try:
            yield
        finally:
            self.rest()

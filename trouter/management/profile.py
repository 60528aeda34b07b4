"""PROFILE: where the management node spends its time, between a start and a stop."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .status import bad_request

_LINES: Final = 60


class Profile:
    """Counts while a request is worked on, and only then: not while others have their turn."""

    def __init__(self) -> None:
        self._profile: cProfile.Profile | None = None

    def start(self) -> None:
        """Begin, anew if need be. It is asked while a request is worked on, whose rest counts."""
        self.rest()  # two profiles cannot count at the same time, and the one before would count for ever
        self._profile = cProfile.Profile()

    def stop(self) -> str:
        """End; the report. Refusal when nothing was started."""
        if self._profile is None:
            raise bad_request("PROFILE was not started")
        profile, self._profile = self._profile, None
        profile.disable()
        text = io.StringIO()
        profile.create_stats()
        if profile.getstats():
            pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_LINES)
        return text.getvalue() or "nothing was asked in between\n"

    def work(self) -> None:
        """Count what runs from here on as ours."""
        if self._profile is not None:
            self._profile.enable()

    def rest(self) -> None:
        """Count no more: others have their turn."""
        if self._profile is not None:
            self._profile.disable()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure the work on one request."""
        self.work()
        try:
            yield
        finally:
            self.rest()

"""Makes Ctrl-C the normal end of a tool that runs until it is stopped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import trio


@contextmanager
def until_interrupted(*others: signal.Signals) -> Iterator[trio.CancelScope]:
    """Cancel the block at SIGINT, or one of `others`; yield its scope. The handlers from before return at the end.

    Raise ValueError outside of the main thread, where Python allows no handlers.
    """
    scope = trio.CancelScope()
    token = trio.lowlevel.current_trio_token()
    before = {
        number: signal.signal(number, lambda *_: token.run_sync_soon(scope.cancel))
        for number in (signal.SIGINT, *others)
    }
    try:
        with scope:
            yield scope
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Pauses the garbage collector while many lasting objects are made, which it would examine again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: From this number on, new objects are made old before collection goes on, or it would examine all of them at once.
MANY: Final = 100_000


@contextmanager
def held_back() -> Iterator[None]:
    """Pause garbage collection for the block; only garbage in cycles waits. No effect while it is paused already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY:
            gc.freeze()
            gc.unfreeze()  # puts them into the oldest generation, and also what was frozen before
        gc.enable()

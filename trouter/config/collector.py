"""Python's garbage collector held back while much is made that stays: looking through it again and again takes longer
than making it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: So many new objects are no longer young when collection goes on: the first one would look through all of them.
MANY: Final = 100_000


@contextmanager
def held_back() -> Iterator[None]:
    """Hold back garbage collection in the block, unless another thread wants one; only garbage in cycles waits."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY:
            gc.freeze()
            gc.unfreeze()  # among the oldest, and so is what was frozen before
        gc.enable()

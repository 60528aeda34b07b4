"""Python's garbage collector held back while much is made that stays: looking through it again and again takes longer
than making it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[None]:
    """No collection within, unless another thread wants one; only garbage in cycles waits for it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

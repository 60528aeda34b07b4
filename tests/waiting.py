"""Wait for an effect of another process or thread that no event reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tests.routers import DEADLINE_S

_LOOK_S: Final = 0.02

T = TypeVar("T")


def until(look: Callable[[], T], what: str = "it") -> T:
    """Call ``look`` until it returns a true value; return that. Fail after ``DEADLINE_S``, which only a hang takes."""
    give_up_s = time.monotonic() + DEADLINE_S
    while not (found := look()):
        assert time.monotonic() < give_up_s, f"{what} did not come"
        time.sleep(_LOOK_S)
    return found

"""Waiting for what another process or thread does, and does not tell of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tests.routers import DEADLINE_S

_LOOK_S: Final = 0.02

T = TypeVar("T")


def until(look: Callable[[], T], what: str = "it") -> T:
    """Look until there is something to be seen, and give that; only a hang takes as long as ``DEADLINE_S``."""
    give_up_s = time.monotonic() + DEADLINE_S
    while not (found := look()):
        assert time.monotonic() < give_up_s, f"{what} did not come"
        time.sleep(_LOOK_S)
    return found

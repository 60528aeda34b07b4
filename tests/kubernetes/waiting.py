"""Wait for what a pod or a client does, while their tasks go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

_LOOK_S: Final = 0.02


async def until(look: Callable[[], object]) -> None:
    """Look again and again until ``look`` returns something true; the test's own deadline ends it otherwise."""
    while not look():  # noqa: ASYNC110 - pods are processes, which report by what they print and answer
        await trio.sleep(_LOOK_S)

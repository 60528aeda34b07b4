"""Choose the seeds of the storms; all events of a storm follow from its seed."""

from __future__ import annotations

import os

from trouter import _twin


def chosen_seeds(count_name: str, count: int) -> list[int]:
    """Return the seeds: ``count`` of them, as many as the variable ``count_name`` has, or TROUTER_SIM_SEED alone.

    Of ``count`` seeds the interpreted twin, which is slower, takes every eighth and the compiled one the others, so
    that `make test`, which runs both, tries all of them.
    """
    one = os.environ.get("TROUTER_SIM_SEED")
    if one:
        return [int(one)]
    if count_name in os.environ:
        return list(range(int(os.environ[count_name])))
    return [number for number in range(count) if (number % 8 == 0) == _twin.PURE]

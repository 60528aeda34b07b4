"""Which storms are tried: each has a number, from which everything that happens in it follows."""

from __future__ import annotations

import os

from trouter import _twin


def chosen_seeds(count_name: str, count: int) -> list[int]:
    """The numbers of the storms: ``count``, or as many as the variable named says, or the one of TROUTER_SIM_SEED.

    Of ``count`` the interpreted twin of the hot modules, which is slower, takes every eighth, and the compiled one the
    others, so that `make test`, which runs both, tries them all.
    """
    one = os.environ.get("TROUTER_SIM_SEED")
    if one:
        return [int(one)]
    if count_name in os.environ:
        return list(range(int(os.environ[count_name])))
    return [number for number in range(count) if (number % 8 == 0) == _twin.PURE]

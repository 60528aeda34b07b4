"""Which storms are tried: each has a number, from which everything that happens in it follows."""

from __future__ import annotations

import os

from trouter import _twin


def chosen_seeds(count_name: str, count: int) -> list[int]:
    """The numbers of the storms: ``count``, or as many as the variable named says, or the one of TROUTER_SIM_SEED.

    Of ``count`` each twin of the hot modules takes every other, so that `make test`, which runs both, tries them all.
    """
    one = os.environ.get("TROUTER_SIM_SEED")
    if one:
        return [int(one)]
    if count_name in os.environ:
        return list(range(int(os.environ[count_name])))
    return list(range(int(_twin.PURE), count, 2))

"""Which storms are tried: each has a number, from which everything that happens in it follows."""

from __future__ import annotations

import os


def chosen_seeds(count_name: str, count: int) -> list[int]:
    """The numbers of the storms: ``count``, or as many as the variable named says, or the one of TROUTER_SIM_SEED."""
    one = os.environ.get("TROUTER_SIM_SEED")
    return [int(one)] if one else list(range(int(os.environ.get(count_name, str(count)))))

"""A process that takes places and tokens as fast as it can, as one of several workers.

Its arguments are the descriptor of the memory, its number, how many there are, and the limit, which is also the rate.
It begins once its standard input closes.
"""

from __future__ import annotations

import json
import sys
import time

from trouter.net.rates import SharedBucket
from trouter.net.tallies import Tallies

TURNS = 40_000


def main() -> None:
    """Write how many places were held at most, and the tokens that were taken, from when to when."""
    descriptor, place, count, limit = map(int, sys.argv[1:])
    tallies = Tallies(descriptor, place, count)
    bucket = SharedBucket(tallies, ("rate",), limit, time.monotonic())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    most = places = taken = 0
    begun_s = time.monotonic()
    for _ in range(TURNS):
        taken += bucket.take_tokens(1, time.monotonic())
        if tallies.raise_count("place") <= limit:
            places += 1
            tallies.raise_count("held")  # only those count that have a place
            most = max(most, *(1 + tallies.count_others("held") for _ in range(5)))
            tallies.lower_count("held")
        tallies.lower_count("place")
    json.dump({"most": most, "places": places, "taken": taken, "times": [begun_s, time.monotonic()]}, sys.stdout)


if __name__ == "__main__":
    main()

"""Progress on a terminal: a bar where the end is known, a count and a rate where it is not, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], object]


def no_progress(_count: int) -> None:
    """Show nothing."""


@contextmanager
def progress(what: str, total: int | None = None, unit: str = " messages", *, quiet: bool = False) -> Iterator[Advance]:
    """Show how far a work is on standard error, if that is a terminal; yield what adds to it.

    unit: of the numbers; `B` shows octets as KiB and MiB. quiet: show nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from tqdm import tqdm  # noqa: PLC0415  # only where there is a terminal

    tqdm.monitor_interval = 0  # no thread beside ours
    octets = unit == "B"
    with tqdm(
        desc=what,
        total=total,
        file=sys.stderr,
        unit=unit,
        unit_scale=octets,
        unit_divisor=1024,
        leave=False,
        dynamic_ncols=True,
    ) as bar:
        yield bar.update

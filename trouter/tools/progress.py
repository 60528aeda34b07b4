"""Progress on a terminal: a bar if the total is known, else a count and a rate; nothing without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], object]


def no_progress(_count: int) -> None:
    """Show nothing."""


@contextmanager
def progress(what: str, total: int | None = None, unit: str = " messages", *, quiet: bool = False) -> Iterator[Advance]:
    """Show progress on standard error, if that is a terminal; yield the function that advances it.

    unit: of the numbers; `B` shows bytes as KiB and MiB. quiet: show nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from tqdm import tqdm  # noqa: PLC0415  # only where there is a terminal

    tqdm.monitor_interval = 0  # no thread beside ours
    in_bytes = unit == "B"
    with tqdm(
        desc=what,
        total=total,
        file=sys.stderr,
        unit=unit,
        unit_scale=in_bytes,
        unit_divisor=1024,
        leave=False,
        dynamic_ncols=True,
    ) as bar:
        yield bar.update

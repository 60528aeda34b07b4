"""Inputs that Hypothesis draws for a target, from its seeds and by its mutator, until one fails.

Hypothesis is no dependency of trouter: `pip install hypothesis`.
"""

from __future__ import annotations

import time
from itertools import count
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings

from trouter.testing.fuzz.hunting import Found, hunt, try_one
from trouter.testing.fuzz.strategies import inputs
from trouter.testing.fuzz.target import FuzzTarget

#: Inputs that Hypothesis draws at a time: it remembers what it has drawn.
_AT_A_TIME: Final = 1000


class _NoMoreInputs(Exception):
    """An input has failed, or the time is over: Hypothesis is to draw no more."""


def hunt_drawn(
    target: FuzzTarget, rng_seed: int, *, executions: int | None = None, seconds: float | None = None
) -> Found:
    """Try the seeds, then inputs that Hypothesis draws: ``executions`` in all, or ``seconds`` of processor time.

    ``rng_seed`` determines the inputs.
    """
    found = hunt(target.check, target.seeds if executions is None else target.seeds[:executions])
    begun_s = time.process_time() - found.took_s
    for number in count():
        if found.error is not None or _is_over(found, executions, seconds):
            return found
        found = _draw(target, rng_seed + number, found.tried, begun_s, executions, seconds)
    raise AssertionError


def _is_over(found: Found, executions: int | None, seconds: float | None) -> bool:
    return (executions is not None and found.tried >= executions) or (seconds is not None and found.took_s >= seconds)


def _draw(
    target: FuzzTarget, rng_seed: int, tried: int, begun_s: float, executions: int | None, seconds: float | None
) -> Found:
    """Draw inputs once, and return what was found, those ``tried`` before included."""
    found = Found(tried, time.process_time() - begun_s)
    most = _AT_A_TIME if executions is None else min(_AT_A_TIME, executions - tried)

    @seed(rng_seed)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def holds(data: bytes) -> None:
        nonlocal found
        if found.error is None and not _is_over(found, executions, seconds):
            error = try_one(target.check, data)
            took_s = time.process_time() - begun_s
            found = Found(found.tried + 1, took_s, data, error) if error else Found(found.tried + 1, took_s)
        if found.error is not None:
            raise _NoMoreInputs

    try:
        holds()
    except _NoMoreInputs:
        pass
    return found

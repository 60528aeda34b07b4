"""What every test shares: Hypothesis profiles, chosen with --hypothesis-profile, and signals that are not ignored."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# What several folders of tests import from each other: its asserts tell what they compared.
pytest.register_assert_rewrite(
    "tests.routers", "tests.e2e.peer", "tests.e2e.neighbours", "tests.interop.agents", "tests.management.node"
)

# No deadline: tests make no claim about time. The database would make two runs differ, so CI goes without.
settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile(
    "ci", deadline=None, max_examples=100, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For the interpreted twin, beside which the compiled one has all examples.
settings.register_profile(
    "brief",
    deadline=None,
    max_examples=25,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=20_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_finish() -> None:
    """What was made for the tests stays to the end: the garbage collector need not look through it a thousand times."""
    gc.collect()
    gc.freeze()


# A shell has what it starts in the background ignore these, and so would every process that a test starts.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

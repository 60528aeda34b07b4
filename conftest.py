"""Hypothesis profiles (chosen with --hypothesis-profile), assertion rewriting and signal handlers for all tests.

Without TROUTER_PURE no test runs while compiled modules are older than their sources.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.compiled import stale_anywhere
from tests.one_process import why_one_process
from tests.own_process import pytest_addoption, pytest_collection_modifyitems, pytest_configure  # noqa: F401 - hooks

# No test depends on what is configured for Cyrus SASL on this machine.
os.environ.pop("PN_SASL_CONFIG_PATH", None)
os.environ["SASL_CONF_PATH"] = "/var/empty"

# Modules that several folders of tests share: their failed assertions show the compared values.
pytest.register_assert_rewrite(
    "tests.routers",
    "tests.e2e.peer",
    "tests.e2e.neighbours",
    "tests.field.scene",
    "tests.field.things",
    "tests.interop.agents",
    "tests.management.node",
)

# No deadline: tests make no claim about time. The database would make two runs differ, so CI does not use it.
settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile(
    "ci", deadline=None, max_examples=100, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For the interpreted twin; the compiled twin runs all examples.
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


def pytest_sessionstart() -> None:
    """Raise UsageError if the compiled modules, which Python prefers, are not those of the sources."""
    stale = [] if os.environ.get("TROUTER_PURE") else stale_anywhere()
    if stale:
        lines = "\n  ".join(stale)
        raise pytest.UsageError(f"run `make build`, or set TROUTER_PURE=1; compiled modules are stale:\n  {lines}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave out the tests of one process, if each router has several workers."""
    if "TROUTER_TEST_WORKERS" in os.environ and (why := why_one_process(item.nodeid)):
        item.add_marker(pytest.mark.skip(reason=why))


def pytest_collection_finish() -> None:
    """Freeze the objects that the collection made, so that the garbage collector does not scan them in each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the router's log for a test; an earlier test of this process may have started a router."""
    logger = logging.getLogger("trouter")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", True)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Keep the garbage collector from freeing what refers to itself, for a test of what is freed at once."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# A shell makes its background processes ignore these signals; each process that a test starts would inherit that.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

"""The network of these tests, and the notes of a run, of which the page of clients is made."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.field.page import FAILED, note
from tests.field.scene import WAYS, Scene, scene
from tests.field.things import RECONNECT

_RESULTS = pytest.StashKey[dict[tuple[str, str, str], str]]()


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("field")) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the result of each client, thing and way."""
    report = yield
    given = getattr(item, "callspec", None)
    if given is not None and "client" in given.params and (report.when == "call" or report.outcome != "passed"):
        results = item.session.stash.setdefault(_RESULTS, {})
        key = (given.params["client"], given.params.get("thing", RECONNECT), given.params.get("way", WAYS[0]))
        results[key] = FAILED if FAILED in {report.outcome, results.get(key)} else report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the results, if clients were tried."""
    if results := session.stash.get(_RESULTS, None):
        note(results)

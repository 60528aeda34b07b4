"""One Spark session for all tests of the pipeline: starting one takes longer than most of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pipeline.tests.small import MASTER, settings_in
from tests.routers import start_router  # noqa: F401 - a fixture
from trouter_pipeline.needs import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings that only Spark can fix; a warning from trouter still fails the test."""
    for item in items:
        if "pipeline" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Run Spark on two threads of this machine, each task tried four times; nothing of it outlives the tests."""
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    from trouter_pipeline.session import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = session("tests", master=MASTER, settings=settings_in(tmp_path_factory.mktemp("spark")))
    started.sparkContext.setLogLevel("ERROR")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def amqp(spark: SparkSession) -> SparkSession:
    """Return the session with ``format("amqp")`` registered."""
    from trouter_pipeline.datasource import register

    register(spark)
    return spark

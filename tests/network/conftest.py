"""A ring of four routers that the tests of this folder share; no test changes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import trio

from tests.networks import client_port, network, wait_for_links
from tests.routers import RunningRouter, router, start_router
from tests.tools.live import Ran, run

__all__ = ["router", "start_router"]

#: By router: the routers that it dials. There are two paths of equal cost from A to D, and from B to C.
RING = {"A": (), "B": ("A",), "C": ("A",), "D": ("B", "C")}
#: By name of the golden file: the options, in the order in which A is queried.
LOOKS = {
    "nodes": ["-n"],
    "nodes-verbose": ["-n", "-v"],
    "nodes-of-d": ["-n", "-r", "D"],
    "nodes-of-all": ["-n", "--all-routers"],
    "general-of-d": ["-g", "-r", "D"],
    "addresses": ["-a"],
    "paths": ["--paths", "A", "D"],
    "paths-csv": ["--paths", "D", "B", "--csv"],
    "paths-nowhere": ["--paths", "B", "B"],
}


class Ring(NamedTuple):
    """The routers by id, and the output of `trouter stat` before another client connected."""

    routers: dict[str, RunningRouter]
    looks: dict[str, Ran]


@pytest.fixture(scope="package")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    metrics = {"A": "listener { host: 127.0.0.1, port: 0, http: yes, role: normal }"}
    with network(tmp_path_factory.mktemp("ring"), RING, metrics, router="raIntervalFluxSeconds: 1") as routers:
        wait_for_links(routers, RING)
        bus = f"127.0.0.1:{client_port(routers['A'])}"
        looks: dict[str, Ran] = {}

        async def look() -> None:
            for name, options in LOOKS.items():
                looks[name] = await run("stat", "-b", bus, "-t", "30", *options)

        trio.run(look)
        yield Ring(routers, looks)

"""`trouter top` shows what is busiest, by the counters of a real router."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio

from tests.routers import PLAIN_LISTENER, ROOT, RunningRouter, running
from tests.tools.live import Ran, run
from trouter.cli.top import KINDS
from trouter.tools.busiest import KINDS as BUSY
from trouter.tools.busiest import Busiest, Row, WorkerTotals


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("top")) as started:
        yield started


@pytest.fixture(scope="module")
def load(router: RunningRouter) -> Iterator[None]:
    """Send to and receive from the address `busy` until the end."""
    command = [sys.executable, "-m", "trouter", "bench", "pair", "-b", f"127.0.0.1:{router.port}"]
    command += ["--address", "busy", "--seconds", "3600", "--rate", "500"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield
        process.terminate()


async def top(router: RunningRouter, *words: str) -> Ran:
    return await run("top", *words, "-b", f"127.0.0.1:{router.port}", "--interval", "0.3", "--once")


async def busy(router: RunningRouter, kind: str, count: int = 1) -> list[Row]:
    """Return the rows of a look in which the first ``count`` move: one that began meanwhile has no rate."""
    while True:
        ran = await top(router, kind, "--json")
        assert (ran.status, ran.err) == (0, "")
        document = json.loads(ran.out)
        assert document.keys() == {"time", "router", "intervalSeconds", kind}
        rows: list[Row] = document[kind]
        if all(sum(each["rates"].values()) > 50 for each in rows[:count]):
            return rows


async def test_the_busiest_links_come_first(router: RunningRouter, load: None) -> None:
    first, second, *others = await busy(router, "links", 2)
    assert {first["owningAddr"], second["owningAddr"]} == {"M0busy"}
    assert {first["linkDir"], second["linkDir"]} == {"in", "out"}
    assert all(each["rates"]["deliveryCount"] <= second["rates"]["deliveryCount"] for each in others)


async def test_the_busiest_addresses_come_first(router: RunningRouter, load: None) -> None:
    first, *_ = await busy(router, "addresses")
    assert first["name"] == "M0busy"
    assert first["rates"].keys() == {"deliveriesIngress", "deliveriesEgress"}


async def test_the_busiest_connections_come_first(router: RunningRouter, load: None) -> None:
    first, second, *_ = await busy(router, "connections", 2)
    assert all(each["container"].startswith("trouter-bench-") for each in (first, second))
    assert first["deliveriesIn"] + first["deliveriesOut"] > 0


@pytest.mark.parametrize("kind", KINDS)
async def test_a_table_has_no_more_rows_than_are_wanted(router: RunningRouter, load: None, kind: str) -> None:
    ran = await top(router, kind, "--limit", "1")
    assert ran.status == 0
    title, heads, _, row = ran.lines
    assert "  R: the busiest of " in title
    assert heads.split()[0].endswith("/s")
    assert row
    assert "\x1b" not in ran.out


def test_a_counter_that_began_anew_and_a_new_row_have_no_rate() -> None:
    looks = iter([[("a", 10), ("b", 100)], [("a", 30), ("b", 1), ("c", 1000)]])

    class Node:
        workers = 0

        async def query(self, _: str, __: object) -> Node:
            return self

        def dicts(self) -> list[Row]:
            return [{"identity": name, "deliveryCount": count} for name, count in next(looks)]

    async def rows() -> list[Row]:
        busiest, now = Busiest(BUSY["links"]), iter((0.0, 2.0))
        assert await busiest.look(Node(), lambda: next(now)) == []  # type: ignore[arg-type]
        return await busiest.look(Node(), lambda: next(now))  # type: ignore[arg-type]

    assert [(row["identity"], row["rates"]["deliveryCount"]) for row in trio.run(rows)] == [("a", 10.0), ("b", None)]


def test_what_went_over_links_of_a_worker_stays_when_they_are_gone() -> None:
    totals = WorkerTotals()

    def add(*links: tuple[str, int, int]) -> dict[tuple[int, str], int]:
        rows = [{"identity": name, "worker": worker, "linkDir": "in", "deliveryCount": n} for name, worker, n in links]
        return dict(totals.add(rows))

    assert add(("a", 1, 10), ("b", 2, 100)) == {(1, "in"): 10, (2, "in"): 100}
    assert add(("b", 2, 130), ("c", 1, 5)) == {(1, "in"): 15, (2, "in"): 130}


async def test_a_router_of_one_process_is_its_only_worker(router: RunningRouter, load: None) -> None:
    (row,) = await busy(router, "workers")
    assert row["worker"] == 1
    assert row["connectionCount"] >= 3
    ran = await top(router, "connections")
    assert "worker" not in ran.lines[1].split()

"""Every view of a live router with clients, links and traffic, compared with golden files.

TROUTER_GOLDEN=write writes them anew.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.routers import running
from tests.tools.live import Ran, run, steady, without_numbers
from tests.waiting import until
from trouter.client import ACCEPTED, Anonymous, Message, Rejected, connect

GOLDEN = Path(__file__).parent / "golden"
#: The credit of a listener's senders.
CAPACITY = 250
CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
address { prefix: news, distribution: multicast, priority: 7 }
address { prefix: orders, distribution: closest }
autoLink { address: queue.b, direction: in, containerId: broker }
autoLink { address: queue.a, direction: out, containerId: broker, externalAddress: a, phase: 1 }
linkRoute { prefix: remote, direction: in, containerId: broker }
linkRoute { pattern: far.*.#, direction: out, containerId: broker, delExternalPrefix: far. }
policy { maxConnections: 100, defaultVhost: shop }
vhost {
    hostname: shop
    maxConnections: 10
    maxMessageSize: 1000
    groups: {
        $default: { users: *, remoteHosts: *, sources: *, targets: * }
        staff: { users: ann, remoteHosts: 10.0.0.0-10.0.0.9, maxSessions: 5, allowDynamicSource: true }
    }
}
log { module: AGENT, enable: debug+ }
"""
#: Name of the golden file -> the options. They run in this order, so that all numbers are the same each time.
VIEWS = {
    "general": ["-g"],
    "connections": ["-c"],
    "links": ["-l"],
    "links-verbose": ["-l", "-v"],
    "links-limit": ["-l", "--limit", "2"],
    "links-csv": ["-l", "--csv"],
    "links-of-address": ["-l", "--address", "news*"],
    "links-of-connection": ["-l", "--connection", "reader"],
    "nodes": ["-n"],
    "edges": ["-e"],
    "addresses": ["-a"],
    "addresses-verbose": ["-a", "-v"],
    "addresses-csv": ["-a", "--csv"],
    "addresses-of-connection": ["--address", "*", "--connection", "reader"],
    "connections-of-address": ["-c", "--address", "orders"],
    "pools": ["-m"],
    "owners": ["--memory"],
    "nodes-csv": ["-n", "--csv"],
    "policy": ["-p"],
    "policy-csv": ["-p", "--csv"],
    "autolinks": ["--autolinks"],
    "linkroutes": ["--linkroutes"],
    "vhosts": ["--vhosts"],
    "vhostgroups": ["--vhostgroups"],
    "vhoststats": ["--vhoststats"],
    "all-entities": ["--all-entities"],
    "why": ["--why", "orders"],
}
#: The same for views that differ from run to run, and have no golden file.
CHANGING = {"owners-csv": ["--memory", "--csv"], "log-csv": ["--log", "--csv"]}
#: Views of memory, in which only the words are the same each time.
IN_WORDS = {"pools", "owners", "all-entities"}


@asynccontextmanager
async def traffic(url: str) -> AsyncIterator[None]:
    """Run two clients with links; three messages were accepted, one rejected, two sent settled."""
    async with (
        connect(url, container_id="reader", sasl=[Anonymous()]) as reader,
        connect(url, container_id="writer", sasl=()) as writer,
        reader.open_receiver("orders", name="orders-in", credit=50) as orders,
        reader.open_receiver("news/world", name="news-in", credit=20) as news,
        writer.open_sender("orders", name="orders-out") as to_orders,
        writer.open_sender("news/world", name="news-out") as to_news,
    ):
        for number in range(4):
            tracker = await to_orders.submit(Message(number))
            delivery = await orders.receive()
            if number < 3:
                await delivery.accept()
                assert await tracker.outcome() == ACCEPTED
            else:
                await delivery.reject("amqp:not-allowed", "enough")
                assert isinstance(await tracker.outcome(), Rejected)
        for number in range(2):
            await to_news.send(Message(number), settled=True)
            await news.receive()
        # The router returns the credit of a few messages once none comes for a moment.
        for sender in (to_orders, to_news):
            await trio.to_thread.run_sync(until, lambda link=sender._link: link.credit == CAPACITY, "the credit")
        yield


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ran]]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("stat")) as router:
        found: dict[str, Ran] = {}

        async def look() -> None:
            async with traffic(f"amqp://127.0.0.1:{router.port}"):
                for name, options in (VIEWS | CHANGING).items():
                    found[name] = await run("stat", "-b", f"127.0.0.1:{router.port}", *options)

        trio.run(look)
        yield found


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_equals_its_golden_file(name: str, looks: dict[str, Ran]) -> None:
    ran = looks[name]
    assert (ran.status, ran.err) == (0, ""), ran.out
    text = steady(ran.out)
    if name in IN_WORDS:
        text = without_numbers(text)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("TROUTER_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_there_is_no_golden_file_too_many() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(VIEWS)


@pytest.mark.parametrize("name", [name for name, options in VIEWS.items() if "--csv" in options])
def test_every_row_of_a_csv_table_is_as_wide_as_its_heads(name: str, looks: dict[str, Ran]) -> None:
    heads, *rows = csv.reader(io.StringIO(looks[name].out))
    assert {len(row) for row in rows} <= {len(heads)}
    assert rows or name == "nodes-csv"


def test_several_tables_are_one_csv_table_with_their_names(looks: dict[str, Ran]) -> None:
    rows = list(csv.DictReader(io.StringIO(looks["owners-csv"].out), strict=True))
    assert {"Memory by Owner", "Memory by Connection", "Memory Summary"} <= {row["table"] for row in rows}
    assert {row["owner"] != "" for row in rows if row["table"] == "Memory by Owner"} == {True}
    assert {row["owner"] for row in rows if row["table"] == "Memory by Connection"} == {""}


def test_the_log_is_a_csv_table(looks: dict[str, Ran]) -> None:
    rows = list(csv.DictReader(io.StringIO(looks["log-csv"].out), strict=True))
    assert {"AGENT", "SERVER"} <= {row["module"] for row in rows}
    assert all(float(row["time"]) > 0 for row in rows)


def test_a_csv_table_without_rows_is_its_heads(looks: dict[str, Ran]) -> None:
    assert looks["nodes-csv"].out.splitlines() == ['"router-id","next-hop","link"']

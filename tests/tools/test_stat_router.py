"""Output for a fresh router that scripts rely on, the count of rows, and improvements over Qpid Dispatch's qdstat."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import pytest
import trio

from tests.routers import DEADLINE_S, ROOT, RunningRouter, StartRouter, running, start_router
from tests.tools.live import Ran, run
from trouter.client import Connection, Message, connect

__all__ = ["start_router"]

CONFIGURATION = """
router { id: QDR.A }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
log { module: AGENT, enable: debug+ }
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router that only the tool connects to."""
    with running(CONFIGURATION, tmp_path_factory.mktemp("fresh")) as router:
        yield router


async def stat(router: RunningRouter, *options: str) -> Ran:
    ran = await run("stat", "--bus", f"127.0.0.1:{router.port}", "--timeout", "30", *options)
    assert (ran.status, ran.err) == (0, ""), ran.out
    return ran


async def test_a_fresh_router_has_the_links_of_the_tool_only(fresh: RunningRouter) -> None:
    ran = await stat(fresh, "--links")
    assert len(ran.out.split("\n")) == 9
    assert re.search(r"endpoint +in +\d+ +\d+ +mobile +\$management +0 ", ran.out)
    assert re.search(r"endpoint +out +\d+ +\d+ +local +temp\.", ran.out)
    assert ran.lines[0].endswith(" UTC")
    assert ran.lines[1:3] == ["QDR.A", ""]


@pytest.mark.parametrize(("options", "lines"), [(["--limit=1"], 8), (["--limit=1", "--csv"], 3), (["--limit=0"], 9)])
async def test_a_limit_is_a_number_of_rows(fresh: RunningRouter, options: list[str], lines: int) -> None:
    assert len((await stat(fresh, "--links", *options)).out.split("\n")) == lines


async def test_a_fresh_router_has_five_addresses(fresh: RunningRouter) -> None:
    ran = await stat(fresh, "--address")
    assert len(ran.out.split("\n")) == 12
    found = {(row[0], row[1].partition(".")[0]) for row in (line.split() for line in ran.lines[6:])}
    assert found == {
        ("local", "$_management_internal"),
        ("local", "$management"),
        ("local", "temp"),
        ("mobile", "$management"),
        ("mobile", "_$qd"),
    }


async def test_priorities_have_a_column_of_their_own(fresh: RunningRouter) -> None:
    ran = await stat(fresh, "-a")
    at = ran.lines[4].index(" pri ") + 1
    for line in ran.lines[6:]:
        assert line[at] == "-" or 0 <= int(line[at]) <= 9


async def test_a_fresh_router_has_one_connection_and_nothing_else(fresh: RunningRouter) -> None:
    ran = await stat(fresh)
    values = dict(re.findall(r"(?m)^  (\S.*?) {2,}(\S.*)$", ran.out))
    assert values["Mode"] == "standalone"
    assert values["Connections"] == "1"
    assert values["Nodes"] == values["Auto Links"] == values["Link Routes"] == "0"
    assert ran.out.count("QDR.A") == 2


async def test_the_pools_have_the_names_of_qpid_dispatch(fresh: RunningRouter) -> None:
    assert re.search(r"qdr_address_t\s+[0-9]+", (await stat(fresh, "-m")).out)


async def test_the_log_view_shows_its_own_request(fresh: RunningRouter) -> None:
    ran = await stat(fresh, "--log", "--limit=5")
    assert len(ran.lines) <= 5
    assert re.search(r"AGENT \(debug\).*GET-LOG", ran.out)


async def test_everything_has_each_title_once(fresh: RunningRouter) -> None:
    out = (await stat(fresh, "--all-entities")).out
    for title in (
        "Router Links", "Router Addresses", "AutoLinks", "Link Routes", "Router Statistics", "Memory Pools",
        "Memory Summary", "Policy Configuration", "Policy Status", "UTC",
    ):  # fmt: skip
        assert len(re.findall(rf"(?m)(?:^|(?<= )){re.escape(title)}$", out)) == 1, title
    assert out.count("Connections") == 6


async def test_all_routers_of_a_lone_router_is_itself(fresh: RunningRouter) -> None:
    assert (await stat(fresh, "-g", "--all-routers")).lines[1] == "QDR.A"


async def test_a_router_can_be_named(fresh: RunningRouter) -> None:
    assert (await stat(fresh, "-g", "-r", "QDR.A")).lines[1] == "QDR.A"


async def test_an_unknown_router_times_out(fresh: RunningRouter) -> None:
    ran = await run("stat", "-b", f"127.0.0.1:{fresh.port}", "-r", "nobody", "-t", "0.2")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("trouter stat: no answer from ")


@pytest.mark.parametrize(
    "view", ["-n", "--vhosts", "--vhostgroups", "--vhoststats", "-e", "--autolinks", "--linkroutes"]
)
async def test_a_view_without_rows_ends_and_prints_lines(fresh: RunningRouter, view: str) -> None:
    assert (await stat(fresh, view, "--limit", "1")).lines


@asynccontextmanager
async def links(router: RunningRouter, count: int) -> AsyncIterator[Connection]:
    """Attach ``count`` senders and receivers on one connection."""
    async with connect(f"amqp://127.0.0.1:{router.port}", container_id="many") as connection, AsyncExitStack() as stack:
        for number in range(count):
            await stack.enter_async_context(connection.open_receiver(f"a{number}", credit=1))
            await stack.enter_async_context(connection.open_sender(f"a{number}"))
        yield connection


async def test_links_and_addresses_by_the_thousand_are_all_listed(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION.replace("port: 0", "port: 0, maxLinks: 3000", 1))
    async with links(router, 1_200):
        for limit, expected in ((0, 2_402), (5_000, 2_402), (2_000, 2_000), (700, 700), (500, 500), (1, 1)):
            ran = await stat(router, "-l", "--limit", str(limit))
            assert len(ran.lines) == 6 + expected
        listed = (await stat(router, "-l", "--csv")).out
        identities = re.findall(r'(?m)^"endpoint","(?:in|out)","\d+","(\d+)"', listed)
        assert len(identities) == len(set(identities)) == 2_402
        assert len((await stat(router, "-a")).lines) == 6 + 1_205


async def test_json_has_the_numbers_of_the_router(fresh: RunningRouter) -> None:
    document = json.loads((await stat(fresh, "-l", "--json")).out)
    assert document["router"] == "QDR.A"
    rows = document["tables"]["router.link"]
    assert [row["linkDir"] for row in rows] == ["out", "in"]
    assert (rows[1]["capacity"], rows[1]["owningAddr"]) == (250, "M0$management")
    general = json.loads((await stat(fresh, "-g", "--json")).out)["tables"]["router"]
    assert (general["connectionCount"], general["deliveriesDelayed1Sec"]) == (1, 0)


async def test_everything_is_one_json_document(fresh: RunningRouter) -> None:
    tables = json.loads((await stat(fresh, "--all-entities", "--json")).out)["tables"]
    assert {"router.link", "router.address", "connection", "router", "allocator", "policy", "vhostStats"} <= set(tables)


async def test_a_filter_that_fits_nothing_leaves_the_title(fresh: RunningRouter) -> None:
    assert (await stat(fresh, "-l", "--address", "nowhere")).lines[3:] == ["Router Links"]


async def test_why_reports_a_consumer_without_credit(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    url = f"amqp://127.0.0.1:{router.port}"
    async with (
        connect(url, container_id="reader") as reader,
        connect(url, container_id="writer") as writer,
        reader.open_receiver("orders", name="orders-in", credit=0),
        writer.open_sender("orders", name="orders-out") as sender,
    ):
        await sender.submit(Message("waits"))
        text = (await stat(router, "--why", "orders")).out
        assert "credit" in text
        assert "Consumers" in text
        assert "Senders" in text
    assert "Consumers" not in (await stat(router, "--why", "nothing.of.the.kind")).out


class Watched:
    """`trouter stat --watch` as a process."""

    def __init__(self, router: RunningRouter, *options: str, out: int = subprocess.PIPE) -> None:
        command = [sys.executable, "-m", "trouter", "stat", "-b", f"127.0.0.1:{router.port}", "--watch", "0.05"]
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
        self.process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=out, text=True, env=environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


async def read_until(out: int, enough: str, times: int = 1) -> str:
    """Read a descriptor until a text has come ``times`` times; return all output."""
    found = ""
    while found.count(enough) < times:
        with trio.fail_after(DEADLINE_S):
            await trio.lowlevel.wait_readable(out)
        found += os.read(out, 65536).decode()
    return found


async def test_a_watch_has_rates_from_the_second_look_on_and_ends_with_control_c(fresh: RunningRouter) -> None:
    with Watched(fresh, "-g") as watched:
        assert watched.process.stdout is not None
        found = await read_until(watched.process.stdout.fileno(), "Deliveries to Route Container", 3)
        watched.process.send_signal(signal.SIGINT)
        assert await trio.to_thread.run_sync(watched.process.wait, DEADLINE_S) == 0
    first, second = found.split("UTC")[1:3]
    assert "\x1b" not in found
    assert re.search(r"(?m)^  Accepted Count +\d+ *$", first)
    assert re.search(r"(?m)^  Accepted Count +\d+ +[\d.,]+$", second)
    assert re.search(r"(?m)^  Connections +1 *$", second)


async def test_a_watch_on_a_terminal_is_in_place_and_in_colour(fresh: RunningRouter) -> None:
    terminal, end = pty.openpty()
    try:
        with Watched(fresh, "-l", out=end) as watched:
            found = await read_until(terminal, "\x1b[2J", 3)
            watched.process.send_signal(signal.SIGINT)
            assert await trio.to_thread.run_sync(watched.process.wait, DEADLINE_S) == 0
    finally:
        os.close(terminal)
        os.close(end)
    assert "\x1b[1mRouter Links\x1b[0m" in found


async def test_a_watch_as_csv_has_its_heads_once_and_the_time_of_each_look(fresh: RunningRouter) -> None:
    with Watched(fresh, "-g", "--csv") as watched:
        assert watched.process.stdout is not None
        found = await read_until(watched.process.stdout.fileno(), '"Connections"', 3)
        watched.process.send_signal(signal.SIGINT)
        assert await trio.to_thread.run_sync(watched.process.wait, DEADLINE_S) == 0
    heads, *rows = csv.reader(found.splitlines()[:-1])
    assert heads == ["time", "attr", "value", "per second"]
    assert {len(row) for row in rows} == {4}
    assert "time" not in {row[0] for row in rows}


async def test_a_watch_as_json_is_a_look_a_line(fresh: RunningRouter) -> None:
    with Watched(fresh, "-g", "--json") as watched:
        assert watched.process.stdout is not None
        found = await read_until(watched.process.stdout.fileno(), "\n", 3)
    looks = [json.loads(line)["tables"]["router"] for line in found.splitlines()[:3]]
    assert looks[0]["rates"]["acceptedDeliveries"] is None
    assert looks[1]["rates"]["acceptedDeliveries"] > 0
    assert looks[2]["acceptedDeliveries"] > looks[1]["acceptedDeliveries"]


def test_a_reader_that_goes_away_is_no_traceback(fresh: RunningRouter) -> None:
    command = f"{sys.executable} -m trouter stat -b 127.0.0.1:{fresh.port} --all-entities | head -c 10"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_the_tool_starts_from_anywhere(fresh: RunningRouter, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from trouter.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "stat", "-b", f"127.0.0.1:{fresh.port}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

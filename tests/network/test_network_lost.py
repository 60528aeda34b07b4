"""Commands for a whole network while a router of it is gone: it is named, and no command takes the rest for all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior, wait_for_row
from tests.routers import RunningRouter, running
from tests.tools.live import Ran, run

pytestmark = pytest.mark.slow

SHOP = "vhost { hostname: shop, groups: { $default: { users: *, sources: a } } }\n"
WENT = r"B: it is not in reach since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC"


async def ask(router: RunningRouter, *words: str) -> Ran:
    return await run("network", *words, "-b", f"127.0.0.1:{client_port(router)}", "--timeout", "60")


def vhosts(router: RunningRouter) -> list[str]:
    with node_of(client_port(router)) as node:
        return [row["hostname"] for row in node.query("vhost")]


@contextmanager
def without_b(folder: Path) -> Iterator[tuple[RunningRouter, str]]:
    """Run the router A, and B until it is gone from the network; give A, and the configuration with which B returns."""
    with running(interior("A", {}, EDGE_LISTENER), folder) as first:
        text = interior("B", {"A": first.ports[1]})
        with running(text, folder):
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
        wait_for_row(first, "router.node", lambda row: row["id"] == "B", there=False)
        yield first, text


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "all.conf").write_text(SHOP)
    return folder


async def test_a_policy_is_not_that_of_all_while_a_router_is_gone(tmp_path: Path, policy: Path) -> None:
    with without_b(tmp_path) as (first, text):
        push = ("policy", "push", str(policy), "--yes")
        refused = await ask(first, *push)
        assert (refused.status, vhosts(first)) == (1, [])
        assert "B would miss the change: nothing was changed (--skip-absent lets it wait for them)" in refused.err
        assert re.search(WENT, refused.err)
        assert ((await ask(first, *push, "--only", "A")).status, vhosts(first)) == (0, ["shop"])
        waits = await ask(first, *push, "--skip-absent")
        assert (waits.status, "B is away: the change waits for it" in waits.err) == (0, True)
        with running(text, tmp_path) as back:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            ran = await ask(first, *push)
            assert (ran.status, "B: confirmed" in ran.lines, vhosts(back)) == (0, True, ["shop"]), ran.err


async def test_the_status_names_what_is_gone_also_from_an_edge_router(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, text = stack.enter_context(without_b(tmp_path))
        below = stack.enter_context(running(edge("E", [edge_port(first)]), tmp_path))
        wait_for_row(first, "connection", lambda row: row["role"] == "edge" and row["container"] == "E")
        wait_for_row(below, "connection", lambda row: row["role"] == "edge" and row["container"] == "A")
        for asked in (first, below):
            shown = await ask(asked, "status")
            assert shown.status == 0
            assert re.search(rf"(?m)^{WENT}$", shown.out)
            assert list(json.loads((await ask(asked, "status", "--json")).out)["lost"]) == ["B"]
        stack.enter_context(running(text, tmp_path))
        wait_for_row(first, "router.node", lambda row: row["id"] == "B")
        assert json.loads((await ask(first, "status", "--json")).out)["lost"] == {}


async def test_no_router_is_rolled_while_another_one_is_gone_unless_it_is_named(tmp_path: Path) -> None:
    with without_b(tmp_path) as (first, _):
        refused = await ask(first, "roll", "--dry-run")
        assert refused.status == 1
        assert re.search(WENT, refused.err)
        assert "nothing was begun; --only rolls the routers that it names" in refused.err
        assert (await ask(first, "roll", "--dry-run", "--only", "A")).status == 0

"""Changes of the network: the router's history, the log, the records and the rows, and two routers with one id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.management.node import Node, node_of
from tests.networks import client_port, interior, router_port, wait_for_links, wait_for_row
from tests.routers import RunningRouter, StartRouter, process
from tests.tools.live import run

pytestmark = pytest.mark.slow

QUICK = "raIntervalFluxSeconds: 1"


def records_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the records in the segments so far."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [each for each in found if each["k"] == kind]


def changes(node: Node) -> list[dict[str, Any]]:
    return node.query("topologyChange")


async def test_a_lost_router_is_reported_with_the_reason_the_moved_paths_and_the_time_taken(
    start_router: StartRouter, tmp_path: Path
) -> None:
    folder = tmp_path / "records"
    log = f"recordLog {{ name: all, dir: {folder} }}"
    dials: dict[str, tuple[str, ...]] = {"A": (), "B": ("A",), "C": ("A", "B")}
    a = start_router(interior("A", {}, log, router=QUICK))
    (tmp_path / "b").mkdir()
    with process(interior("B", {"A": router_port(a)}, router=QUICK), tmp_path / "b") as b:
        b.wait_for_line("Operational")
        c = start_router(interior("C", {"A": router_port(a), "B": router_port(b)}, costs={"A": 5}, router=QUICK))
        wait_for_links({"A": a, "B": b, "C": c}, dials)
        wait_for_row(a, "topologyChange", lambda change: not change["settled"], there=False)
        with node_of(client_port(a)) as node:
            before = changes(node)
            assert all(change["settled"] for change in before)
            assert {row["id"]: row["cost"] for row in node.query("router.node")} == {"A": None, "B": 1, "C": 2}
        b.process.kill()
        rested = a.wait_for_line(
            r"the network has converged: change (\d+) \((neighbour B went.*)\) moved the paths to 2 routers "
            r"and took ([\d.]+) s"
        )
    with node_of(client_port(a)) as node:
        (last,) = [each for each in changes(node) if each["name"] == f"topologyChange/{rested[1]}"]
        assert last["identity"] == last["name"]
        assert last["why"] == rested[2] == "neighbour B went: connection lost"
        assert (last["movedCount"], last["moved"], last["reachableCount"]) == (2, ["B", "C"], 1)
        assert last["settled"]
        assert 0 <= last["convergenceMs"] <= 60_000
        assert last["cause"].startswith("A:")
        assert "neighbour B went: connection lost" in last["events"]
        lines = [
            line for line in last["events"] if line.startswith("C is reached directly, cost 5; it was via B, cost 2")
        ]
        assert len(lines) == 1
        assert any(line.startswith("B is out of reach") for line in last["events"])
        assert node.get("READ", identity=last["identity"])["why"] == last["why"]
        assert node.refused("DELETE", type="topologyChange", name=last["name"])[0] == 501
        assert node.query("router.node", names=["id", "cost"])[-1] == {"id": "C", "cost": 5}
    ran = await run("stat", "-b", f"127.0.0.1:{client_port(a)}", "--topology", "-v")
    assert (ran.status, ran.err) == (0, "")
    assert "The Last Change" in ran.out
    assert "C is reached directly, cost 5; it was via B, cost 2" in ran.out
    assert a.stop() == 0
    told = records_of(folder, "topology.change")
    down = [each for each in told if each["what"] == "neighbour-down"]
    assert (down[0]["peer"], down[0]["why"]) == ("B", "connection lost")
    cause = down[0]["cause_id"]
    assert cause == last["cause"]
    moved = {each["peer"]: each for each in told if each.get("cause_id") == cause and each["what"] == "path"}
    assert (moved["C"]["cost_old"], moved["C"]["cost_new"], moved["C"]["next_hop"]) == (2, 5, "C")
    assert moved["B"]["cost_old"] == 1
    gone = [each for each in told if each.get("peer") == "B" and each["what"] == "path" and "cost_new" not in each]
    assert {each["cause_id"].partition(":")[0] for each in gone} <= {"A", "C"}  # C's report, or A's own
    assert gone
    (converged,) = [each for each in told if each["what"] == "converged" and each["cause_id"] == cause]
    assert converged["routers"] == 2
    assert converged["converge_us"] // 1000 in range(last["convergenceMs"] - 1, last["convergenceMs"] + 2)


def test_two_routers_with_one_id_are_reported_once_and_shown(start_router: StartRouter, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    first = start_router(interior("A", {}, f"recordLog {{ name: all, dir: {folder} }}"))
    second = start_router(interior("A", {"A": router_port(first)}))
    for router in (first, second):
        router.wait_for_line(
            r"ROUTER \(critical\) another router has the id of this router, A \(\[C\d+\], instance \d+\): .* another id"
        )
    assert_shown(first)
    assert_shown(second)
    with node_of(client_port(first)) as node:
        assert [row["id"] for row in node.query("router.node")] == ["A"]
        assert "another router has the id of this router, A" in changes(node)[-1]["why"]
    assert len(first.matching(r"\(critical\)")) == 1
    assert first.stop() == 0
    (alarm,) = records_of(folder, "alarm")
    assert (alarm["name"], alarm["severity"], alarm["subject"], alarm["state"]) == (
        "duplicateRouterId", "critical", "A", "raised",
    )  # fmt: skip


def assert_shown(router: RunningRouter) -> None:
    with node_of(client_port(router)) as node:
        (row,) = node.query("router")
        assert row["duplicateIds"] == ["A"]
        assert row["meshFaults"]["same-id"] >= 1

"""The cost of a request depends on its answer, not on the size of the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.management.node import NODE, Node
from tests.routers import WORKERS, RunningRouter


@pytest.fixture(autouse=True)
def nothing_is_left(shared: RunningRouter) -> Iterator[None]:
    yield
    shared.assert_no_fault_of_ours()


def calls_during(node: Node, asking: Callable[[], object]) -> dict[str, int]:
    """Return the calls of each function, by its name and that of its file."""
    node.node("PROFILE", start=True)
    asking()
    report = node.node("PROFILE", stop=True)
    found = re.findall(r"^ *(\d+)(?:/\d+)? .*/(\w+)\.py:\d+\((\w+)\)$", report, re.MULTILINE)
    calls: Counter[str] = Counter()  # the report has a table for each worker
    for count, file, function in found:
        calls[f"{file}.{function}"] += int(count)
    return calls


@pytest.mark.parametrize("name", ["l0", "logStats/AGENT", "nobody"])
def test_looking_up_a_name_measures_no_memory(node: Node, name: str) -> None:
    calls = calls_during(node, lambda: node.ask("READ", name=name))
    assert 1 <= calls["directory.find"] <= WORKERS  # the first of several looks who has it, too
    assert "allocations.owners" not in calls


def test_a_memory_listing_measures_memory_once(node: Node) -> None:
    calls = calls_during(node, lambda: node.query("allocator"))
    assert calls["allocations.owners"] == WORKERS


def test_memory_is_measured_again_for_each_new_request(node: Node) -> None:
    def links() -> int:
        return int(node.get("READ", identity="allocator/qdr_link_t")["totalAllocFromHeap"])

    node.query("allocator", count=1)  # the rest of this listing is never requested
    before = links()
    node.connection.create_sender("one more")
    assert links() == before + 1


def test_a_connection_is_found_by_name_without_the_rows_of_the_others(node: Node) -> None:
    (name,) = (row["name"] for row in node.query("connection"))
    calls = calls_during(node, lambda: node.get("READ", type="connection", name=name))
    assert calls["peer.build_management_row"] == 1


def test_an_update_that_names_no_entity_is_not_looked_through_for_ever(node: Node) -> None:
    body = {f"log/{number}": None for number in range(5_000)}
    calls = calls_during(node, lambda: node.refused("UPDATE", body, **NODE))
    assert calls.get("directory.exists", 0) <= 100

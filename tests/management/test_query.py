"""QUERY: columns, rows, pages (management.md 6)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.management.node import NODE, PREFIX, Node, small
from trouter.config.types import TYPES

FIRST_COLUMNS = {
    "router.address": ["name", "identity", "type", "key", "distribution"],
    "router.link": ["name", "identity", "type", "linkName", "linkType", "linkDir"],
    "connection": ["name", "identity", "host", "role", "protocol", "dir", "container"],
    "router": ["name", "identity", "id", "type", "mode"],
    "router.config.autoLink": ["name", "identity", "type", "address", "addr", "direction", "dir"],
    "listener": ["host", "port"],
    "dummy": ["arg1", "arg2", "num1", "num2", "name", "identity", "type"],
    "configurationEntity": ["name", "identity", "type"],
}


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize("kind", FIRST_COLUMNS)
def test_without_names_all_columns_come_in_their_order(node: Node, kind: str, prefix: str) -> None:
    names = node.node("QUERY", {}, entityType=prefix + kind)["attributeNames"]
    wanted = FIRST_COLUMNS[kind]
    assert names[: len(wanted)] == wanted
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("body", [None, {}, {"attributeNames": None}, {"attributeNames": []}, {"attributeNames": "x"}])
def test_no_names_are_all_names(node: Node, body: Any) -> None:
    assert len(node.node("QUERY", body, entityType="listener")["attributeNames"]) > 20


def test_cells_come_in_the_order_of_the_names(node: Node) -> None:
    body = node.node("QUERY", {"attributeNames": ["type", "name", "type", "tenant"]}, entityType="connection")
    assert body["attributeNames"] == ["type", "name", "type", "tenant"]
    assert body["results"][0][0] == body["results"][0][2] == PREFIX + "connection"
    assert body["results"][0][3] is None


def test_former_names_are_names(node: Node) -> None:
    body = node.node("QUERY", {"attributeNames": ["timestamp", "output"]}, entityType="log")
    assert body["attributeNames"] == ["timestamp", "output"]
    assert any(True in row for row in body["results"])


def test_links_show_the_two_links_of_the_querying_client(node: Node) -> None:
    rows = [row for row in node.query("router.link") if row["connectionId"] == node.query("connection")[-1]["identity"]]
    assert sorted((row["linkDir"], row["linkType"]) for row in rows) == [("in", "endpoint"), ("out", "endpoint")]
    assert {row["capacity"] for row in rows} == {250}


def test_a_listing_by_the_type_property_alone_works_too(node: Node) -> None:
    assert node.get("QUERY", {}, type=PREFIX + "router.link")["results"]


def test_the_listing_of_everything(node: Node) -> None:
    body = node.node("QUERY", {})
    names = body["attributeNames"]
    rows = [dict(zip(names, row, strict=True)) for row in body["results"]]
    assert len(names) >= 252
    assert len(set(names)) == len(names)
    identities = [row["identity"] for row in rows]
    assert len(set(identities)) == len(identities)
    for row in rows:
        short = row["type"].removeprefix(PREFIX)
        assert row["identity"] == "self" or row["identity"].startswith(short.removeprefix("router.config.") + "/")
    assert {"router/R", "log/DEFAULT", "self", "address/0", "linkRoute/0", "autoLink/0"} <= set(identities)
    assert {"router/R", "log/DEFAULT"} <= {row["name"] for row in rows}
    assert not {"router.link", "router.address", "connection"} & {row["type"].removeprefix(PREFIX) for row in rows}


def test_a_query_leaves_out_rows_without_the_requested_attributes(node: Node) -> None:
    rows = node.query(names=["host", "port"])
    assert {frozenset(row) for row in rows} == {frozenset(("host", "port"))}
    assert len(rows) == 2


@pytest.mark.parametrize("base", ["entity", "operationalEntity"])
def test_a_base_type_lists_the_entities_of_its_derived_types(node: Node, base: str) -> None:
    types = {row["type"].removeprefix(PREFIX) for row in node.query(base)}
    assert {"router.link", "router.address", "connection", "logStats", "management"} <= types
    assert ("listener" in types) == (base == "entity")


KINDS = pytest.mark.parametrize(
    "kind", ["", *(each.short for each in TYPES if each.short not in ("entity", "operationalEntity"))]
)


@KINDS
def test_an_unknown_name_among_known_ones_is_a_column_of_nulls(node: Node, kind: str) -> None:
    rows = node.query(kind or None, names=["identity", "nope", "", "name"])
    whole = node.query(kind or None, names=["identity", "name"])
    seen = [(row["identity"], row["name"]) for row in rows]
    assert seen == [(row["identity"], row["name"]) for row in whole]
    assert all(list(row) == ["identity", "nope", "", "name"] for row in rows)
    assert {(row["nope"], row[""]) for row in rows} <= {(None, None)}


def test_a_base_type_shows_the_columns_of_the_types_that_extend_it(node: Node) -> None:
    rows = node.query("entity", names=["type", "host", "nope"])
    hosts = {row["host"] for row in rows if row["type"] == PREFIX + "listener"}
    assert "127.0.0.1" in hosts
    assert {row["nope"] for row in rows} == {None}


@KINDS
def test_only_unknown_names_are_a_bad_request_that_lists_the_known_ones(node: Node, kind: str) -> None:
    status, text = node.refused("QUERY", {"attributeNames": ["nope", "neither"]}, entityType=kind, **NODE)
    assert status == 400
    assert "Unknown attribute 'nope', 'neither'" in text


@pytest.mark.parametrize("kind", [None, "log", PREFIX + "log", "router.address", "router.link"])
def test_pages_put_together_are_the_whole(node: Node, kind: str | None) -> None:
    whole = [row["identity"] for row in node.query(kind)]
    for size in (1, 2, len(whole), len(whole) + 1):
        pages: list[str] = []
        while True:
            page = node.query(kind, ["identity"], offset=small(len(pages)), count=small(size))
            pages += [row["identity"] for row in page]
            if len(page) < size:
                break
        assert pages == whole


@pytest.mark.parametrize(("offset", "count"), [(10_000, 5), (-1, 5), (-1, 0), (10_000, 0)])
def test_there_is_nothing_beyond_the_end_or_before_the_beginning(node: Node, offset: int, count: int) -> None:
    for kind in (None, "log", "router.link"):
        assert node.query(kind, offset=small(offset), count=small(count)) == []


@pytest.mark.parametrize("count", [0, -5, "0"])
def test_no_count_is_everything(node: Node, count: int | str) -> None:
    wanted = small(count) if isinstance(count, int) else count
    assert len(node.query("log", count=wanted)) == 18
    assert len(node.query("log", offset="15", count=wanted)) == 3


def test_a_pool_that_is_not_there_is_empty_and_has_the_limits_of_qpid_dispatch(node: Node) -> None:
    rows = {row["typeName"]: row for row in node.query("allocator")}
    assert len(rows) == 41
    columns = "transferBatchSize", "localFreeListMax", "totalAllocFromHeap", "heldByThreads"
    assert [rows["qd_timer_t"][column] for column in columns] == [64, 128, 0, 0]
    assert [rows["qd_log_entry_t"][column] for column in columns] == [16, 32, 0, 0]


def test_allocators_have_the_names_that_tools_look_for(node: Node) -> None:
    rows = {row["typeName"]: row for row in node.query("allocator")}
    assert rows["qdr_address_t"]["totalAllocFromHeap"] > 0
    assert all(isinstance(row["typeSize"], int) for row in rows.values())


def test_a_router_that_stands_alone_has_no_nodes_to_list(node: Node) -> None:
    assert node.query("router.node") == []
    assert node.query("router.connection.linkRoute") == []


def test_a_fresh_router_has_its_own_addresses(own: Node) -> None:
    keys = {row["key"] for row in own.query("router.address")}
    assert {"M0$management", "L$management", "L$_management_internal"} <= keys
    assert len([key for key in keys if re.match(r"Ltemp\.", key)]) == 1


def test_the_rows_of_all_types_have_their_full_type(node: Node) -> None:
    for kind in ("router.config.exchange", "router.config.binding", "router.config.address", "router", "policy"):
        assert all(row["type"] == PREFIX + kind for row in node.query(kind))

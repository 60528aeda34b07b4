"""Descriptions that programs compare, in Qpid Dispatch's words (docs/management.md, "Answers")."""

from __future__ import annotations

from typing import Any

import pytest

from tests.management.node import NODE, PREFIX, Node

ADDRESS = PREFIX + "router.config.address"
LINK_ROUTE = PREFIX + "router.config.linkRoute"
AUTO_LINK = PREFIX + "router.config.autoLink"
NAMELESS = "No name or identity provided"


@pytest.mark.parametrize(
    ("operation", "kind", "which", "body", "status", "description"),
    [
        ("READ", ADDRESS, {"name": "nothing"}, {}, 404, "Not Found"),
        ("DELETE", ADDRESS, {"identity": "999999"}, {}, 404, "Not Found"),
        ("READ", LINK_ROUTE, {"name": "nothing"}, {}, 404, "Not Found"),
        ("DELETE", AUTO_LINK, {"name": "nothing"}, {}, 404, "Not Found"),
        ("READ", "router.config.address", {"name": "nothing"}, {}, 404, "Not Found"),
        ("READ", PREFIX + "connection", {"identity": "999999"}, {}, 404, "Not Found"),
        ("READ", PREFIX + "listener", {"name": "nothing"}, {}, 404, "No entity with name=nothing"),
        ("READ", "", {"name": "nothing"}, {}, 404, "No entity with name=nothing"),
        ("READ", ADDRESS, {}, {}, 400, NAMELESS),
        ("DELETE", LINK_ROUTE, {}, {}, 400, NAMELESS),
        ("DELETE", AUTO_LINK, {}, {}, 400, NAMELESS),
        ("READ", PREFIX + "connection", {}, {}, 400, NAMELESS),
        ("READ", "listener", {}, {}, 400, f"{PREFIX}listener: {NAMELESS}"),
        ("CREATE", ADDRESS, {"name": "near"}, {"prefix": "q"}, 400, "Name conflicts with an existing entity"),
        ("CREATE", ADDRESS, {}, [1], 400, "Body of request must be a map"),
        ("DELETE", PREFIX + "connection", {"identity": "1"}, {}, 403, "Forbidden"),
        ("DELETE", PREFIX + "router", {"identity": "1"}, {}, 403, "Forbidden"),
    ],
)
def test_a_refusal_is_worded_as_by_qpid_dispatch(
    node: Node, operation: str, kind: str, which: dict[str, str], body: Any, status: int, description: str
) -> None:
    named = {"type": kind, **which} if kind else which
    answer = node.ask(operation, body, **named)
    assert (answer.status, answer.description) == (status, description)


@pytest.mark.parametrize("operation", ["REGISTER", "DEREGISTER"])
def test_nothing_can_be_registered(node: Node, operation: str) -> None:
    assert node.refused(operation, {}, **NODE)[0] == 501


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_attribute_without_a_name_is_ignored_in_a_create(node: Node, nothing: str | None) -> None:
    created = node.create("dummy", {"name": "d", "arg1": "x", nothing: "y"})  # type: ignore[dict-item]
    node.get("DELETE", type="dummy", name="d")
    assert (created["name"], created["arg1"]) == ("d", "x")
    assert node.refused("UPDATE", {nothing: "y"}, name="log/AGENT")[0] == 400


def test_the_listing_of_everything_leaves_out_routes_without_a_name(node: Node) -> None:
    created = node.create(ADDRESS, {"prefix": "nameless"})
    try:
        assert created["name"] is None
        listed = [row for row in node.query() if row["type"] == ADDRESS]
        assert [row["prefix"] for row in listed] == ["near", None]
        assert "nameless" in [row["prefix"] for row in node.query(ADDRESS)]
    finally:
        node.get("DELETE", type=ADDRESS, identity=created["identity"])

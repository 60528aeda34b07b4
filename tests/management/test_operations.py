"""GET-OPERATIONS lists the operations that work: no more and no fewer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.management.node import PREFIX, Node
from trouter.config.types import TYPES, type_named
from trouter.management.kinds import NODE_TYPES, is_base
from trouter.management.operations import ENTITY_OPERATIONS, NODE_OPERATIONS
from trouter.management.status import FORBIDDEN, NOT_IMPLEMENTED

#: Every operation that any type may have, and two that no router has.
OPERATIONS = sorted({*ENTITY_OPERATIONS, *NODE_OPERATIONS, "CREATE", "QUERY", "REGISTER", "DEREGISTER"})
#: A request for an entity of one of these is answered by the type of the entity.
BASES = {kind.short for kind in TYPES if is_base(kind)} - NODE_TYPES
OWN_TYPES = [kind.short for kind in TYPES if kind.short not in BASES | NODE_TYPES]
#: The bodies of updates that change nothing; an UPDATE of a connection must name an attribute.
UNCHANGED = {"connection": {"adminStatus": "enabled"}}
RECORDED = json.loads((Path(__file__).parents[1] / "config" / "types.json").read_text(encoding="utf-8"))


def works(node: Node, operation: str, short: str) -> bool:
    """Return whether the router knows the operation of a type: it is asked of an entity that does not exist."""
    of_node = short in NODE_TYPES
    properties = {"type": PREFIX + short}
    if not of_node and operation != "CREATE":
        properties["name"] = "nobody"
    status = node.ask(operation, {}, **properties).status
    if operation == "DRAIN":
        node.ask("CANCEL-DRAIN")
    return status not in (NOT_IMPLEMENTED, FORBIDDEN)


@pytest.mark.parametrize("short", [*sorted(NODE_TYPES), *OWN_TYPES])
def test_every_operation_that_works_is_listed_and_every_listed_one_works(node: Node, short: str) -> None:
    listed = node.node("GET-OPERATIONS")[PREFIX + short]
    assert sorted(listed) == [each for each in OPERATIONS if works(node, each, short)]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("fact", RECORDED, ids=[fact["type"] for fact in RECORDED])
def test_the_operations_of_qpid_dispatch_come_first_in_its_order(node: Node, fact: dict[str, object]) -> None:
    theirs = fact["effective"]
    assert isinstance(theirs, list)
    listed = node.node("GET-OPERATIONS")[f"{PREFIX}{fact['type']}"]
    assert listed[: len(theirs)] == theirs
    if fact["type"] in BASES:
        assert listed == theirs


def test_every_entity_can_be_read_and_updated_if_its_type_lists_it(node: Node) -> None:
    operations = node.node("GET-OPERATIONS")
    for short in OWN_TYPES:
        for row in node.query(short, ["identity"])[:1]:
            for operation in {"READ", "UPDATE"} & set(operations[PREFIX + short]):
                answer = node.ask(operation, UNCHANGED.get(short, {}), type=PREFIX + short, identity=row["identity"])
                assert answer.status == 200, (short, operation, answer.description)


def test_the_schema_has_the_same_operations(node: Node) -> None:
    operations = node.node("GET-OPERATIONS")
    described = node.node("GET-SCHEMA")["entityTypes"].values()
    assert {each["fullyQualifiedType"]: each.get("operations", []) for each in described} == operations


def test_an_update_of_the_management_node_itself_is_not_listed(node: Node) -> None:
    status, text = node.refused("UPDATE", {}, type=PREFIX + "management")
    assert (status, text) == (NOT_IMPLEMENTED, "Not implemented: UPDATE on the management node; name an entity")
    kind = type_named("management")
    assert kind is not None
    assert "UPDATE" not in node.node("GET-OPERATIONS")[kind.full_name]

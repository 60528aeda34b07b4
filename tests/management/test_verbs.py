"""An operation is declared once: its arguments, its answer, the level it needs, and whether tenants may call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from manual.operations import arguments_table, table
from trouter.config.entities.group import LEVELS
from trouter.management.arguments import Flag, Number, Text
from trouter.management.context import Node
from trouter.management.operations import CHANGES, CHECKS, NODE_OPERATIONS
from trouter.management.requests import Request
from trouter.management.responses import OperationResult, answer
from trouter.management.rights import level_for
from trouter.management.status import Refusal
from trouter.management.tenants import check_operation
from trouter.management.verbs import OPERATE, VERBS, verb, verb_of
from trouter.wire.codec import decode_all

SHADE = Number("shade", "the shade", logged=True)
OF_PART = Text("ofPart", "the part", required=True, max_bytes=8)
BRIGHT = Flag("bright", "the brightest")


def request(**properties: object) -> Request:
    made = Request()
    made.properties = {"operation": "get_colour", **properties}
    return made


@pytest.fixture
def declared() -> Iterator[None]:
    """Declare an operation, and take it away again."""

    @verb("GET-COLOUR", "GET-COLOR", answer="the colour of the router", level=OPERATE, takes=(SHADE, OF_PART, BRIGHT))
    async def _get_colour(_: Node, __: Request, shade: int | None, of_part: str, bright: bool) -> OperationResult:
        return answer([shade, of_part, bright])

    yield
    VERBS.pop()


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("name", ["GET-COLOUR", "GET-COLOR"])
def test_what_an_operation_needs_follows_from_its_declaration(name: str) -> None:
    assert level_for(name, None) == OPERATE
    with pytest.raises(Refusal, match="by a tenant"):
        check_operation(name, policy=True)
    assert "| GET-COLOUR, GET-COLOR | the colour of the router |\n" in table()


async def perform(asked: Request) -> object:
    """Perform the declared operation, which needs no node; return the body of the answer."""
    known = verb_of(asked.operation)
    assert known is not None
    assert known.perform is not None
    node: Any = None
    return decode_all((await known.perform(node, asked)).body)


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(
    ("properties", "body"),
    [
        ({"ofPart": "lid", "shade": "7", "bright": None}, [7, "lid", True]),
        ({"ofPart": "lid"}, [None, "lid", False]),
        ({"ofPart": "x" * 8, "other": b"bytes"}, [None, "x" * 8, False]),
    ],
)
async def test_the_function_of_an_operation_gets_its_arguments(properties: dict[str, Any], body: list[Any]) -> None:
    assert await perform(request(**properties)) == body


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({}, "GET-COLOUR needs the property 'ofPart', of 1 to 8 bytes"),
        ({"ofPart": "x" * 9}, "GET-COLOUR needs the property 'ofPart', of 1 to 8 bytes"),
        ({"ofPart": 7}, "the property 'ofPart' must be a string, not long"),
        ({"ofPart": "lid", "shade": "dark"}, "the property 'shade' must be an integer, not dark"),
    ],
)
async def test_a_wrong_argument_is_refused(properties: dict[str, Any], error: str) -> None:
    with pytest.raises(Refusal) as refused:
        await perform(request(**properties))
    assert (refused.value.status, refused.value.description) == (400, error)


@pytest.mark.usefixtures("declared")
def test_the_arguments_of_an_operation_are_in_the_manual() -> None:
    rows = arguments_table()
    assert "| `shade` | integer | GET-COLOUR | the shade |\n" in rows
    assert "| `ofPart` | string, required | GET-COLOUR | the part |\n" in rows
    assert "| `bright` | any | GET-COLOUR | the brightest |\n" in rows


def test_a_long_text_is_refused_where_none_is_needed() -> None:
    with pytest.raises(Refusal, match="the property 'note' is longer than 3 bytes"):
        Text("note", "", max_bytes=3).read(request(note="\u00e4\u00e4"))


def test_an_unknown_operation_needs_the_highest_level() -> None:
    assert verb_of("GET-COLOUR") is None
    assert level_for("GET-COLOUR", None) == LEVELS[-1]


def test_the_operations_that_change_the_router_are_done_in_turn_and_so_are_checks() -> None:
    assert {
        *("CREATE", "UPDATE", "DELETE", "RELOAD", "DRAIN", "CANCEL-DRAIN"),
        *("APPLY", "CONFIRM-CHANGE", "REVERT-CHANGE"),
    } == CHANGES
    assert {"CHECK"} == CHECKS


def test_no_two_operations_share_a_name() -> None:
    names = [name for each in VERBS for name in each.names]
    assert sorted(set(names)) == sorted(names)
    assert set(NODE_OPERATIONS) <= set(names)

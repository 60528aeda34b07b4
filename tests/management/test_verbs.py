"""An operation is declared once: what it answers, which level it needs, and whether tenants may call it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from manual.operations import table
from trouter.config.entities.group import LEVELS
from trouter.management.context import Node
from trouter.management.operations import CHANGES, NODE_OPERATIONS
from trouter.management.requests import Request
from trouter.management.responses import Answer, answer
from trouter.management.rights import level_for
from trouter.management.status import Refusal
from trouter.management.tenants import check_operation
from trouter.management.verbs import OPERATE, VERBS, verb, verb_of


@pytest.fixture
def declared() -> Iterator[None]:
    """Declare an operation, and take it away again."""

    @verb("GET-COLOUR", "GET-COLOR", answer="the colour of the router", level=OPERATE)
    async def _get_colour(_: Node, __: Request) -> Answer:
        return answer("red")

    yield
    VERBS.pop()


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("name", ["GET-COLOUR", "GET-COLOR"])
def test_what_an_operation_needs_follows_from_its_declaration(name: str) -> None:
    assert level_for(name, None) == OPERATE
    with pytest.raises(Refusal, match="by a tenant"):
        check_operation(name, policy=True)
    assert "| GET-COLOUR, GET-COLOR | the colour of the router |\n" in table()


def test_an_unknown_operation_needs_the_highest_level() -> None:
    assert verb_of("GET-COLOUR") is None
    assert level_for("GET-COLOUR", None) == LEVELS[-1]


def test_the_operations_that_change_the_router_are_done_in_turn() -> None:
    assert {"CREATE", "UPDATE", "DELETE", "RELOAD"} == CHANGES


def test_no_two_operations_share_a_name() -> None:
    names = [name for each in VERBS for name in each.names]
    assert sorted(set(names)) == sorted(names)
    assert set(NODE_OPERATIONS) <= set(names)

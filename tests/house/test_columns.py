"""A column is one row, from which the schema, the answers, `trouter stat`, the manual and the console have it.

A type of running objects is its columns, its declaration, and the provider that lists its objects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

from manual import columns as manual
from tests.core.test_columns import Room
from tests.house.sources import ROOT
from trouter.columns.column import Column, Form, Head
from trouter.columns.links import LINK
from trouter.columns.router import ROUTER
from trouter.columns.rows import Rows
from trouter.config.entities.base import DECLARED
from trouter.config.operational import operational
from trouter.config.schema import EntityType, Kind, all_attributes_of, integer, reported, shown, string
from trouter.config.types import TYPES, type_named, types_of
from trouter.management.kinds import query_columns
from trouter.management.providers.base import Listed
from trouter.management.schema_text import described
from trouter.tools.views.model import attributes_of, fields_of
from trouter.wire.types import Int, UInt

#: The row of a column that no router has.
NEW: Column[Any, Any] = Column(
    "colour", UInt, "The colour of the link.", lambda _, link: 7, unit="shades", extra=True, head=Head("col")
)
COLUMNS = (*LINK, NEW)


def link_type() -> EntityType:
    kind = type_named("router.link")
    assert kind is not None
    return dataclasses.replace(kind, columns=shown(COLUMNS))


def test_one_row_puts_a_column_into_the_schema() -> None:
    kind = link_type()
    assert described(kind, ())["attributes"]["colour"] == {"type": "integer", "description": "The colour of the link."}
    assert query_columns(kind)[-1] == "colour"


def test_one_row_puts_a_column_into_the_answers() -> None:
    room = Room()
    rows = Rows(COLUMNS, room.core)
    assert rows.row(room.outgoing)["colour"] == 7
    (value,) = rows.cells(room.outgoing, ["colour"])
    assert type(value) is UInt


def test_one_row_puts_a_column_into_stat_and_its_request() -> None:
    fields = fields_of(COLUMNS, ("id",))
    assert [each.head for each in fields][-1] == "col"
    assert fields[-1].show(fields[-1].value({"colour": 7})) == "7"
    assert "colour" in attributes_of(fields)


def test_one_row_puts_a_column_into_the_manual_and_the_console() -> None:
    assert "| `colour` + | integer | shades | `col` | The colour of the link. |\n" in manual.page([link_type()])
    assert '    | "colour"\n' in manual.console_types([link_type()])


class Lamp(NamedTuple):
    """A running object of a type that no router has."""

    bulbs: int
    room: str | None


LAMP_COLUMNS: Final[tuple[Column[None, Lamp], ...]] = (
    Column("bulbs", int, "Bulbs that burn.", lambda _, lamp: lamp.bulbs, unit="bulbs", graph=True, head=Head("lit")),
    Column("room", str, "Room of the lamp.", lambda _, lamp: lamp.room, optional=True),
)


@pytest.fixture
def lamp() -> Iterator[EntityType]:
    """Declare the type ``lamp`` for a test."""
    kind = operational("lamp", "A lamp that is lit.", extra=True, columns=LAMP_COLUMNS)
    yield kind
    DECLARED.remove(kind)


def test_a_declaration_puts_a_type_into_the_list_of_all_types(lamp: EntityType) -> None:
    assert types_of(DECLARED)[-1] is lamp
    assert types_of(DECLARED)[: len(TYPES)] == TYPES


def test_a_declaration_puts_a_type_into_the_schema(lamp: EntityType) -> None:
    schema = described(lamp, ())
    assert schema["operations"] == ["READ"]
    assert schema["attributes"]["bulbs"] == {"type": "integer", "description": "Bulbs that burn.", "graph": True}
    assert query_columns(lamp) == ("bulbs", "room", "name", "identity", "type")


def test_a_provider_of_one_line_answers_with_the_columns_of_a_type(lamp: EntityType) -> None:
    provider = Listed(lamp, Rows(LAMP_COLUMNS, None), lambda: [("hall", Lamp(3, "hall")), (2, Lamp(2**40, None))])
    assert provider.keys() == ["lamp/hall", "lamp/2"]
    cells = provider.cells("lamp/hall", query_columns(lamp))
    assert cells == [3, "hall", "lamp/hall", "lamp/hall", lamp.full_name]
    assert type(cells[0]) is Int
    assert provider.cells("lamp/2", ("bulbs", "room")) == [2**40, None]
    assert provider.by_name("lamp/2") == ("lamp/2",)


def test_the_columns_of_a_type_are_in_stat_the_manual_and_the_console(lamp: EntityType) -> None:
    assert [each.head for each in fields_of(LAMP_COLUMNS)] == ["lit"]
    assert "| `bulbs` + | integer | bulbs | `lit` | Bulbs that burn. |\n" in manual.page([lamp])
    assert '  "lamp":\n    | "bulbs"\n    | "room"\n' in manual.console_types([lamp])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The attributes of an entity that no router has."""

    max_books: int = integer("Books that it bears.", 7, head=Head("most", needs=False))
    label: str = string("What is written on it.", "")
    books: None = reported(Kind.INTEGER, "Books on it.", head=Head("books", Form.COMMAS, counter=True))


def test_the_head_of_a_configured_attribute_is_in_its_declaration() -> None:
    most, books = fields_of(all_attributes_of(Shelf))
    assert (most.head, most.needs, most.reads) == ("most", "", ("maxBooks",))
    assert (books.head, books.needs, books.counter, books.show(1234)) == ("books", "books", True, "1,234")
    assert attributes_of((most, books)) == ("maxBooks", "books")


def test_a_column_that_is_requested_by_its_other_name_has_its_own_head() -> None:
    (blocked,) = (each for each in fields_of(ROUTER) if each.head == "Links Blocked")
    assert blocked.reads == ("linksBlocked",)


def test_the_page_and_the_types_of_the_console_are_those_of_the_declarations() -> None:
    assert (ROOT / "docs" / "columns.md").read_text(encoding="utf-8") == manual.page()
    assert manual.TYPES_OF_CONSOLE.read_text(encoding="utf-8") == manual.console_types()

"""A column is one row, from which the schema, the answers, `trouter stat`, the manual and the console have it."""

from __future__ import annotations

import dataclasses
from typing import Any

from manual import columns as manual
from tests.core.test_columns import Room
from tests.house.sources import ROOT
from trouter.columns.column import Column, Head
from trouter.columns.links import LINK
from trouter.columns.rows import Rows
from trouter.config.schema import EntityType, shown
from trouter.config.types import type_named
from trouter.management.kinds import query_columns
from trouter.management.schema_text import described
from trouter.tools.views.model import attributes_of, fields_of
from trouter.wire.types import UInt

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
    assert rows.row(room.egress)["colour"] == 7
    (value,) = rows.cells(room.egress, ["colour"])
    assert type(value) is UInt


def test_one_row_puts_a_column_into_stat_and_its_request() -> None:
    fields = fields_of(COLUMNS, ("id",))
    assert [each.head for each in fields][-1] == "col"
    assert fields[-1].show(fields[-1].value({"colour": 7})) == "7"
    assert "colour" in attributes_of(fields)


def test_one_row_puts_a_column_into_the_manual_and_the_console() -> None:
    assert "| `colour` + | integer | shades | `col` | The colour of the link. |\n" in manual.page([link_type()])
    assert '    | "colour"\n' in manual.console_types([link_type()])


def test_the_page_and_the_types_of_the_console_are_those_of_the_declarations() -> None:
    assert (ROOT / "docs" / "columns.md").read_text(encoding="utf-8") == manual.page()
    assert manual.TYPES_OF_CONSOLE.read_text(encoding="utf-8") == manual.console_types()

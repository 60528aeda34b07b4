"""Reads rows: the columns of an object as values of their AMQP types.

Listings have tens of thousands of rows, so this module is compiled, as are those with the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from trouter.wire.types import Int, Long, UInt, ULong

from .column import Column

if TYPE_CHECKING:
    from cython import int as c_int
    from cython import longlong

_AS_IT_IS: Final[c_int] = 0
_UINT: Final[c_int] = 1
_ULONG: Final[c_int] = 2
_LONG: Final[c_int] = 3
_INT: Final = 4
_FORMS: Final[dict[type, int]] = {UInt: _UINT, ULong: _ULONG, Long: _LONG, Int: _INT}
_MAX_UINT: Final[longlong] = 0xFFFFFFFF
_NO_UINT: Final = UInt(0)
_NO_ULONG: Final = ULong(0)


class Cell:
    """How the value of one column is read and which type it gets."""

    __slots__ = ("read", "form")

    def __init__(self, column: Column[Any, Any]) -> None:
        self.read: Callable[[Any, Any], object] = column.read
        self.form: c_int = _FORMS.get(column.type, _AS_IT_IS)

    def value(self, owner: object, thing: object) -> object:
        """Return the value, a number cut to the range of its type."""
        value: Any = self.read(owner, thing)
        if self.form == _AS_IT_IS or value is None:
            return value
        if self.form == _ULONG:
            return ULong(value) if value > 0 else _NO_ULONG
        if self.form == _UINT:
            return UInt(min(int(value), _MAX_UINT)) if value > 0 else _NO_UINT
        return Long(value) if self.form == _LONG else Int(value)


class Rows:
    """The rows of one type, which ``owner`` has the objects of."""

    __slots__ = ("_owner", "_cells")

    def __init__(self, columns: Sequence[Column[Any, Any]], owner: object) -> None:
        self._owner = owner
        self._cells: dict[str, Cell] = {name: Cell(each) for each in columns for name in (each.name, each.twin) if name}

    def row(self, thing: object) -> dict[str, object]:
        """Return every column of an object, in the order of declaration."""
        found: dict[str, object] = {}
        for name, each in self._cells.items():
            cell: Cell = each
            found[name] = cell.value(self._owner, thing)
        return found

    def cells(self, thing: object, names: Sequence[str]) -> list[object]:
        """Return the columns ``names`` of an object, None for a name that is none of its columns."""
        found: list[object] = []
        for name in names:
            cell: Cell | None = self._cells.get(name)
            found.append(None if cell is None else cell.value(self._owner, thing))
        return found

    def value(self, thing: object, name: str) -> Any:
        """Return one column of an object; KeyError for an unknown one."""
        cell: Cell = self._cells[name]
        return cell.value(self._owner, thing)

"""Columns under construction: Arrow's offsets, values and validity, filled row by row.

A column without a value in any row of a batch is never allocated. Rows come in order, and skipped ones are null.
``undo`` removes the values of a row, because a message may prove to be invalid after half of it was read.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Annotated, TypeAlias

from trouter.wire import octets

if TYPE_CHECKING:
    from cython import Py_ssize_t, longlong
    from cython import int as c_int

    _Ints: TypeAlias = Annotated[array[int], "int[::1]"]
    _Longs: TypeAlias = Annotated[array[int], "long long[::1]"]
    _Octets: TypeAlias = Annotated[bytearray, "unsigned char[::1]"]


def skip(offsets: _Ints, filled: Py_ssize_t, row: Py_ssize_t) -> Py_ssize_t:
    """Make the rows from ``filled`` up to ``row`` empty; return the new number of filled rows."""
    end: c_int = offsets[filled]
    while filled < row:
        filled += 1
        offsets[filled] = end
    return filled


class Numbers:
    """Whole numbers of up to 64 bits: integers, times in microseconds, and booleans as 0 and 1."""

    __slots__ = ("_capacity", "used", "values", "valid")

    def __init__(self, capacity: Py_ssize_t) -> None:
        self._capacity = capacity
        self.used = False

    def put(self, row: Py_ssize_t, value: longlong) -> None:
        """Set ``row`` to ``value``."""
        if not self.used:
            self.used = True
            self.values: _Longs = array("q", bytes(8 * self._capacity))
            self.valid: _Octets = bytearray(self._capacity)
        self.values[row] = value
        self.valid[row] = 1

    def undo(self, row: Py_ssize_t) -> None:
        """Make ``row`` null."""
        if self.used:
            self.valid[row] = 0


class Texts:
    """Bytes of any length. ``data`` has room behind the values until ``finish``.

    Room for ``expected_bytes`` is made at once: growing step by step to megabytes costs more than the copies into it.
    """

    __slots__ = ("_capacity", "_end", "expected_bytes", "_filled", "used", "data", "offsets", "valid")

    def __init__(self, capacity: Py_ssize_t) -> None:
        self._capacity = capacity
        self._filled: Py_ssize_t = 0
        self._end: Py_ssize_t = 0
        self.expected_bytes: Py_ssize_t = 0
        self.used = False
        self.data = bytearray()

    def put(self, row: Py_ssize_t, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Set ``row`` to ``data[start:end]``, or append that to its value; the caller has checked the range."""
        if not self.used:
            self.used = True
            self.offsets: _Ints = array("i", bytes(4 * self._capacity + 4))
            self.valid: _Octets = bytearray(self._capacity)
        if self._filled < row:
            self._filled = skip(self.offsets, self._filled, row)
        after: Py_ssize_t = self._end + end - start
        if after > len(self.data):
            self._grow(after)
        octets.put_slice(self.data, self._end, data, start, end)
        self._end = after
        self.offsets[row + 1] = after
        self._filled = row + 1
        self.valid[row] = 1

    def _grow(self, wanted: Py_ssize_t) -> None:
        """Make room for ``wanted`` bytes, and for as many again as were needed so far."""
        octets.lengthen(self.data, max(wanted, 2 * self._end, self.expected_bytes))

    def undo(self, row: Py_ssize_t) -> None:
        """Make ``row`` null."""
        if self.used and self._filled > row:
            self._end = self.offsets[row]
            self._filled = row
            self.valid[row] = 0

    def finish(self, rows: Py_ssize_t) -> None:
        """Give every row up to ``rows`` its offset, and drop the room behind the values."""
        if self.used and self._filled < rows:
            self._filled = skip(self.offsets, self._filled, rows)
        del self.data[self._end :]


class Items:
    """Byte strings of any length, one after the other: the contents of lists and maps."""

    __slots__ = ("data", "offsets", "valid")

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets: array[int] = array("i", [0])
        self.valid = bytearray()

    def add(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Add one; the caller has checked the range."""
        octets.append_slice(self.data, data, start, end)
        self.offsets.append(len(self.data))
        self.valid.append(1)

    def add_null(self) -> None:
        """Add null."""
        self.offsets.append(len(self.data))
        self.valid.append(0)

    def cut(self, count: Py_ssize_t) -> None:
        """Keep the first ``count``."""
        del self.data[self.offsets[count] :]
        del self.offsets[count + 1 :]
        del self.valid[count:]


class Lists:
    """Lists of byte strings, or maps whose entries have a key, the name of a type and a value."""

    __slots__ = ("_capacity", "_filled", "used", "offsets", "valid", "keys", "kinds", "values")

    def __init__(self, capacity: Py_ssize_t) -> None:
        self._capacity = capacity
        self._filled: Py_ssize_t = 0
        self.used = False

    def begin(self, row: Py_ssize_t) -> None:
        """Begin the value of ``row``, to which the items added until ``end`` belong."""
        if not self.used:
            self.used = True
            self.offsets: _Ints = array("i", bytes(4 * self._capacity + 4))
            self.valid: _Octets = bytearray(self._capacity)
            self.keys = Items()
            self.kinds = Items()
            self.values = Items()
        if self._filled < row:
            self._filled = skip(self.offsets, self._filled, row)
        self.valid[row] = 1

    def end(self, row: Py_ssize_t) -> None:
        """End the value of ``row``."""
        self.offsets[row + 1] = len(self.values.valid)
        self._filled = row + 1

    def undo(self, row: Py_ssize_t) -> None:
        """Make ``row`` null."""
        if self.used and self.valid[row]:
            count = self.offsets[row]
            for items in (self.keys, self.kinds, self.values):
                if len(items.valid) > count:
                    items.cut(count)
            self._filled = row
            self.valid[row] = 0

    def finish(self, rows: Py_ssize_t) -> None:
        """Give every row up to ``rows`` its offset."""
        if self.used and self._filled < rows:
            self._filled = skip(self.offsets, self._filled, rows)

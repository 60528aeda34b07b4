"""Columns in the making: what Arrow calls offsets, values and validity, filled row by row.

A column that no row of a batch says anything in is never made. Rows come in order, and those that were passed over are
null. ``undo`` takes back what a row said, for a message may prove to be none when half of it was read.
"""

from __future__ import annotations

from array import array

from trouter.wire import octets


def skip(offsets: array[int], filled: int, row: int) -> int:
    """Let the rows from ``filled`` up to ``row`` be empty: where the next one begins, which is ``row``."""
    end = offsets[filled]
    while filled < row:
        filled += 1
        offsets[filled] = end
    return filled


class Numbers:
    """Whole numbers of up to 64 bits: integers, times in microseconds, and booleans as 0 and 1."""

    __slots__ = ("_capacity", "used", "valid", "values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.used = False

    def put(self, row: int, value: int) -> None:
        """Say ``value`` in ``row``."""
        if not self.used:
            self.used = True
            self.values = array("q", bytes(8 * self._capacity))
            self.valid = bytearray(self._capacity)
        self.values[row] = value
        self.valid[row] = 1

    def undo(self, row: int) -> None:
        """``row`` says nothing."""
        if self.used:
            self.valid[row] = 0


class Texts:
    """Octets of any length."""

    __slots__ = ("_capacity", "_filled", "data", "offsets", "used", "valid")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._filled = 0
        self.used = False
        self.data = bytearray()

    def put(self, row: int, data: bytes, start: int, end: int) -> None:
        """Say ``data[start:end]`` in ``row``, or add it to what the row says; the caller has checked the range."""
        if not self.used:
            self.used = True
            self.offsets = array("i", bytes(4 * self._capacity + 4))
            self.valid = bytearray(self._capacity)
        if self._filled < row:
            self._filled = skip(self.offsets, self._filled, row)
        octets.append_slice(self.data, data, start, end)
        self.offsets[row + 1] = len(self.data)
        self._filled = row + 1
        self.valid[row] = 1

    def undo(self, row: int) -> None:
        """``row`` says nothing."""
        if self.used and self._filled > row:
            del self.data[self.offsets[row] :]
            self._filled = row
            self.valid[row] = 0

    def finish(self, rows: int) -> None:
        """Give every row up to ``rows`` its offset."""
        if self.used and self._filled < rows:
            self._filled = skip(self.offsets, self._filled, rows)


class Items:
    """Octets of any length, one behind the other: what lists and maps are made of."""

    __slots__ = ("data", "offsets", "valid")

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets = array("i", [0])
        self.valid = bytearray()

    def add(self, data: bytes, start: int, end: int) -> None:
        """One more; the caller has checked the range."""
        octets.append_slice(self.data, data, start, end)
        self.offsets.append(len(self.data))
        self.valid.append(1)

    def add_null(self) -> None:
        """One more, which is null."""
        self.offsets.append(len(self.data))
        self.valid.append(0)

    def cut(self, count: int) -> None:
        """Keep the first ``count``."""
        del self.data[self.offsets[count] :]
        del self.offsets[count + 1 :]
        del self.valid[count:]


class Lists:
    """Lists of octets, or maps whose entries have a key, the name of a type and a value."""

    __slots__ = ("_capacity", "_filled", "keys", "kinds", "offsets", "used", "valid", "values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._filled = 0
        self.used = False

    def begin(self, row: int) -> None:
        """``row`` says something; what is added to keys, kinds and values until ``end`` belongs to it."""
        if not self.used:
            self.used = True
            self.offsets = array("i", bytes(4 * self._capacity + 4))
            self.valid = bytearray(self._capacity)
            self.keys = Items()
            self.kinds = Items()
            self.values = Items()
        if self._filled < row:
            self._filled = skip(self.offsets, self._filled, row)
        self.valid[row] = 1

    def end(self, row: int) -> None:
        """Nothing more belongs to ``row``, so far."""
        self.offsets[row + 1] = len(self.values.valid)
        self._filled = row + 1

    def undo(self, row: int) -> None:
        """``row`` says nothing."""
        if self.used and self.valid[row]:
            count = self.offsets[row]
            for items in (self.keys, self.kinds, self.values):
                if len(items.valid) > count:
                    items.cut(count)
            self._filled = row
            self.valid[row] = 0

    def finish(self, rows: int) -> None:
        """Give every row up to ``rows`` its offset."""
        if self.used and self._filled < rows:
            self._filled = skip(self.offsets, self._filled, rows)

"""Check that a message's sections are in the standard's order, each as often as allowed (AMQP 1.0 part 3, 3.2).

A check of the properties is worth nothing if other properties may follow the body, where some receivers read them too.
So every byte of a message is stepped over, section by section, before it is forwarded. Nothing is decoded, and only
the beginning of a section that was cut in two is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.codec import be32
from trouter.wire.constants import AMQP_SEQUENCE, DATA, FOOTER, HEADER

from .sections import SECTIONS_BY_SYMBOL, InvalidMessage

if TYPE_CHECKING:
    from cython import Py_ssize_t, p_uchar

_FIRST: Final[Py_ssize_t] = HEADER
_DATA: Final[Py_ssize_t] = DATA
_SEQUENCE: Final[Py_ssize_t] = AMQP_SEQUENCE
_FOOTER: Final[Py_ssize_t] = FOOTER
#: No head of a section or value is longer, so more octets without a whole head are no section.
_MAX_HEAD_BYTES: Final[Py_ssize_t] = 48
_ZERO_WIDE: Final[bytes] = bytes(7)


class SectionOrder:
    """The progress of the check in one message; one object serves many messages, one after the other."""

    __slots__ = ("_left", "_values", "_last", "_cut")

    def __init__(self) -> None:
        self.begin_message()

    def begin_message(self) -> None:
        """Start with a new message."""
        #: Octets of the current value still to come, and values of the current section after it.
        self._left: Py_ssize_t = 0
        self._values: Py_ssize_t = 0
        self._last: Py_ssize_t = _FIRST - 1
        self._cut = b""

    def check_message(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Check a complete message; InvalidMessage."""
        if not self._is_plain(data, start, end):
            self.begin_message()
            self.check_bytes(data, start, end, True)

    def check_bytes(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t, complete: bool) -> None:
        """Check the next bytes of the message, ``complete`` with the last; InvalidMessage."""
        if self._cut:
            data = self._cut + data[start:end]
            start = 0
            end = len(data)
            self._cut = b""
        offset: Py_ssize_t = start
        while True:
            if self._left > 0:
                if self._left > end - offset:
                    self._left -= end - offset
                    offset = end
                else:
                    offset += self._left
                    self._left = 0
            if offset >= end:
                break
            behind: Py_ssize_t = (
                self._read_value_head(data, offset, end)
                if self._values > 0
                else self._read_descriptor(data, offset, end)
            )
            if behind < 0:
                if end - offset > _MAX_HEAD_BYTES:
                    raise InvalidMessage("this is no section", offset)
                self._cut = data[offset:end]
                break
            offset = behind
        if complete and (self._left > 0 or self._values > 0 or self._cut):
            raise InvalidMessage("message is cut short", end)

    def _is_plain(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> bool:
        """Return whether a whole message has each section at most once, in order, in the usual encoding.

        Nearly all messages do, and need no state; the others are checked closely.
        """
        octets: p_uchar = data  # compiled, a pointer: ``end`` is the only bound that is checked
        if start < 0 or end > len(data):
            return False
        offset: Py_ssize_t = start
        last: Py_ssize_t = _FIRST - 1
        while end - offset >= 5 and octets[offset] == 0 and octets[offset + 1] == 0x53:
            code: Py_ssize_t = octets[offset + 2]
            if code <= last or code > _FOOTER or (last >= _DATA and code != _FOOTER):
                return False
            last = code
            kind: Py_ssize_t = octets[offset + 3] >> 4
            if kind == 0xA or kind == 0xC:
                offset += 5 + octets[offset + 4]
            elif (kind == 0xB or kind == 0xD) and end - offset >= 8:
                offset += 8 + be32(data, offset + 4)
            else:
                return False
        return offset == end

    def _read_descriptor(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Read a section's descriptor; return the offset behind it, -1 if it is incomplete; InvalidMessage."""
        if data[offset] != 0:
            raise InvalidMessage("this is no section", offset)
        if end - offset < 3:
            return -1
        constructor: Py_ssize_t = data[offset + 1]
        if constructor == 0x53:
            code: Py_ssize_t = data[offset + 2]
            behind: Py_ssize_t = offset + 3
        elif constructor == 0x80:
            if end - offset < 10:
                return -1
            if data[offset + 2 : offset + 9] != _ZERO_WIDE:
                raise InvalidMessage("this is no section", offset)
            code = data[offset + 9]
            behind = offset + 10
        elif constructor in (0xA3, 0xB3):
            name: Py_ssize_t = offset + (3 if constructor == 0xA3 else 6)
            if name > end:
                return -1
            behind = name + int.from_bytes(data[offset + 2 : name], "big")
            if behind - name > _MAX_HEAD_BYTES - 6:
                raise InvalidMessage("this is no section", offset)
            if behind > end:
                return -1
            code = SECTIONS_BY_SYMBOL.get(data[name:behind], 0)
        else:
            raise InvalidMessage("this is no section", offset)
        self._check_order(code, offset)
        self._values = 1
        return behind

    def _check_order(self, code: Py_ssize_t, offset: Py_ssize_t) -> None:
        """Check that section ``code`` may follow the last one; InvalidMessage."""
        last: Py_ssize_t = self._last
        again: bool = code == last and (code == _DATA or code == _SEQUENCE)
        if not again and (code <= last or code > _FOOTER or (last >= _DATA and code != _FOOTER)):
            raise InvalidMessage(f"section {code:#04x} is out of order", offset)
        self._last = code

    def _read_value_head(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Read the head of a value and set what of it follows; return the offset behind, -1 if it is incomplete."""
        constructor: Py_ssize_t = data[offset]
        if constructor == 0:  # described: a descriptor and a value in its place
            self._values += 1
            return offset + 1
        kind: Py_ssize_t = constructor >> 4
        if kind < 4:
            raise InvalidMessage(f"format code {constructor:#04x}", offset)
        if kind < 10:
            self._left = 0 if kind == 4 else 1 << (kind - 5)
            self._values -= 1
            return offset + 1
        if kind & 1 == 0:
            if end - offset < 2:
                return -1
            self._left = data[offset + 1]
            offset += 2
        else:
            if end - offset < 5:
                return -1
            self._left = be32(data, offset + 1)
            offset += 5
        self._values -= 1
        return offset

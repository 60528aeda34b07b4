"""Readers of the frames of the data path without an object each: transfer, disposition, flow (AMQP 1.0 part 2,
2.7.4-2.7.6).

A connection reuses one reader for all frames of a kind; absent fields read as -1 (numbers, flags) or None. Other
performatives are rare and go through ``performatives``. Every encoding that the standard allows (sizes, descriptors,
booleans) is accepted.

A delivery state is forwarded as it came, so the router validates it on arrival: the next receiver would blame the
router for a malformed one. An outcome without details is recognised by its four bytes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from . import octets
from .codec import be32, decode, skip
from .constants import MAX_NODES, RECEIVED
from .errors import DecodeError
from .performatives import decode_state, mend_state

if TYPE_CHECKING:
    from cython import Py_ssize_t, p_uchar
    from cython import int as c_int

_ABSENT: Final[c_int] = -1
TRANSFER: Final = 0x14
FLOW: Final = 0x13
DISPOSITION: Final = 0x15
ACCEPTED: Final = 0x24
RELEASED: Final = 0x26

_NAMES: Final = {FLOW: "flow", TRANSFER: "transfer", DISPOSITION: "disposition"}
_SYMBOLIC: Final = {
    "amqp:open:list": 0x10,
    "amqp:begin:list": 0x11,
    "amqp:attach:list": 0x12,
    "amqp:flow:list": FLOW,
    "amqp:transfer:list": TRANSFER,
    "amqp:disposition:list": DISPOSITION,
    "amqp:detach:list": 0x16,
    "amqp:end:list": 0x17,
    "amqp:close:list": 0x18,
}


def read_descriptor(data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> c_int:
    """Return the descriptor code of the described value at ``start``, -1 for an unknown one; DecodeError."""
    raw: p_uchar = data  # compiled, a pointer: read only what was checked to be there
    if end - start >= 3 and raw[start] == 0 and raw[start + 1] == 0x53:
        return raw[start + 2]
    if end - start < 2 or data[start] != 0:
        raise DecodeError("a frame body is not a described value", start)
    descriptor = decode(data, start + 1, end)[0]
    if isinstance(descriptor, str):
        return _SYMBOLIC.get(descriptor, _ABSENT)
    if isinstance(descriptor, int) and 0 <= descriptor < 256:
        return descriptor
    return _ABSENT


class FieldReader:
    """A cursor over the fields of one described list; the base of the three readers."""

    __slots__ = ("_data", "_offset", "_end", "_list_end", "_count", "_index", "_name")

    def __init__(self) -> None:
        self._data = b""
        self._offset: Py_ssize_t = 0
        self._end: Py_ssize_t = 0
        self._list_end: Py_ssize_t = 0
        self._count: Py_ssize_t = 0
        self._index: Py_ssize_t = 0
        self._name = ""

    def _open_list(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Move to the first field of the list behind the descriptor at ``start``; DecodeError."""
        self._data = data
        self._end = end
        self._index = 0
        offset: Py_ssize_t = start + 3 if data[start + 1] == 0x53 else skip(data, start + 1, end)
        if offset >= end:
            raise DecodeError(f"{self._name}: the field list is missing", start)
        code: c_int = data[offset]
        if code == 0xC0 and end - offset >= 3:
            size: Py_ssize_t = data[offset + 1]
            self._count = data[offset + 2]
            self._offset = offset + 3
            self._list_end = offset + 2 + size
        elif code == 0xD0 and end - offset >= 9:
            size = be32(data, offset + 1)
            self._count = be32(data, offset + 5)
            self._offset = offset + 9
            self._list_end = offset + 5 + size
        elif code == 0x45:
            self._count = 0
            self._offset = self._list_end = offset + 1
        else:
            raise DecodeError(f"{self._name}: the fields are not a list", offset)
        if self._list_end > end or self._list_end < self._offset:
            raise DecodeError(f"{self._name}: the field list claims more bytes than the frame holds", offset)

    def _next_code(self) -> c_int:
        """Return the format code of the next field, the cursor behind it; -1 past the last field or for a null."""
        if self._index >= self._count:
            return _ABSENT
        self._index += 1
        offset: Py_ssize_t = self._offset
        if offset >= self._list_end:
            raise DecodeError(f"{self._name}: field {self._index} is missing from the list", offset)
        self._offset = offset + 1
        code: c_int = self._data[offset]
        return _ABSENT if code == 0x40 else code

    def _pass_bytes(self, count: Py_ssize_t) -> Py_ssize_t:
        """Return the offset of the next ``count`` bytes and move the cursor past them; DecodeError."""
        offset: Py_ssize_t = self._offset
        if count > self._list_end - offset:
            raise DecodeError(f"{self._name}: field {self._index} is cut short", offset)
        self._offset = offset + count
        return offset

    def _wrong_type(self, expected: str) -> DecodeError:
        return DecodeError(f"{self._name}: field {self._index} is not {expected}", self._offset)

    def _read_uint(self) -> Py_ssize_t:
        code: c_int = self._next_code()
        if code == _ABSENT:
            return _ABSENT
        if code == 0x52:
            return self._data[self._pass_bytes(1)]
        if code == 0x43:
            return 0
        if code == 0x70:
            return be32(self._data, self._pass_bytes(4))
        raise self._wrong_type("a uint")

    def _read_flag(self) -> c_int:
        code: c_int = self._next_code()
        if code == _ABSENT:
            return _ABSENT
        if code == 0x42:
            return 0
        if code == 0x41:
            return 1
        if code == 0x56:
            octet: c_int = self._data[self._pass_bytes(1)]
            if octet < 2:
                return octet
        raise self._wrong_type("a boolean")

    def _read_ubyte(self) -> c_int:
        code: c_int = self._next_code()
        if code == _ABSENT:
            return _ABSENT
        if code == 0x50:
            return self._data[self._pass_bytes(1)]
        raise self._wrong_type("a ubyte")

    def _pass_value(self) -> Py_ssize_t:
        """Return the offset of the next field (of any type), the cursor behind it; -1 for a null."""
        if self._next_code() == _ABSENT:
            return _ABSENT
        start: Py_ssize_t = self._offset - 1
        self._offset = skip(self._data, start, self._list_end)
        return start

    def _close_list(self) -> None:
        """Check that only nulls follow the known fields and that they fill the list; DecodeError."""
        while self._index < self._count:
            if self._next_code() != _ABSENT:
                raise DecodeError(f"{self._name}: too many fields", self._offset)
        if self._offset != self._list_end:
            raise DecodeError(f"{self._name}: {self._list_end - self._offset} bytes after the last field", self._offset)


class Undecodable(IntEnum):
    """The treatment of a delivery state that cannot be decoded.

    One that is AMQP, but of a wrong form, loses its wrong fields in any case but KEPT: what a peer says about its
    reasons is worth no connection.
    """

    #: The frame is refused: DecodeError.
    REFUSED = 0
    #: The outcome loses its details; without a known outcome the frame is refused.
    CUT = 1
    #: It is kept as it came, for later code that decodes it.
    KEPT = 2


class StateReader(FieldReader):
    """A field list with a delivery state: its code, and its bytes as they came."""

    __slots__ = ("state", "state_code", "undecodable", "_seen")

    def __init__(self) -> None:
        super().__init__()
        self.state: bytes | None = None
        self.state_code: c_int = 0
        #: An ``Undecodable``.
        self.undecodable: c_int = 0
        #: The last state found valid: a receiver that rejects many messages gives the same reason for all.
        self._seen = b""

    def _read_state(self) -> None:
        """Set ``state`` and ``state_code``: 0 for none, -1 for a descriptor that is no small number; DecodeError."""
        data: bytes = self._data
        offset: Py_ssize_t = self._offset
        if (  # an outcome without details in the short encoding, as in nearly every disposition
            self._index < self._count
            and self._list_end - offset >= 4
            and data[offset] == 0
            and data[offset + 1] == 0x53
            and data[offset + 3] == 0x45
        ):
            self.state = SHORT_STATES.get(data[offset + 2])
            if self.state is not None:
                self._index += 1
                self._offset = offset + 4
                self.state_code = data[offset + 2]
                return
        start: Py_ssize_t = self._pass_value()
        if start == _ABSENT:
            self.state = None
            self.state_code = 0
            return
        if data[start] != 0:
            raise self._wrong_type("a delivery state")
        self.state = data[start : self._offset]
        descriptor = decode(data, start + 1, self._offset)[0]
        if isinstance(descriptor, str):
            self.state_code = _SYMBOLIC_STATES.get(descriptor, _ABSENT)
        elif isinstance(descriptor, int) and 0 < descriptor < 0x7FFFFFFF:
            self.state_code = descriptor
        else:
            self.state_code = _ABSENT
        if self.undecodable != _KEPT and self.state != self._seen:
            self._check_state()

    def _check_state(self) -> None:
        """Check that the state can be decoded; mend it, or cut it if ``undecodable`` allows that; DecodeError."""
        state: bytes = self.state or b""
        try:
            decode_state(state, 0, len(state), MAX_NODES)
        except DecodeError as error:
            self._mend_state(state, error)
            return
        if len(state) <= _MAX_SEEN:
            self._seen = state

    def _mend_state(self, state: bytes, error: DecodeError) -> None:
        """Replace a state that cannot be decoded because of ``error`` by what is valid of it; DecodeError."""
        refused: bool = False
        try:
            self.state = mend_state(state, 0, len(state), MAX_NODES)
        except DecodeError:
            self.state = SHORT_STATES.get(self.state_code)
            refused = self.undecodable != _CUT
        if self.state is None and self.state_code == RECEIVED:
            self.state_code = 0  # no outcome, and nothing of it is left
        elif self.state is None:
            refused = True
        if refused:
            raise DecodeError(f"{self._name}: delivery state: {error}", self._offset) from None


_KEPT: Final[c_int] = int(Undecodable.KEPT)
_CUT: Final[c_int] = int(Undecodable.CUT)
_MAX_SEEN: Final = 1024
#: The outcomes without details; a received state has mandatory fields.
SHORT_STATES: Final = {code: bytes((0, 0x53, code, 0x45)) for code in range(0x24, 0x28)}
_SYMBOLIC_STATES: Final = {
    "amqp:received:list": 0x23,
    "amqp:accepted:list": 0x24,
    "amqp:rejected:list": 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
    "amqp:declared:list": 0x33,
    "amqp:transactional-state:list": 0x34,
}


class TransferReader(StateReader):
    """One transfer frame (2.7.5); its payload is ``data[payload:end]`` of the parsed bytes."""

    __slots__ = (
        "handle",
        "delivery_id",
        "_tag_start",
        "_tag_end",
        "message_format",
        "settled",
        "more",
        "rcv_settle_mode",
        "resume",
        "aborted",
        "batchable",
        "payload",
    )

    def __init__(self) -> None:
        super().__init__()
        self._name = "transfer"
        self.handle: Py_ssize_t = 0
        self.delivery_id: Py_ssize_t = _ABSENT
        self._tag_start: Py_ssize_t = _ABSENT
        self._tag_end: Py_ssize_t = _ABSENT
        self.message_format: Py_ssize_t = _ABSENT
        self.settled: c_int = _ABSENT
        self.more = False
        self.rcv_settle_mode: c_int = _ABSENT
        self.resume = False
        self.aborted = False
        self.batchable = False
        self.payload: Py_ssize_t = 0

    def has_tag(self) -> bool:
        """Return whether the frame carries a delivery-tag."""
        return self._tag_start >= 0

    def has_long_tag(self) -> bool:
        """Return whether the delivery-tag has more than the 32 bytes that the standard allows (part 2, 2.8.7)."""
        return self._tag_start >= 0 and self._tag_end - self._tag_start > 32

    def copy_delivery_tag(self) -> bytes | None:
        """Return the delivery-tag of the frame parsed last; None if absent."""
        return self._data[self._tag_start : self._tag_end] if self._tag_start >= 0 else None

    def _read_tag(self) -> None:
        code: c_int = self._next_code()
        if code == _ABSENT:
            self._tag_start = _ABSENT
            return
        if code == 0xA0:
            size: Py_ssize_t = self._data[self._pass_bytes(1)]
        elif code == 0xB0:
            size = be32(self._data, self._pass_bytes(4))
        else:
            raise self._wrong_type("a binary")
        self._tag_start = self._pass_bytes(size)
        self._tag_end = self._tag_start + size

    def parse(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Set every attribute from the transfer whose descriptor is at ``start``; DecodeError."""
        if self._parse_usual(data, start, end):
            return
        self._open_list(data, start, end)
        self.handle = self._read_uint()
        if self.handle == _ABSENT:
            raise DecodeError("transfer: handle is missing", start)
        self.delivery_id = self._read_uint()
        self._read_tag()
        self.message_format = self._read_uint()
        self.settled = self._read_flag()
        self.more = self._read_flag() == 1
        if self._index == self._count:
            # the common short form: nothing after `more`
            self.state = None
            self.state_code = 0
            self.rcv_settle_mode = _ABSENT
            self.resume = self.aborted = self.batchable = False
        else:
            self.rcv_settle_mode = self._read_ubyte()
            self._read_state()
            self.resume = self._read_flag() == 1
            self.aborted = self._read_flag() == 1
            self.batchable = self._read_flag() == 1
        self._close_list()
        self.payload = self._list_end

    def _parse_usual(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> bool:
        """Read the usual short list of handle to `more`; return False for any other, for the general way."""
        raw: p_uchar = data  # compiled, a pointer: read only what was checked to be there
        if end - start < 13 or raw[start + 1] != 0x53 or raw[start + 3] != 0xC0 or raw[start + 5] != 6:
            return False
        list_end: Py_ssize_t = start + 5 + raw[start + 4]
        if list_end > end or list_end - start > 60:
            return False
        offset: Py_ssize_t = start + 6
        code: c_int = raw[offset]
        if code == 0x43:
            self.handle = 0
            offset += 1
        elif code == 0x52:
            self.handle = raw[offset + 1]
            offset += 2
        elif code == 0x70 and list_end - offset > 5:
            self.handle = octets.get_uint32(data, offset + 1)
            offset += 5
        else:
            return False
        code = raw[offset]
        if code == 0x52:
            self.delivery_id = raw[offset + 1]
            offset += 2
        elif code == 0x70 and list_end - offset > 5:
            self.delivery_id = octets.get_uint32(data, offset + 1)
            offset += 5
        elif code == 0x43:
            self.delivery_id = 0
            offset += 1
        else:
            return False
        if list_end - offset < 2 or raw[offset] != 0xA0 or raw[offset + 1] > 32:
            return False
        self._tag_start = offset + 2
        offset = self._tag_end = offset + 2 + raw[offset + 1]
        if list_end - offset < 3:
            return False
        code = raw[offset]
        if code != 0x43 and code != 0x40:
            return False
        self.message_format = 0 if code == 0x43 else _ABSENT
        code = raw[offset + 1]
        if code < 0x40 or code > 0x42:
            return False
        self.settled = _ABSENT if code == 0x40 else code == 0x41
        code = raw[offset + 2]
        if code < 0x40 or code > 0x42 or offset + 3 != list_end:
            return False
        self.more = code == 0x41
        self._data = data
        self.state = None
        self.state_code = 0
        self.rcv_settle_mode = _ABSENT
        self.resume = self.aborted = self.batchable = False
        self.payload = list_end
        return True


class DispositionReader(StateReader):
    """One disposition frame (2.7.6)."""

    __slots__ = ("role", "first", "last", "settled")

    def __init__(self) -> None:
        super().__init__()
        self._name = "disposition"
        self.role: c_int = 0
        self.first: Py_ssize_t = 0
        self.last: Py_ssize_t = 0
        self.settled = False

    def parse(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Set every attribute (``last`` equals ``first`` if absent); DecodeError."""
        self._open_list(data, start, end)
        self.role = self._read_flag()
        self.first = self._read_uint()
        if self.role == _ABSENT or self.first == _ABSENT:
            raise DecodeError("disposition: role or first is missing", start)
        self.last = self._read_uint()
        if self.last == _ABSENT:
            self.last = self.first
        self.settled = self._read_flag() == 1
        self._read_state()
        self._read_flag()
        self._close_list()


class FlowReader(FieldReader):
    """One flow frame (2.7.4)."""

    __slots__ = (
        "next_incoming_id",
        "incoming_window",
        "next_outgoing_id",
        "outgoing_window",
        "handle",
        "delivery_count",
        "link_credit",
        "available",
        "drain",
        "echo",
    )

    def __init__(self) -> None:
        super().__init__()
        self._name = "flow"
        self.next_incoming_id: Py_ssize_t = _ABSENT
        self.incoming_window: Py_ssize_t = 0
        self.next_outgoing_id: Py_ssize_t = 0
        self.outgoing_window: Py_ssize_t = 0
        self.handle: Py_ssize_t = _ABSENT
        self.delivery_count: Py_ssize_t = _ABSENT
        self.link_credit: Py_ssize_t = _ABSENT
        self.available: Py_ssize_t = _ABSENT
        self.drain = False
        self.echo = False

    def parse(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Set every attribute; DecodeError, also if a mandatory window field is missing."""
        self._open_list(data, start, end)
        self.next_incoming_id = self._read_uint()
        self.incoming_window = self._read_uint()
        self.next_outgoing_id = self._read_uint()
        self.outgoing_window = self._read_uint()
        if self.incoming_window == _ABSENT or self.next_outgoing_id == _ABSENT or self.outgoing_window == _ABSENT:
            raise DecodeError("flow: incoming-window, next-outgoing-id or outgoing-window is missing", start)
        self.handle = self._read_uint()
        self.delivery_count = self._read_uint()
        self.link_credit = self._read_uint()
        self.available = self._read_uint()
        self.drain = self._read_flag() == 1
        self.echo = self._read_flag() == 1
        self._pass_value()
        self._close_list()


class FrequentFrames:
    """The readers of the three frequent frames. The connections of a thread may share them: each reads frame by frame.

    A reader refers to the bytes that it parsed last, so a set for each connection would keep one read of every peer.
    """

    __slots__ = ("transfer", "disposition", "flow")

    def __init__(self) -> None:
        self.transfer = TransferReader()
        self.disposition = DispositionReader()
        self.flow = FlowReader()

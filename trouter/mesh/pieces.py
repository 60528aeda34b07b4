"""Updates of many addresses are read and stored in pieces, so that other connections do not wait for all of it.

A piece is what a generator does until it yields. Until the work on an update is over, whatever else is about the
addresses of its router waits behind it, so that all is done in the order in which it came; what is about other routers
takes turns with it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from trouter.wire import codec
from trouter.wire.encodings import ENCODING_OF
from trouter.wire.errors import DecodeError

from .messages import MAX_ID_CHARACTERS, MAX_VALUES, Fields, Message, Newer, find_body, parse, read_fields

#: The addresses of a piece: the router needs some 2 ms for so many new ones.
PIECE: Final = 100
#: Bytes of a message that is read in one piece, and of any message that is no update of addresses.
SMALL_BYTES: Final = 64 << 10
MAX_OTHER_BYTES: Final = 128 << 10
#: Bytes of the messages that may wait.
MAX_WAITING_BYTES: Final = 64 << 20
_UPDATE: Final = "MAU"
_TEXTS: Final = frozenset({"exist", "add", "del"})
_NUMBERS: Final = "hints"
#: Values of an entry of a body that is no list of addresses.
_MAX_ENTRY_VALUES: Final = 64

T = TypeVar("T")
Key = TypeVar("Key")
#: Yields between two pieces, and returns a result.
Pieces = Generator[None, None, T]


class _Work(NamedTuple):
    pieces: Pieces[object]
    size_bytes: int
    origin: str


class PieceQueue:
    """Work that is done in pieces: that about one ``subject`` in the order in which it came, all else in turns.

    The subjects belong to lanes, one for each neighbour, which has brought them. The lanes take turns, and so do the
    subjects of each: a neighbour with much to say, or with many routers behind it, delays only what comes from there.
    """

    def __init__(self) -> None:
        #: The lane and the subject whose turn is next come first; of a subject what came first.
        self._lanes: dict[Hashable, dict[Hashable, deque[_Work]]] = {}
        #: The lane of each subject with work.
        self._lane_of: dict[Hashable, Hashable] = {}
        #: The bytes of the messages that wait, by lane.
        self._bytes: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        """Return about how many subjects there is work on; 0 if all is over."""
        return len(self._lane_of)

    def has_room(self, size_bytes: int, lane: Hashable) -> bool:
        """Return whether a message of so many bytes may wait, too: a lane has half of what the others leave."""
        own = self._bytes[lane]
        others = self._bytes.total() - own
        return own + size_bytes <= (MAX_WAITING_BYTES - others) // 2

    def origins(self) -> Iterator[str]:
        """Yield the routers whose messages are not worked off."""
        works = (work for lane in self._lanes.values() for queue in lane.values() for work in queue)
        return (work.origin for work in works if work.origin)

    def begin(
        self, pieces: Pieces[T], subject: Hashable, lane: Hashable = "", size_bytes: int = 0, origin: str = ""
    ) -> T | None:
        """Do the first piece, unless other work on the subject waits; return the result if it is over, None if not.

        ``lane`` is the neighbour that the work comes from. ``size_bytes`` and ``origin`` are those of the message that
        the work is about, if it is about one.
        """
        present = self._lane_of.get(subject)
        if present is None:
            try:
                next(pieces)
            except StopIteration as over:
                return over.value  # type: ignore[no-any-return]  # the result of a generator has no type there
            present = self._lane_of[subject] = lane
        self._lanes.setdefault(present, {}).setdefault(subject, deque()).append(_Work(pieces, size_bytes, origin))
        self._bytes[present] += size_bytes
        return None

    def do_piece(self) -> object:
        """Do the next piece; return the result of the work if it is over with that, else None."""
        lane, subjects = next(iter(self._lanes.items()))
        subject, queue = next(iter(subjects.items()))
        work = queue[0]
        result, is_over = None, False
        try:
            next(work.pieces)
        except StopIteration as over:
            result, is_over = over.value, True
        del self._lanes[lane], subjects[subject]  # they come last from now on
        if is_over:
            queue.popleft()
            self._bytes[lane] -= work.size_bytes
        if queue:
            subjects[subject] = queue
        else:
            del self._lane_of[subject]
        if subjects:
            self._lanes[lane] = subjects
        else:
            del self._bytes[lane]
        return result


def parts_of(items: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Yield the items in parts, each of a piece."""
    return (items[start : start + PIECE] for start in range(0, len(items), PIECE))


def parse_in_pieces(data: bytes) -> Pieces[Message | Newer]:
    """Return the parsed message, as ``messages.parse``, a large one after several pieces."""
    if len(data) <= SMALL_BYTES:
        return parse(data)
    opcode, sections = find_body(data)
    if opcode == _UPDATE:
        body = yield from _read_body(data, sections.content)
        return read_fields(opcode, _ReadFields(body))
    if len(data) > MAX_OTHER_BYTES:
        raise DecodeError(f"{len(data)} bytes; {opcode[:32]!r} may have {MAX_OTHER_BYTES}")
    return parse(data)


class _ReadFields(Fields):
    """The entries of a body whose lists were checked as they were read."""

    def read_texts(self, key: str) -> tuple[str, ...]:
        value = self._body.get(key)
        if not isinstance(value, list):
            raise DecodeError(f"{key} is not a list of texts")
        return tuple(value)

    def read_hints(self, count: int) -> tuple[int, ...]:
        value = self._body.get(_NUMBERS)
        return tuple(value) if isinstance(value, list) and len(value) == count else ()


def _read_body(data: bytes, start: int) -> Pieces[dict[Any, Any]]:
    """Return the map of an update that begins at ``start``, its lists read in pieces; DecodeError."""
    count, offset, end = _read_head(data, start, len(data), "map")
    body: dict[Any, Any] = {}
    values = 0
    for _ in range(count // 2):
        key, offset = codec.decode(data, offset, end, 1)
        if not isinstance(key, str):
            raise DecodeError("a key is not a text", offset)
        if (key in _TEXTS or key == _NUMBERS) and _type_at(data, offset, end) == "list":
            items, offset = yield from _read_list(data, offset, end, MAX_VALUES - values, is_hints=key == _NUMBERS)
            values += len(items)
            body[key] = items
        else:
            body[key], offset = codec.decode(data, offset, end, _MAX_ENTRY_VALUES)
    return body


def _read_list(data: bytes, start: int, end: int, most: int, *, is_hints: bool) -> Pieces[tuple[list[Any], int]]:
    """Return a list of texts, or of hints, and the offset behind it; DecodeError.

    Hints of which one is no long are none.
    """
    count, offset, end = _read_head(data, start, end, "list")
    if count > most:
        raise DecodeError(f"more than {MAX_VALUES} values", start)
    items: list[Any] = []
    are_hints = True
    for number in range(count):
        item, offset = codec.decode(data, offset, end, 1)
        if is_hints:
            are_hints = are_hints and _is_hint(item)
        elif not isinstance(item, str) or not 0 < len(item) <= MAX_ID_CHARACTERS:
            raise DecodeError(f"a list of texts has another value, or one of more than {MAX_ID_CHARACTERS} characters")
        items.append(int(item) if is_hints and are_hints else str(item))
        if number % PIECE == PIECE - 1:
            yield
    if offset != end:
        raise DecodeError("a list is longer than its items", offset)
    return items if are_hints else [], offset


def _type_at(data: bytes, offset: int, end: int) -> str:
    """Return the type of the value at ``offset``, empty if there is none."""
    encoding = ENCODING_OF.get(data[offset]) if offset < end else None
    return "" if encoding is None else encoding.type


def _read_head(data: bytes, start: int, end: int, kind: str) -> tuple[int, int, int]:
    """Return the count of values in a list or map, and the offsets of the first one and behind all; DecodeError."""
    if _type_at(data, start, end) != kind:
        raise DecodeError(f"no {kind}", start)
    width = ENCODING_OF[data[start]].width
    first = start + 1 + 2 * width
    if first > end:
        raise DecodeError("value is cut short", start)
    size = int.from_bytes(data[start + 1 : start + 1 + width])
    behind = start + 1 + width + size
    if size < width or behind > end:
        raise DecodeError(f"{size} bytes claimed, {end - start - 1 - width} left", start)
    return int.from_bytes(data[start + 1 + width : first]), first, behind


def _is_hint(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and item.bit_length() <= 63

"""Messages as their sections (AMQP 1.0 part 3, 3.2), to bytes and back.

``Message`` is a whole message. ``SectionReader`` reads the sections one by one, for what needs only some of them, and
``section`` writes one; they raise only DecodeError and EncodeError. The scan of the data path is in ``sections.py``,
``order.py`` and ``stamp.py``, and messages that come and go in pieces are in ``pieces.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Final

from trouter.wire import codec, composite
from trouter.wire.composite import Composite
from trouter.wire.constants import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MAX_SYMBOL_BYTES,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SECTION_RANKS,
    SECTION_SYMBOLS,
)
from trouter.wire.errors import DecodeError, EncodeError
from trouter.wire.performatives import (
    Anything,
    Bool,
    MaybeBinary,
    MaybeString,
    MaybeSymbol,
    MaybeUInt,
    UByteField,
    UIntField,
)
from trouter.wire.types import Described, Symbol, ULong

#: Sections that a message may have more than once.
_REPEATABLE: Final = frozenset((DATA, AMQP_SEQUENCE))
#: The most values in the descriptor of a section.
_MAX_DESCRIPTOR_VALUES: Final = 16


class SectionReader:
    """A cursor over the sections of ``data``, which are not trusted.

    ``next_section`` moves it, ``read_value`` reads a content. The sections must be in the order of the standard. A
    section that is not read is skipped by its size.
    """

    __slots__ = ("_behind", "_content", "_data", "_end", "_max_values", "code", "start")

    def __init__(self, data: bytes, end: int = -1, max_values: int = codec.MANY) -> None:
        """Begin before the first section; a content may consist of at most ``max_values`` values."""
        self._data = data
        self._end = len(data) if end < 0 else min(end, len(data))
        self._max_values = max_values
        #: Descriptor code and first byte of the current section; code 0 before the first one and behind the last.
        self.code = 0
        self.start = 0
        self._content = 0
        self._behind = 0  # -1 if the current section is not read

    def next_section(self) -> int:
        """Move to the next section and return its code, 0 behind the last one; DecodeError."""
        data = self._data
        if self._behind < 0:
            self._behind = codec.skip(data, self._content, self._end)
        start = self.start = self._behind
        if start >= self._end:
            self.code = 0
            return 0
        if self._end - start > 3 and data[start] == 0 and data[start + 1] == 0x53:
            code = data[start + 2]
            self._content = start + 3
        else:
            code, self._content = _read_descriptor(data, start, self._end)
        last = self.code
        rank = SECTION_RANKS.get(code)
        if rank is None:
            raise DecodeError("not a section of a message", start)
        if last and rank <= SECTION_RANKS[last] and not (code == last and code in _REPEATABLE):
            raise DecodeError(f"section {code:#x} behind section {last:#x}", start)
        self.code = code
        self._behind = -1
        return code

    @property
    def content(self) -> int:
        """The offset of the content of the current section."""
        return self._content

    def read_value(self) -> Any:
        """Return the content of the current section, once; DecodeError."""
        reader = codec.Reader(self._data, self._content, self._end, self._max_values)
        value = reader.read_value(1)  # nested in the section
        self._behind = reader.offset
        return value

    def find_end(self) -> int:
        """Return the offset behind the current section; DecodeError if it is cut short."""
        if self._behind < 0:
            self._behind = codec.skip(self._data, self._content, self._end)
        return self._behind


def _read_descriptor(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the code of a section, 0 for another descriptor, and the start of its content; DecodeError."""
    if data[start]:
        raise DecodeError("not a section of a message", start)
    descriptor, content = codec.decode(data, start + 1, end, _MAX_DESCRIPTOR_VALUES)
    if type(descriptor) is Symbol:
        return SECTION_SYMBOLS.get(descriptor, 0), content
    return int(descriptor) if type(descriptor) is ULong else 0, content


def section(code: int, content: object) -> bytes:
    """Return the section with descriptor ``code`` and a content in its smallest encoding; EncodeError."""
    return codec.encode(Described(ULong(code), content))


def encoded_section(code: int, content: bytes) -> bytes:
    """Return the section with descriptor ``code`` and a content that is encoded already."""
    return b"\0\x53" + bytes((code,)) + content


def data_section(size: int) -> bytes:
    """Return the head of a data section of ``size`` bytes; EncodeError if they are too many."""
    if size > 0xFFFFFFFF:
        raise EncodeError(f"a data section holds at most {0xFFFFFFFF} bytes, not {size}")
    if size > 0xFF:
        return b"\0\x53\x75\xb0" + size.to_bytes(4, "big")
    return bytes((0, 0x53, DATA, 0xA0, size))


@dataclass(slots=True)
class Header(Composite, descriptor=HEADER):
    """The transport options of a message (3.2.1); ``ttl`` in milliseconds."""

    durable: Bool = False
    priority: UByteField = 4
    ttl: MaybeUInt = None
    first_acquirer: Bool = False
    delivery_count: UIntField = 0


@dataclass(slots=True)
class Properties(Composite, descriptor=PROPERTIES):
    """The immutable properties of a message (3.2.4); times in milliseconds since 1970-01-01T00:00Z."""

    message_id: Anything = None
    user_id: MaybeBinary = None
    to: Anything = None
    subject: MaybeString = None
    reply_to: Anything = None
    correlation_id: Anything = None
    content_type: MaybeSymbol = None
    content_encoding: MaybeSymbol = None
    absolute_expiry_time: Annotated[int | None, "timestamp"] = None
    creation_time: Annotated[int | None, "timestamp"] = None
    group_id: MaybeString = None
    group_sequence: MaybeUInt = None
    reply_to_group_id: MaybeString = None


class BodyKind(Enum):
    """The kind of a body's sections."""

    #: ``body`` is the content of every data section, joined.
    DATA = DATA
    #: ``body`` is a list with one list for each sequence section.
    SEQUENCE = AMQP_SEQUENCE
    #: ``body`` is any one AMQP value, None included.
    VALUE = AMQP_VALUE
    #: There is no body, which the standard does not allow; ``body`` is None.
    ABSENT = 0


@dataclass(slots=True)
class Message:
    """A message. Bytes make a DATA body and other values a VALUE body, unless ``kind`` says otherwise.

    Keys of annotations and footer given as str are sent as symbols, ids given as int as ulongs.
    """

    body: Any = None
    properties: Properties = field(default_factory=Properties)
    application_properties: dict[Any, Any] = field(default_factory=dict)
    header: Header = field(default_factory=Header)
    delivery_annotations: dict[Any, Any] = field(default_factory=dict)
    message_annotations: dict[Any, Any] = field(default_factory=dict)
    footer: dict[Any, Any] = field(default_factory=dict)
    kind: BodyKind | None = None

    def __post_init__(self) -> None:
        if self.kind is None:
            self.kind = BodyKind.DATA if isinstance(self.body, bytes | bytearray | memoryview) else BodyKind.VALUE

    def encode(self) -> bytes:
        """Return the encoded message; EncodeError if AMQP has no encoding for a value."""
        encoded = b"".join((*self._head_sections(), *self._body_sections(), *_annotations(FOOTER, self.footer)))
        return encoded or _BARE_HEADER  # a message has at least one section

    def encode_head(self) -> bytes:
        """Return the encoded sections before the body; EncodeError."""
        return b"".join(self._head_sections())

    def _head_sections(self) -> list[bytes]:
        parts = []
        if self.header != _NO_HEADER:
            parts.append(composite.encode(self.header))
        parts += _annotations(DELIVERY_ANNOTATIONS, self.delivery_annotations)
        parts += _annotations(MESSAGE_ANNOTATIONS, self.message_annotations)
        if self.properties != _NO_PROPERTIES:
            parts.append(composite.encode(_with_ulong_ids(self.properties)))
        if self.application_properties:
            parts.append(section(APPLICATION_PROPERTIES, self.application_properties))
        return parts

    def _body_sections(self) -> list[bytes]:
        if self.kind is BodyKind.DATA:
            if not isinstance(self.body, bytes | bytearray | memoryview):
                raise EncodeError(f"a data body is bytes, not {type(self.body).__name__}")
            return [data_section(len(self.body)), bytes(self.body)]
        if self.kind is BodyKind.SEQUENCE:
            if not isinstance(self.body, list | tuple) or not all(isinstance(each, list | tuple) for each in self.body):
                raise EncodeError("a sequence body is a list of lists")
            return [section(AMQP_SEQUENCE, each) for each in self.body]
        return [section(AMQP_VALUE, self.body)] if self.kind is BodyKind.VALUE else []

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Return the message that ``data`` encodes; DecodeError."""
        if not data:
            raise DecodeError("an empty message: it has no section at all", 0)
        found: dict[int, Any] = {}
        reader = SectionReader(data)
        while code := reader.next_section():
            content = _check_content(code, reader.read_value(), reader.start)
            if code in _REPEATABLE:
                found.setdefault(code, []).append(content)
            else:
                found[code] = content
        return cls._from_sections(found)

    @classmethod
    def _from_sections(cls, found: dict[int, Any]) -> Message:
        kind = next((kind for kind in BodyKind if kind.value in found), BodyKind.ABSENT)
        body: Any = found.get(kind.value)
        return cls(
            body=b"".join(body) if kind is BodyKind.DATA else body,
            kind=kind,
            properties=found.get(PROPERTIES) or Properties(),
            application_properties=found.get(APPLICATION_PROPERTIES, {}),
            header=found.get(HEADER) or Header(),
            delivery_annotations=found.get(DELIVERY_ANNOTATIONS, {}),
            message_annotations=found.get(MESSAGE_ANNOTATIONS, {}),
            footer=found.get(FOOTER, {}),
        )


def _annotations(code: int, entries: dict[Any, Any]) -> list[bytes]:
    if not entries:
        return []
    return [section(code, {Symbol(key) if type(key) is str else key: value for key, value in entries.items()})]


def _with_ulong_ids(properties: Properties) -> Properties:
    ids: dict[str, Any] = {
        name: ULong(value)
        for name in ("message_id", "correlation_id")
        if type(value := getattr(properties, name)) is int and value >= 0  # else it is not valid as a ulong
    }
    return replace(properties, **ids) if ids else properties


def _check_content(code: int, value: Any, start: int) -> Any:
    """Return the content of a section as a field of a message; DecodeError if it has another type."""
    if code == HEADER:
        return composite.from_values(Header, value)
    if code == PROPERTIES:
        return composite.from_values(Properties, value)
    wanted = _CONTENT.get(code)
    if wanted is not None and not isinstance(value, wanted):
        raise DecodeError(f"section {code:#x} holds {type(value).__name__}", start)
    if code in _ANNOTATIONS and not all(_may_be_symbol(key) for key in value):
        raise DecodeError(f"a key of section {code:#x} cannot be a symbol", start)  # as 3.2.10 demands
    return value


def _may_be_symbol(key: object) -> bool:
    return not isinstance(key, str) or (key.isascii() and len(key) <= MAX_SYMBOL_BYTES)


_NO_HEADER: Final = Header()
_BARE_HEADER: Final = b"\0\x53\x70\x45"
_NO_PROPERTIES: Final = Properties()
_CONTENT: Final[dict[int, type]] = {
    DELIVERY_ANNOTATIONS: dict,
    MESSAGE_ANNOTATIONS: dict,
    APPLICATION_PROPERTIES: dict,
    DATA: bytes,
    AMQP_SEQUENCE: list,
    FOOTER: dict,
}
#: Maps with symbols for keys; strings that could be symbols are accepted for them.
_ANNOTATIONS: Final = frozenset({DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, FOOTER})

composite.register(Header)
composite.register(Properties)

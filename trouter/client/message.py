"""Messages as their sections (AMQP 1.0 part 3, 3.2), to bytes and back.

An empty section is not sent, and an absent one reads as empty: the standard makes no difference. The three kinds of
body are distinct. ``decode`` raises only DecodeError.
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
        encoded = b"".join((*self._head(), *self._body(), *_annotations(FOOTER, self.footer)))
        return encoded or _BARE_HEADER  # a message has at least one section

    def encode_head(self) -> bytes:
        """Return the encoded sections before the body; EncodeError."""
        return b"".join(self._head())

    def _head(self) -> list[bytes]:
        parts = []
        if self.header != _NO_HEADER:
            parts.append(composite.encode(self.header))
        parts += _annotations(DELIVERY_ANNOTATIONS, self.delivery_annotations)
        parts += _annotations(MESSAGE_ANNOTATIONS, self.message_annotations)
        if self.properties != _NO_PROPERTIES:
            parts.append(composite.encode(_with_ulong_ids(self.properties)))
        if self.application_properties:
            parts.append(_section(APPLICATION_PROPERTIES, self.application_properties))
        return parts

    def _body(self) -> list[bytes]:
        if self.kind is BodyKind.DATA:
            if not isinstance(self.body, bytes | bytearray | memoryview):
                raise EncodeError(f"a data body is bytes, not {type(self.body).__name__}")
            return [data_section(len(self.body)), bytes(self.body)]
        if self.kind is BodyKind.SEQUENCE:
            if not isinstance(self.body, list | tuple) or not all(isinstance(each, list | tuple) for each in self.body):
                raise EncodeError("a sequence body is a list of lists")
            return [_section(AMQP_SEQUENCE, each) for each in self.body]
        return [_section(AMQP_VALUE, self.body)] if self.kind is BodyKind.VALUE else []

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Return the message that ``data`` encodes; DecodeError."""
        if not data:
            raise DecodeError("an empty message: it has no section at all", 0)
        found: dict[int, Any] = {}
        offset = 0
        last = 0
        while offset < len(data):
            start = offset
            value, offset = codec.decode(data, start, len(data))
            code = section_code(value, start)
            if _RANK[code] < _RANK.get(last, 0) or (_RANK[code] == _RANK.get(last) and not code == last in _REPEATABLE):
                raise DecodeError(f"section {code:#x} behind section {last:#x}", start)
            last = code
            content = _content(value, code, start)
            if code in _REPEATABLE:
                found.setdefault(code, []).append(content)
            else:
                found[code] = content
        return cls._of(found)

    @classmethod
    def _of(cls, found: dict[int, Any]) -> Message:
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


@dataclass(slots=True, frozen=True)
class Encoded:
    """An encoded message, sent unchanged. ``message_format`` 0 is AMQP's own (part 2, 2.8.11)."""

    data: bytes
    message_format: int = 0


def data_section(size: int) -> bytes:
    """Return the head of a data section of ``size`` bytes; EncodeError if they are too many."""
    if size > 0xFFFFFFFF:
        raise EncodeError(f"a data section holds at most {0xFFFFFFFF} bytes, not {size}")
    if size > 0xFF:
        return b"\0\x53\x75\xb0" + size.to_bytes(4, "big")
    return bytes((0, 0x53, DATA, 0xA0, size))


def _section(code: int, content: object) -> bytes:
    return codec.encode(Described(ULong(code), content))


def _annotations(code: int, entries: dict[Any, Any]) -> list[bytes]:
    if not entries:
        return []
    return [_section(code, {Symbol(key) if type(key) is str else key: value for key, value in entries.items()})]


def _with_ulong_ids(properties: Properties) -> Properties:
    ids: dict[str, Any] = {
        name: ULong(value)
        for name in ("message_id", "correlation_id")
        if type(value := getattr(properties, name)) is int and value >= 0  # else it is not valid as a ulong
    }
    return replace(properties, **ids) if ids else properties


def section_code(value: object, start: int = 0) -> int:
    """Return the descriptor code of a section; DecodeError if ``value`` is no section."""
    if isinstance(value, Described):
        descriptor = value.descriptor
        if type(descriptor) is Symbol:
            code = _SYMBOLS.get(descriptor)
        else:
            code = int(descriptor) if type(descriptor) is ULong and descriptor in _RANK else None
        if code is not None:
            return code
    raise DecodeError("not a section of a message", start)


def _content(value: Described, code: int, start: int) -> Any:
    if code in (HEADER, PROPERTIES):
        return composite.from_described(value)
    wanted = _CONTENT.get(code)
    if wanted is not None and not isinstance(value.value, wanted):
        raise DecodeError(f"section {code:#x} holds {type(value.value).__name__}", start)
    content: Any = value.value
    if code in _ANNOTATIONS and not all(_may_be_symbol(key) for key in content):
        raise DecodeError(f"a key of section {code:#x} cannot be a symbol", start)  # as 3.2.10 demands
    return content


def _may_be_symbol(key: object) -> bool:
    return not isinstance(key, str) or (key.isascii() and len(key) <= MAX_SYMBOL_BYTES)


_NO_HEADER: Final = Header()
_BARE_HEADER: Final = b"\0\x53\x70\x45"
_NO_PROPERTIES: Final = Properties()
_SYMBOLS: Final[dict[str, int]] = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": AMQP_SEQUENCE,
    "amqp:amqp-value:*": AMQP_VALUE,
    "amqp:footer:map": FOOTER,
}
#: The order of sections; those of a body exclude one another.
_RANK: Final = {
    HEADER: 1,
    DELIVERY_ANNOTATIONS: 2,
    MESSAGE_ANNOTATIONS: 3,
    PROPERTIES: 4,
    APPLICATION_PROPERTIES: 5,
    DATA: 6,
    AMQP_SEQUENCE: 6,
    AMQP_VALUE: 6,
    FOOTER: 7,
}
_REPEATABLE: Final = frozenset((DATA, AMQP_SEQUENCE))
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

"""The six messages between routers (inter-router.md 3): values, and their exact bytes.

The sender may be hostile: ``parse`` raises DecodeError for anything but these six.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from trouter.wire.annotations import compose_annotations
from trouter.wire.codec import encode
from trouter.wire.constants import (
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader, encoded_section
from trouter.wire.parts import NULL, encode_int, encode_long, encode_string, encode_symbol, wide_list, wide_map

#: The protocol's version, which every message carries as ``pv``.
VERSION: Final = 1
#: The only area; routers are ``0/ID`` in annotations.
AREA: Final = "0"
#: The longest router id (DISPATCH-2307) and address, in characters.
MAX_ID_CHARACTERS: Final = 4096
#: The most bytes and values of a message, enough for half a million addresses.
MAX_MESSAGE_BYTES: Final = 16 << 20
MAX_VALUES: Final = 1_100_000
MAX_COST: Final = 2**31 - 1
MAX_SEQUENCE: Final = 2**63 - 1

HELLO_TO: Final = "amqp:/_local/qdhello"
ALL_ROUTERS_TO: Final = "amqp:/_topo/0/all/qdrouter"
ALL_ADDRESSES_TO: Final = "_topo/0/all/qdrouter.ma"

#: The sections that a message may have.
_SECTIONS: Final = frozenset(
    (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, AMQP_VALUE)
)
_LIST0: Final = encode([])
_NOT_DURABLE: Final = encoded_section(HEADER, wide_list([encode(False)]))
_NO_PEERS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Hello:
    """``id`` is up, started at ``instance`` (seconds since 1970), and has heard the routers ``seen``."""

    id: str
    instance: int = 0
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouterAdvertisement:
    """The current sequences of ``id``: of its link state and of its mobile addresses."""

    id: str
    instance: int = 0
    link_sequence: int = 0
    mobile_sequence: int = 0


@dataclass(frozen=True, slots=True)
class LinkStateRequest:
    """``id`` requests the addressee's link state."""

    id: str


@dataclass(frozen=True, slots=True)
class LinkStateUpdate:
    """The link state of ``id``: its neighbours and the cost of the way to each."""

    id: str
    instance: int = 0
    link_sequence: int = 0
    peers: Mapping[str, int] = field(default_factory=lambda: _NO_PEERS)


@dataclass(frozen=True, slots=True)
class MobileAddressRequest:
    """``id`` has the addressee's addresses up to ``have_sequence`` and requests the current ones."""

    id: str
    have_sequence: int = 0


@dataclass(frozen=True, slots=True)
class MobileAddressUpdate:
    """Addresses of ``id``: all of them (``exist``), or those ``added`` and ``deleted`` since the last sequence.

    Keys are address keys such as ``M0news``. ``hints`` are treatments, one for each of ``exist`` or ``added``.
    """

    id: str
    sequence: int = 0
    exist: tuple[str, ...] | None = None
    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    hints: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Newer:
    """A message of ``id`` in a later ``version`` of the protocol, which cannot be read further."""

    id: str
    version: int


Message = Hello | RouterAdvertisement | LinkStateRequest | LinkStateUpdate | MobileAddressRequest | MobileAddressUpdate


def router_address(router_id: str) -> str:
    """Return the address at which ``router_id`` receives messages about links."""
    return f"amqp:/_topo/0/{router_id}/qdrouter"


def mobile_address(router_id: str) -> str:
    """Return the address at which ``router_id`` receives messages about addresses."""
    return f"amqp:/_topo/0/{router_id}/qdrouter.ma"


def compose(message: Message, to: str) -> bytes:
    """Return the bytes of ``message`` to the address ``to``, all sections."""
    ingress = f"{AREA}/{message.id}"
    annotations = compose_annotations(b"", 0, 0, False, None, ingress, (ingress,))
    mobile = isinstance(message, MobileAddressRequest | MobileAddressUpdate)
    opcode, body = _SYMBOLS.encode_body(message) if mobile else _STRINGS.encode_body(message)
    nulls = (2, 0) if mobile else (2, 3)  # the fields before and behind `to`
    properties = [NULL] * nulls[0] + [_string(to)] + [NULL] * nulls[1]
    key = _symbol("opcode") if mobile else _string("opcode")
    return b"".join(
        (
            _NOT_DURABLE,
            annotations,
            encoded_section(PROPERTIES, wide_list(properties)),
            encoded_section(APPLICATION_PROPERTIES, wide_map([key, _string(opcode)])),
            encoded_section(AMQP_VALUE, wide_map(body)),
        )
    )


def parse(data: bytes) -> Message | Newer:
    """Return the parsed message; DecodeError describes the fault."""
    opcode, sections = find_body(data)
    body = sections.read_value()
    if not isinstance(body, dict):
        raise DecodeError("the body is not a map", sections.start)
    return read_fields(opcode, Fields(body))


# --- writing


def _string(text: str) -> bytes:
    return encode_string(text.encode())


def _symbol(text: str) -> bytes:
    return encode_symbol(text.encode())


class _Writer:
    """One of the two encodings of bodies: of their keys and numbers (inter-router.md 3.1)."""

    def __init__(self, key: Any, number: Any) -> None:
        self._key = key
        self._number = number

    def encode_body(self, message: Message) -> tuple[str, list[bytes]]:
        """Return the opcode, and the encoded keys and values of the body."""
        pairs: list[tuple[str, bytes]] = [
            ("id", _string(message.id)),
            ("pv", self._number(VERSION)),
            ("area", _string(AREA)),
        ]
        opcode = _OPCODES[type(message)]
        match message:
            case Hello(instance=instance, seen=seen):
                pairs.append(("instance", self._number(instance)))
                pairs.append(("seen", wide_list(map(_string, seen)) if seen else _LIST0))
            case RouterAdvertisement(instance=instance, link_sequence=link, mobile_sequence=mobile):
                pairs.append(("instance", self._number(instance)))
                pairs.append(("ls_seq", self._number(link)))
                pairs.append(("mobile_seq", self._number(mobile)))
            case LinkStateUpdate(instance=instance, link_sequence=link):
                pairs.append(("instance", self._number(instance)))
                pairs.append(("ls_seq", self._number(link)))
                pairs.append(("ls", self._link_state(message)))
            case MobileAddressRequest(have_sequence=have):
                pairs.append(("have_seq", self._number(have)))
            case MobileAddressUpdate(sequence=sequence):
                pairs.append(("mobile_seq", self._number(sequence)))
                pairs += self._addresses(message)
        return opcode, [encoded for key, value in pairs for encoded in (self._key(key), value)]

    def _link_state(self, message: LinkStateUpdate) -> bytes:
        peers = [encoded for peer, cost in message.peers.items() for encoded in (_string(peer), encode_int(cost))]
        pairs = (
            ("id", _string(message.id)),
            ("area", _string(AREA)),
            ("ls_seq", self._number(message.link_sequence)),
            ("peers", wide_map(peers)),
        )
        return wide_map(encoded for key, value in pairs for encoded in (self._key(key), value))

    def _addresses(self, message: MobileAddressUpdate) -> list[tuple[str, bytes]]:
        hints = ("hints", wide_list(map(encode_int, message.hints)))
        if message.exist is not None:
            return [("exist", wide_list(map(_string, message.exist))), hints]
        return [
            hints,
            ("add", wide_list(map(_string, message.added))),
            ("del", wide_list(map(_string, message.deleted))),
        ]


_STRINGS: Final = _Writer(_string, encode_int)
_SYMBOLS: Final = _Writer(_symbol, encode_long)
_OPCODES: Final[dict[type, str]] = {
    Hello: "HELLO",
    RouterAdvertisement: "RA",
    LinkStateRequest: "LSR",
    LinkStateUpdate: "LSU",
    MobileAddressRequest: "MAR",
    MobileAddressUpdate: "MAU",
}


# --- reading


def find_body(data: bytes) -> tuple[str, SectionReader]:
    """Return the opcode, and the sections of ``data`` with the body, unread, as the current one; DecodeError."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise DecodeError(f"{len(data)} bytes; at most {MAX_MESSAGE_BYTES} are accepted")
    reader = SectionReader(data, max_values=MAX_VALUES)
    opcode: object = None
    while code := reader.next_section():
        if code not in _SECTIONS:
            raise DecodeError("a section that router messages do not have", reader.start)
        if code == APPLICATION_PROPERTIES:
            value = reader.read_value()
            opcode = value.get("opcode") if isinstance(value, dict) else None
        elif code == AMQP_VALUE:
            if not isinstance(opcode, str):
                raise DecodeError("there is no opcode", reader.start)
            return opcode, reader
    raise DecodeError("there is no body", reader.start)


def read_fields(opcode: str, fields: Fields) -> Message | Newer:
    """Return the message with this opcode and body; DecodeError."""
    version = fields.read_number("pv")
    if version > VERSION:
        return Newer(fields.read_text("id"), version)
    reader = _READERS.get(opcode)
    if reader is None:
        raise DecodeError(f"unknown opcode of a router message: {opcode[:32]!r}")
    return reader(fields)


class Fields:
    """The entries of a body; each method raises DecodeError for another type."""

    def __init__(self, body: Mapping[Any, Any]) -> None:
        self._body = body

    def read_text(self, key: str) -> str:
        """Return a mandatory text of 1 to ``MAX_ID_CHARACTERS``."""
        value = self._body.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARACTERS:
            raise DecodeError(f"{key} is not a text of 1 to {MAX_ID_CHARACTERS} characters")
        return str(value)

    def read_number(self, key: str, high: int = MAX_SEQUENCE) -> int:
        """Return an integer from 0 to ``high``; 0 if absent."""
        return _whole(key, self._body.get(key, 0), high)

    def read_texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts under ``key``."""
        value = self._body.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise DecodeError(f"{key} is not a list of texts")
        if any(len(item) > MAX_ID_CHARACTERS for item in value):
            raise DecodeError(f"{key} has a text of more than {MAX_ID_CHARACTERS} characters")
        return tuple(map(str, value))

    def has_key(self, key: str) -> bool:
        return self._body.get(key) is not None

    def read_map(self, key: str) -> Fields:
        """Return the map under ``key``."""
        value = self._body.get(key)
        if not isinstance(value, dict):
            raise DecodeError(f"{key} is not a map")
        return Fields(value)

    def read_costs(self, key: str) -> Mapping[str, int]:
        """Return a map of texts to costs, at least 1 each."""
        costs: dict[str, int] = {}
        for peer, cost in self.read_map(key)._body.items():
            if not isinstance(peer, str) or not 0 < len(peer) <= MAX_ID_CHARACTERS:
                raise DecodeError(f"a key of {key} is not a text of 1 to {MAX_ID_CHARACTERS} characters")
            costs[str(peer)] = max(_whole(f"the cost in {key}", cost, MAX_COST), 1)
        return MappingProxyType(costs)

    def read_hints(self, count: int) -> tuple[int, ...]:
        """Return the hints for ``count`` addresses; () if their number differs, or they are no list of longs."""
        value = self._body.get("hints")
        if not isinstance(value, list) or len(value) != count:
            return ()
        if any(isinstance(item, bool) or not isinstance(item, int) or item.bit_length() > 63 for item in value):
            return ()
        return tuple(map(int, value))


def _whole(key: str, value: object, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise DecodeError(f"{key} is not a whole number from 0 to {high}")
    return int(value)


def _hello(fields: Fields) -> Hello:
    seen = fields.read_texts("seen")
    return Hello(fields.read_text("id"), fields.read_number("instance"), seen)


def _advertisement(fields: Fields) -> RouterAdvertisement:
    return RouterAdvertisement(
        fields.read_text("id"),
        fields.read_number("instance"),
        fields.read_number("ls_seq"),
        fields.read_number("mobile_seq"),
    )


def _link_state_request(fields: Fields) -> LinkStateRequest:
    return LinkStateRequest(fields.read_text("id"))


def _link_state_update(fields: Fields) -> LinkStateUpdate:
    state = fields.read_map("ls")
    return LinkStateUpdate(
        fields.read_text("id"), fields.read_number("instance"), state.read_number("ls_seq"), state.read_costs("peers")
    )


def _mobile_address_request(fields: Fields) -> MobileAddressRequest:
    return MobileAddressRequest(fields.read_text("id"), fields.read_number("have_seq"))


def _mobile_address_update(fields: Fields) -> MobileAddressUpdate:
    whole, change = fields.has_key("exist"), fields.has_key("add") and fields.has_key("del")
    if whole == change or (whole and (fields.has_key("add") or fields.has_key("del"))):
        raise DecodeError("an update needs either exist, or both add and del")
    exist = fields.read_texts("exist") if whole else None
    added = () if whole else fields.read_texts("add")
    return MobileAddressUpdate(
        fields.read_text("id"),
        fields.read_number("mobile_seq"),
        exist,
        added,
        () if whole else fields.read_texts("del"),
        fields.read_hints(len(added if exist is None else exist)),
    )


_READERS: Final[dict[str, Callable[[Fields], Message]]] = {
    "HELLO": _hello,
    "RA": _advertisement,
    "LSR": _link_state_request,
    "LSU": _link_state_update,
    "MAR": _mobile_address_request,
    "MAU": _mobile_address_update,
}

"""The composite types of the router: performatives (AMQP 1.0 part 2, 2.7), termini and states (part 3), coordinator and
transactions (part 4), SASL frames (part 5).

``composite.py`` encodes and decodes by these declarations. Numbers arrive as the classes of ``types.py`` and may be
given as plain ints, symbols as plain str. A field that is ``multiple`` is a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias, cast

from trouter.wire import codec, composite
from trouter.wire.composite import Composite
from trouter.wire.constants import MAX_ATTACH_NODES, MAX_NODES
from trouter.wire.errors import DecodeError
from trouter.wire.types import Described

Bool: TypeAlias = Annotated[bool, "boolean"]
MaybeBool: TypeAlias = Annotated[bool | None, "boolean"]
UByteField: TypeAlias = Annotated[int, "ubyte"]
UShortField: TypeAlias = Annotated[int, "ushort"]
UIntField: TypeAlias = Annotated[int, "uint"]
ULongField: TypeAlias = Annotated[int, "ulong"]
MaybeUInt: TypeAlias = Annotated[int | None, "uint"]
MaybeULong: TypeAlias = Annotated[int | None, "ulong"]
Binary: TypeAlias = Annotated[bytes, "binary"]
MaybeBinary: TypeAlias = Annotated[bytes | None, "binary"]
String: TypeAlias = Annotated[str, "string"]
MaybeString: TypeAlias = Annotated[str | None, "string"]
SymbolField: TypeAlias = Annotated[str, "symbol"]
MaybeSymbol: TypeAlias = Annotated[str | None, "symbol"]
Symbols: TypeAlias = Annotated[tuple[str, ...], "symbol*"]
Map: TypeAlias = Annotated[dict[Any, Any] | None, "map"]
Anything: TypeAlias = Annotated[object, "*"]
MaybeState: TypeAlias = Annotated["State | Described | None", "state"]
MaybeError: TypeAlias = Annotated["Error | None", "error"]
MaybeSource: TypeAlias = Annotated["Source | Described | None", "source"]
MaybeTarget: TypeAlias = Annotated["Target | Coordinator | Described | None", "target"]


class Performative(Composite):
    """The body of a frame; a subclass for each kind."""

    __slots__ = ()


class State(Composite):
    """The state of a delivery (part 3, 3.4; part 4, 4.5.5 and 4.5.6); immutable, so it can be shared."""

    __slots__ = ()


# ---- part 2: transport


@dataclass(slots=True)
class Error(Composite, descriptor=0x1D):
    """The reason why a link, session, connection or delivery ended (2.8.14)."""

    condition: SymbolField
    description: MaybeString = None
    info: Map = None


@dataclass(slots=True)
class Open(Performative, descriptor=0x10):
    """2.7.1."""

    container_id: String
    hostname: MaybeString = None
    max_frame_size: UIntField = 0xFFFFFFFF
    channel_max: UShortField = 0xFFFF
    idle_time_out: MaybeUInt = None
    outgoing_locales: Symbols = ()
    incoming_locales: Symbols = ()
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Map = None


@dataclass(slots=True, kw_only=True)
class Begin(Performative, descriptor=0x11):
    """2.7.2."""

    remote_channel: Annotated[int | None, "ushort"] = None
    next_outgoing_id: UIntField
    incoming_window: UIntField
    outgoing_window: UIntField
    handle_max: UIntField = 0xFFFFFFFF
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Map = None


@dataclass(slots=True)
class Attach(Performative, descriptor=0x12):
    """2.7.3; ``role`` is that of the frame's sender: False sender, True receiver."""

    name: String
    handle: UIntField
    role: Bool
    snd_settle_mode: UByteField = 2
    rcv_settle_mode: UByteField = 0
    source: MaybeSource = None
    target: MaybeTarget = None
    unsettled: Map = None
    incomplete_unsettled: Bool = False
    initial_delivery_count: MaybeUInt = None
    max_message_size: MaybeULong = None
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Map = None


@dataclass(slots=True, kw_only=True)
class Flow(Performative, descriptor=0x13):
    """2.7.4."""

    next_incoming_id: MaybeUInt = None
    incoming_window: UIntField
    next_outgoing_id: UIntField
    outgoing_window: UIntField
    handle: MaybeUInt = None
    delivery_count: MaybeUInt = None
    link_credit: MaybeUInt = None
    available: MaybeUInt = None
    drain: Bool = False
    echo: Bool = False
    properties: Map = None


@dataclass(slots=True)
class Transfer(Performative, descriptor=0x14):
    """2.7.5; the payload follows the performative in the frame."""

    handle: UIntField
    delivery_id: MaybeUInt = None
    delivery_tag: MaybeBinary = None
    message_format: MaybeUInt = None
    settled: MaybeBool = None
    more: Bool = False
    rcv_settle_mode: Annotated[int | None, "ubyte"] = None
    state: MaybeState = None
    resume: Bool = False
    aborted: Bool = False
    batchable: Bool = False


@dataclass(slots=True)
class Disposition(Performative, descriptor=0x15):
    """2.7.6; ``role`` is that of the link end that sends the frame: False sender, True receiver."""

    role: Bool
    first: UIntField
    last: MaybeUInt = None
    settled: Bool = False
    state: MaybeState = None
    batchable: Bool = False


@dataclass(slots=True)
class Detach(Performative, descriptor=0x16):
    """2.7.7."""

    handle: UIntField
    closed: Bool = False
    error: MaybeError = None


@dataclass(slots=True)
class End(Performative, descriptor=0x17):
    """2.7.8."""

    error: MaybeError = None


@dataclass(slots=True)
class Close(Performative, descriptor=0x18):
    """2.7.9."""

    error: MaybeError = None


# ---- part 3: termini


@dataclass(slots=True)
class Source(Composite, descriptor=0x28):
    """The node that messages come from (3.5.3). The address stays as it came, normally a str."""

    address: Anything = None
    durable: UIntField = 0
    expiry_policy: SymbolField = "session-end"
    timeout: UIntField = 0
    dynamic: Bool = False
    dynamic_node_properties: Map = None
    distribution_mode: MaybeSymbol = None
    filter: Map = None
    default_outcome: MaybeState = None
    outcomes: Symbols = ()
    capabilities: Symbols = ()


@dataclass(slots=True)
class Target(Composite, descriptor=0x29):
    """The node that messages go to (3.5.4). The address stays as it came, normally a str."""

    address: Anything = None
    durable: UIntField = 0
    expiry_policy: SymbolField = "session-end"
    timeout: UIntField = 0
    dynamic: Bool = False
    dynamic_node_properties: Map = None
    capabilities: Symbols = ()


@dataclass(slots=True)
class DeleteOnClose(Composite, descriptor=0x2B):
    """Lifetime policy of a dynamic node: deleted with the link that created it (3.5.10)."""


@dataclass(slots=True)
class DeleteOnNoLinks(Composite, descriptor=0x2C):
    """Lifetime policy: deleted when no link uses the node (3.5.11)."""


@dataclass(slots=True)
class DeleteOnNoMessages(Composite, descriptor=0x2D):
    """Lifetime policy: deleted when the node holds no message (3.5.12)."""


@dataclass(slots=True)
class DeleteOnNoLinksOrMessages(Composite, descriptor=0x2E):
    """Lifetime policy: deleted when the node has neither links nor messages (3.5.13)."""


# ---- part 3: delivery states


@dataclass(slots=True, frozen=True)
class Received(State, descriptor=0x23):
    """How much of a delivery was received (3.4.1); not an outcome."""

    section_number: UIntField
    section_offset: ULongField


@dataclass(slots=True, frozen=True)
class Accepted(State, descriptor=0x24):
    """3.4.2."""


@dataclass(slots=True, frozen=True)
class Rejected(State, descriptor=0x25):
    """3.4.3."""

    error: MaybeError = None


@dataclass(slots=True, frozen=True)
class Released(State, descriptor=0x26):
    """3.4.4."""


@dataclass(slots=True, frozen=True)
class Modified(State, descriptor=0x27):
    """3.4.5."""

    delivery_failed: MaybeBool = None
    undeliverable_here: MaybeBool = None
    message_annotations: Map = None


# ---- part 4: transactions


@dataclass(slots=True)
class Coordinator(Composite, descriptor=0x30):
    """The target of a link that controls transactions (4.5.1)."""

    capabilities: Symbols = ()


@dataclass(slots=True)
class Declare(Composite, descriptor=0x31):
    """The body of a message that begins a transaction (4.5.2)."""

    global_id: Anything = None


@dataclass(slots=True)
class Discharge(Composite, descriptor=0x32):
    """The body of a message that ends a transaction (4.5.3)."""

    txn_id: Anything
    fail: MaybeBool = None


@dataclass(slots=True, frozen=True)
class Declared(State, descriptor=0x33):
    """The outcome of a declare (4.5.5)."""

    txn_id: Anything


@dataclass(slots=True, frozen=True)
class TransactionalState(State, descriptor=0x34):
    """A state that holds within a transaction (4.5.6)."""

    txn_id: Anything
    outcome: MaybeState = None


# ---- part 5: SASL


@dataclass(slots=True)
class SaslMechanisms(Performative, descriptor=0x40):
    """5.3.3.1."""

    sasl_server_mechanisms: Symbols


@dataclass(slots=True)
class SaslInit(Performative, descriptor=0x41):
    """5.3.3.2."""

    mechanism: SymbolField
    initial_response: MaybeBinary = field(default=None, repr=False)
    hostname: MaybeString = None


@dataclass(slots=True)
class SaslChallenge(Performative, descriptor=0x42):
    """5.3.3.3."""

    challenge: Binary = field(repr=False)


@dataclass(slots=True)
class SaslResponse(Performative, descriptor=0x43):
    """5.3.3.4."""

    response: Binary = field(repr=False)


@dataclass(slots=True)
class SaslOutcome(Performative, descriptor=0x44):
    """5.3.3.5."""

    code: UByteField
    additional_data: MaybeBinary = field(default=None, repr=False)


COMPOSITES: Final[tuple[type[Composite], ...]] = (
    Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close, Error,
    Received, Accepted, Rejected, Released, Modified, Source, Target,
    DeleteOnClose, DeleteOnNoLinks, DeleteOnNoMessages, DeleteOnNoLinksOrMessages,
    Coordinator, Declare, Discharge, Declared, TransactionalState,
    SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome,
)  # fmt: skip
for _cls in COMPOSITES:
    composite.register(_cls)

# Outcomes without details, by the octets of nearly every disposition; shared, because states are immutable.
ACCEPTED: Final = Accepted()
RELEASED: Final = Released()
REJECTED: Final = Rejected()
MODIFIED: Final = Modified()
_BARE: Final[dict[bytes, State]] = {
    bytes((0, 0x53, state.descriptor, 0x45)): state for state in (ACCEPTED, REJECTED, RELEASED, MODIFIED)
}


_OCTETS: Final[dict[type, bytes]] = {
    type(state): octets for octets, state in _BARE.items() if state in (ACCEPTED, RELEASED)
}


def encode_performative(performative: Performative) -> bytes:
    """Return the described list without trailing nulls; EncodeError names the performative and the faulty field."""
    return composite.encode(performative)


def decode_performative(data: bytes, start: int, end: int, nodes: int = MAX_NODES) -> tuple[Performative, int]:
    """Return the performative at ``start`` and the offset of the payload behind it; DecodeError names the fault.

    It may consist of at most ``nodes`` values.
    """
    value, offset = codec.decode(data, start, end, nodes)
    if not isinstance(value, Described):
        raise DecodeError("frame body is not a described list", start)
    performative = composite.from_described(value)
    if not isinstance(performative, Performative):
        raise DecodeError(f"{performative.symbol} is not a performative", start)
    return performative, offset


def encode_state(state: State | Described) -> bytes:
    """Return the encoded ``state``; a Described is one that this module does not know. EncodeError."""
    octets = _OCTETS.get(type(state))
    if octets is not None:
        return octets
    if isinstance(state, Described):
        return codec.encode(state)
    return composite.encode(state)


def decode_state(data: bytes, start: int, end: int, nodes: int = MAX_ATTACH_NODES) -> tuple[State | Described, int]:
    """Return the delivery state at ``start`` and the offset behind it; an unknown one as it came. DecodeError.

    It may consist of at most ``nodes`` values.
    """
    bare = _BARE.get(data[start : start + 4])
    if bare is not None and end - start >= 4:
        return bare, start + 4
    value, offset = codec.decode(data, start, end, nodes)
    if not isinstance(value, Described):
        raise DecodeError("delivery state is not a described value", start)
    cls = composite.class_of(value.descriptor)
    if cls is None or not issubclass(cls, State):
        return value, offset
    return cast("State", composite.from_described(value)), offset


def mend_state(data: bytes, start: int, end: int, nodes: int = MAX_ATTACH_NODES) -> bytes | None:
    """Return the delivery state ``data[start:end]`` encoded anew with those of its fields that are valid.

    None if it has a descriptor of none, or lacks a mandatory field. DecodeError for what is no AMQP.
    """
    value = codec.decode(data, start, end, nodes)[0]
    mended = composite.mend(value) if isinstance(value, Described) else None
    return composite.encode(mended) if isinstance(mended, State) else None

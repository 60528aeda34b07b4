"""Every composite type a router speaks: performatives (AMQP 1.0 part 2, 2.7), termini and states (part 3), coordinator
and transactions (part 4), SASL frames (part 5).

The declarations are the table that ``composite.py`` encodes and decodes by. Numbers arrive as the classes of
``types.py`` and may be given as plain ints, symbols as plain str. A field that is ``multiple`` is a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, TypeAlias, cast

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
    """The body of a frame."""

    __slots__ = ()


class State(Composite):
    """What became of a delivery (part 3, 3.4; part 4, 4.5.5 and 4.5.8); immutable, so one object serves many."""

    __slots__ = ()


# ---- part 2: transport


@dataclass(slots=True)
class Error(Composite):
    """Why something ended (2.8.14)."""

    descriptor: ClassVar[int] = 0x1D
    symbol: ClassVar[str] = "amqp:error:list"

    condition: SymbolField
    description: MaybeString = None
    info: Map = None


@dataclass(slots=True)
class Open(Performative):
    """2.7.1."""

    descriptor: ClassVar[int] = 0x10
    symbol: ClassVar[str] = "amqp:open:list"

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
class Begin(Performative):
    """2.7.2."""

    descriptor: ClassVar[int] = 0x11
    symbol: ClassVar[str] = "amqp:begin:list"

    remote_channel: Annotated[int | None, "ushort"] = None
    next_outgoing_id: UIntField
    incoming_window: UIntField
    outgoing_window: UIntField
    handle_max: UIntField = 0xFFFFFFFF
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Map = None


@dataclass(slots=True)
class Attach(Performative):
    """2.7.3; ``role`` is the sender's of this frame: False sender, True receiver."""

    descriptor: ClassVar[int] = 0x12
    symbol: ClassVar[str] = "amqp:attach:list"

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
class Flow(Performative):
    """2.7.4."""

    descriptor: ClassVar[int] = 0x13
    symbol: ClassVar[str] = "amqp:flow:list"

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
class Transfer(Performative):
    """2.7.5; the payload follows the performative in the frame."""

    descriptor: ClassVar[int] = 0x14
    symbol: ClassVar[str] = "amqp:transfer:list"

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
class Disposition(Performative):
    """2.7.6; ``role`` is that of the link end that speaks: False sender, True receiver."""

    descriptor: ClassVar[int] = 0x15
    symbol: ClassVar[str] = "amqp:disposition:list"

    role: Bool
    first: UIntField
    last: MaybeUInt = None
    settled: Bool = False
    state: MaybeState = None
    batchable: Bool = False


@dataclass(slots=True)
class Detach(Performative):
    """2.7.7."""

    descriptor: ClassVar[int] = 0x16
    symbol: ClassVar[str] = "amqp:detach:list"

    handle: UIntField
    closed: Bool = False
    error: MaybeError = None


@dataclass(slots=True)
class End(Performative):
    """2.7.8."""

    descriptor: ClassVar[int] = 0x17
    symbol: ClassVar[str] = "amqp:end:list"

    error: MaybeError = None


@dataclass(slots=True)
class Close(Performative):
    """2.7.9."""

    descriptor: ClassVar[int] = 0x18
    symbol: ClassVar[str] = "amqp:close:list"

    error: MaybeError = None


# ---- part 3: termini


@dataclass(slots=True)
class Source(Composite):
    """Where messages come from (3.5.3). The address stays whatever was sent, normally a str."""

    descriptor: ClassVar[int] = 0x28
    symbol: ClassVar[str] = "amqp:source:list"

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
class Target(Composite):
    """Where messages go (3.5.4). The address stays whatever was sent, normally a str."""

    descriptor: ClassVar[int] = 0x29
    symbol: ClassVar[str] = "amqp:target:list"

    address: Anything = None
    durable: UIntField = 0
    expiry_policy: SymbolField = "session-end"
    timeout: UIntField = 0
    dynamic: Bool = False
    dynamic_node_properties: Map = None
    capabilities: Symbols = ()


@dataclass(slots=True)
class DeleteOnClose(Composite):
    """Lifetime policy of a dynamic node: gone with the link that made it (3.5.10)."""

    descriptor: ClassVar[int] = 0x2B
    symbol: ClassVar[str] = "amqp:delete-on-close:list"


@dataclass(slots=True)
class DeleteOnNoLinks(Composite):
    """Lifetime policy: gone when no link uses it (3.5.11)."""

    descriptor: ClassVar[int] = 0x2C
    symbol: ClassVar[str] = "amqp:delete-on-no-links:list"


@dataclass(slots=True)
class DeleteOnNoMessages(Composite):
    """Lifetime policy: gone when it holds no message (3.5.12)."""

    descriptor: ClassVar[int] = 0x2D
    symbol: ClassVar[str] = "amqp:delete-on-no-messages:list"


@dataclass(slots=True)
class DeleteOnNoLinksOrMessages(Composite):
    """Lifetime policy: gone when it has neither (3.5.13)."""

    descriptor: ClassVar[int] = 0x2E
    symbol: ClassVar[str] = "amqp:delete-on-no-links-or-messages:list"


# ---- part 3: delivery states


@dataclass(slots=True, frozen=True)
class Received(State):
    """How far a delivery has come (3.4.1); not an outcome."""

    descriptor: ClassVar[int] = 0x23
    symbol: ClassVar[str] = "amqp:received:list"

    section_number: UIntField
    section_offset: ULongField


@dataclass(slots=True, frozen=True)
class Accepted(State):
    """3.4.2."""

    descriptor: ClassVar[int] = 0x24
    symbol: ClassVar[str] = "amqp:accepted:list"


@dataclass(slots=True, frozen=True)
class Rejected(State):
    """3.4.3."""

    descriptor: ClassVar[int] = 0x25
    symbol: ClassVar[str] = "amqp:rejected:list"

    error: MaybeError = None


@dataclass(slots=True, frozen=True)
class Released(State):
    """3.4.4."""

    descriptor: ClassVar[int] = 0x26
    symbol: ClassVar[str] = "amqp:released:list"


@dataclass(slots=True, frozen=True)
class Modified(State):
    """3.4.5."""

    descriptor: ClassVar[int] = 0x27
    symbol: ClassVar[str] = "amqp:modified:list"

    delivery_failed: MaybeBool = None
    undeliverable_here: MaybeBool = None
    message_annotations: Map = None


# ---- part 4: transactions


@dataclass(slots=True)
class Coordinator(Composite):
    """The target of a link that controls transactions (4.5.1)."""

    descriptor: ClassVar[int] = 0x30
    symbol: ClassVar[str] = "amqp:coordinator:list"

    capabilities: Symbols = ()


@dataclass(slots=True)
class Declare(Composite):
    """The body of a message that begins a transaction (4.5.2)."""

    descriptor: ClassVar[int] = 0x31
    symbol: ClassVar[str] = "amqp:declare:list"

    global_id: Anything = None


@dataclass(slots=True)
class Discharge(Composite):
    """The body of a message that ends a transaction (4.5.3)."""

    descriptor: ClassVar[int] = 0x32
    symbol: ClassVar[str] = "amqp:discharge:list"

    txn_id: Anything
    fail: MaybeBool = None


@dataclass(slots=True, frozen=True)
class Declared(State):
    """The outcome of a declare (4.5.4)."""

    descriptor: ClassVar[int] = 0x33
    symbol: ClassVar[str] = "amqp:declared:list"

    txn_id: Anything


@dataclass(slots=True, frozen=True)
class TransactionalState(State):
    """A state that holds within a transaction (4.5.5)."""

    descriptor: ClassVar[int] = 0x34
    symbol: ClassVar[str] = "amqp:transactional-state:list"

    txn_id: Anything
    outcome: MaybeState = None


# ---- part 5: SASL


@dataclass(slots=True)
class SaslMechanisms(Performative):
    """5.3.3.1."""

    descriptor: ClassVar[int] = 0x40
    symbol: ClassVar[str] = "amqp:sasl-mechanisms:list"

    sasl_server_mechanisms: Symbols


@dataclass(slots=True)
class SaslInit(Performative):
    """5.3.3.2."""

    descriptor: ClassVar[int] = 0x41
    symbol: ClassVar[str] = "amqp:sasl-init:list"

    mechanism: SymbolField
    initial_response: MaybeBinary = field(default=None, repr=False)
    hostname: MaybeString = None


@dataclass(slots=True)
class SaslChallenge(Performative):
    """5.3.3.3."""

    descriptor: ClassVar[int] = 0x42
    symbol: ClassVar[str] = "amqp:sasl-challenge:list"

    challenge: Binary = field(repr=False)


@dataclass(slots=True)
class SaslResponse(Performative):
    """5.3.3.4."""

    descriptor: ClassVar[int] = 0x43
    symbol: ClassVar[str] = "amqp:sasl-response:list"

    response: Binary = field(repr=False)


@dataclass(slots=True)
class SaslOutcome(Performative):
    """5.3.3.5."""

    descriptor: ClassVar[int] = 0x44
    symbol: ClassVar[str] = "amqp:sasl-outcome:list"

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

# Outcomes without detail, shared because states are immutable, by the octets that nearly every disposition carries.
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
    """The described list, trailing nulls left off; EncodeError names the performative and the field at fault."""
    return composite.encode(performative)


def decode_performative(data: bytes, start: int, end: int, nodes: int = MAX_NODES) -> tuple[Performative, int]:
    """The performative at ``start`` and the offset behind it, where the payload begins; DecodeError names the fault.

    It may consist of ``nodes`` values.
    """
    value, offset = codec.decode(data, start, end, nodes)
    if not isinstance(value, Described):
        raise DecodeError("frame body is not a described list", start)
    performative = composite.from_described(value)
    if not isinstance(performative, Performative):
        raise DecodeError(f"{performative.symbol} is not a performative", start)
    return performative, offset


def encode_state(state: State | Described) -> bytes:
    """A delivery state, or a described value that stands for one we do not know."""
    octets = _OCTETS.get(type(state))
    if octets is not None:
        return octets
    if isinstance(state, Described):
        return codec.encode(state)
    return composite.encode(state)


def decode_state(data: bytes, start: int, end: int, nodes: int = MAX_ATTACH_NODES) -> tuple[State | Described, int]:
    """The delivery state at ``start`` and the offset behind it; an unknown one stays as it came; DecodeError.

    It may consist of ``nodes`` values.
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

"""Performatives, termini, states and SASL frames: one table, so each test goes over every row of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.values import key_of, values
from trouter.wire import composite, types
from trouter.wire import performatives as p
from trouter.wire.codec import decode_all, encode
from trouter.wire.errors import DecodeError, EncodeError
from trouter.wire.performatives import decode_performative, decode_state, encode_performative, encode_state
from trouter.wire.types import Array, Described, Symbol, UInt, ULong

# AMQP 1.0 parts 2 to 5, field by field: type, then * for multiple and ! for mandatory. Written from the standard, not
# from the module, so that an error in one shows against the other.
STANDARD = {
    "amqp:open:list 10": "container-id:string! hostname:string max-frame-size:uint channel-max:ushort "
    "idle-time-out:uint outgoing-locales:symbol* incoming-locales:symbol* offered-capabilities:symbol* "
    "desired-capabilities:symbol* properties:map",
    "amqp:begin:list 11": "remote-channel:ushort next-outgoing-id:uint! incoming-window:uint! outgoing-window:uint! "
    "handle-max:uint offered-capabilities:symbol* desired-capabilities:symbol* properties:map",
    "amqp:attach:list 12": "name:string! handle:uint! role:boolean! snd-settle-mode:ubyte rcv-settle-mode:ubyte "
    "source:source target:target unsettled:map incomplete-unsettled:boolean initial-delivery-count:uint "
    "max-message-size:ulong offered-capabilities:symbol* desired-capabilities:symbol* properties:map",
    "amqp:flow:list 13": "next-incoming-id:uint incoming-window:uint! next-outgoing-id:uint! outgoing-window:uint! "
    "handle:uint delivery-count:uint link-credit:uint available:uint drain:boolean echo:boolean properties:map",
    "amqp:transfer:list 14": "handle:uint! delivery-id:uint delivery-tag:binary message-format:uint settled:boolean "
    "more:boolean rcv-settle-mode:ubyte state:state resume:boolean aborted:boolean batchable:boolean",
    "amqp:disposition:list 15": "role:boolean! first:uint! last:uint settled:boolean state:state batchable:boolean",
    "amqp:detach:list 16": "handle:uint! closed:boolean error:error",
    "amqp:end:list 17": "error:error",
    "amqp:close:list 18": "error:error",
    "amqp:error:list 1d": "condition:symbol! description:string info:map",
    "amqp:received:list 23": "section-number:uint! section-offset:ulong!",
    "amqp:accepted:list 24": "",
    "amqp:rejected:list 25": "error:error",
    "amqp:released:list 26": "",
    "amqp:modified:list 27": "delivery-failed:boolean undeliverable-here:boolean message-annotations:map",
    "amqp:source:list 28": "address:any durable:uint expiry-policy:symbol timeout:uint dynamic:boolean "
    "dynamic-node-properties:map distribution-mode:symbol filter:map default-outcome:state outcomes:symbol* "
    "capabilities:symbol*",
    "amqp:target:list 29": "address:any durable:uint expiry-policy:symbol timeout:uint dynamic:boolean "
    "dynamic-node-properties:map capabilities:symbol*",
    "amqp:delete-on-close:list 2b": "",
    "amqp:delete-on-no-links:list 2c": "",
    "amqp:delete-on-no-messages:list 2d": "",
    "amqp:delete-on-no-links-or-messages:list 2e": "",
    "amqp:coordinator:list 30": "capabilities:symbol*",
    "amqp:declare:list 31": "global-id:any",
    "amqp:discharge:list 32": "txn-id:any! fail:boolean",
    "amqp:declared:list 33": "txn-id:any!",
    "amqp:transactional-state:list 34": "txn-id:any! outcome:state",
    "amqp:sasl-mechanisms:list 40": "sasl-server-mechanisms:symbol*!",
    "amqp:sasl-init:list 41": "mechanism:symbol! initial-response:binary hostname:string",
    "amqp:sasl-challenge:list 42": "challenge:binary!",
    "amqp:sasl-response:list 43": "response:binary!",
    "amqp:sasl-outcome:list 44": "code:ubyte! additional-data:binary",
}
DEFAULTS = {  # everything else defaults to absent, false or empty
    ("open", "max_frame_size"): 2**32 - 1,
    ("open", "channel_max"): 65535,
    ("begin", "handle_max"): 2**32 - 1,
    ("attach", "snd_settle_mode"): 2,
    ("attach", "rcv_settle_mode"): 0,
    ("source", "durable"): 0,
    ("source", "expiry_policy"): "session-end",
    ("source", "timeout"): 0,
    ("target", "durable"): 0,
    ("target", "expiry_policy"): "session-end",
    ("target", "timeout"): 0,
}
ROWS = [(cls, field) for cls in p.COMPOSITES for field in composite.fields_of(cls)]
NAMES = [f"{cls.__name__}.{field.name}" for cls, field in ROWS]


def short(cls: type[composite.Composite]) -> str:
    return cls.symbol.split(":")[1]


def test_the_table_of_performatives_equals_the_standard() -> None:
    table = {}
    for cls in p.COMPOSITES:
        fields = [
            f"{field.name.replace('_', '-')}:{'any' if field.amqp == '*' else field.amqp}"
            f"{'*' if field.multiple else ''}{'!' if field.default is dataclasses.MISSING else ''}"
            for field in composite.fields_of(cls)
        ]
        table[f"{cls.symbol} {cls.descriptor:x}"] = " ".join(fields)
    assert table == STANDARD


@pytest.mark.parametrize(("cls", "field"), ROWS, ids=NAMES)
def test_an_absent_field_has_the_standards_default(cls: type[composite.Composite], field: composite.Field) -> None:
    if field.default is not dataclasses.MISSING:
        expected = DEFAULTS.get((short(cls), field.name), field.default)
        assert field.default == expected
        assert field.default in (None, False, ()) or (short(cls), field.name) in DEFAULTS


# ---- any instance of any composite


SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=20)
ERRORS = st.builds(
    p.Error, SYMBOLS, st.none() | st.text(max_size=20), st.none() | st.dictionaries(SYMBOLS, st.integers(0, 9))
)
PLAIN_STATES = st.one_of(
    st.just(p.ACCEPTED),
    st.just(p.RELEASED),
    st.builds(p.Rejected, st.none() | ERRORS),
    st.builds(p.Modified, st.none() | st.booleans(), st.none() | st.booleans()),
    st.builds(p.Received, st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)),
)
STATES = st.one_of(
    PLAIN_STATES,
    st.builds(p.Declared, st.binary(max_size=8)),
    st.builds(p.TransactionalState, st.binary(max_size=8), st.none() | PLAIN_STATES),
    st.builds(Described, st.just(ULong(0x99)), st.lists(st.integers(0, 9))),
)
OF_TYPE = {
    "boolean": st.booleans(),
    "ubyte": st.integers(0, 2**8 - 1),
    "ushort": st.integers(0, 2**16 - 1),
    "uint": st.integers(0, 2**32 - 1),
    "ulong": st.integers(0, 2**64 - 1),
    "binary": st.binary(max_size=20),
    "string": st.text(max_size=20),
    "symbol": SYMBOLS,
    "map": st.dictionaries(SYMBOLS, st.none() | st.integers(-9, 9) | st.text(max_size=5) | st.builds(p.DeleteOnClose)),
    "*": st.text(max_size=20) | st.binary(max_size=8) | st.integers(0, 9),
    "error": ERRORS,
    "state": STATES,
}


def instances(cls: type[composite.Composite]) -> st.SearchStrategy[composite.Composite]:
    arguments = {}
    for field in composite.fields_of(cls):
        strategy = OF_TYPE[field.amqp]
        if field.multiple:
            strategy = st.lists(strategy, max_size=3).map(tuple)
        elif field.default is None:
            strategy = st.none() | strategy
        arguments[field.name] = strategy
    return st.builds(cls, **arguments)


OF_TYPE["source"] = instances(p.Source) | st.just(Described(Symbol("x:source"), []))
OF_TYPE["target"] = instances(p.Target) | instances(p.Coordinator)
ANY = st.sampled_from(p.COMPOSITES).flatmap(instances)


@given(ANY)
def test_an_encoded_performative_is_decoded_to_the_same_value(value: composite.Composite) -> None:
    data = composite.encode(value)
    described = decode_all(data)
    assert composite.from_described(described) == value
    assert not described.value or described.value[-1] is not None


@given(
    st.sampled_from([cls for cls in p.COMPOSITES if issubclass(cls, p.Performative)]).flatmap(instances), st.binary()
)
def test_a_performative_ends_where_the_payload_begins(value: p.Performative, payload: bytes) -> None:
    data = encode_performative(value)
    found, behind = decode_performative(b"head" + data + payload, 4, 4 + len(data) + len(payload))
    assert (found, behind) == (value, 4 + len(data))


@given(STATES)
def test_states_go_both_ways(state: p.State | Described) -> None:
    data = encode_state(state)
    found, behind = decode_state(b"\0" + data + b"\0", 1, len(data) + 2)
    assert (found, behind) == (state, len(data) + 1)


@given(ANY, st.integers(1, 3))
def test_nulls_behind_the_last_field_do_no_harm(value: composite.Composite, extra: int) -> None:
    described = decode_all(composite.encode(value))
    missing = len(composite.fields_of(type(value))) - len(described.value)
    described.value += [None] * (missing + extra)
    assert composite.from_described(decode_all(encode(described))) == value


@given(ANY)
def test_a_symbolic_descriptor_does_as_well(value: composite.Composite) -> None:
    described = decode_all(composite.encode(value))
    assert composite.from_described(Described(Symbol(value.symbol), described.value)) == value


# ---- every row, with errors


def minimal(cls: type[composite.Composite]) -> list[object]:
    """Return the fields of the smallest valid ``cls``, as they are encoded."""
    samples = {
        "boolean": True,
        "ubyte": types.UByte(1),
        "uint": types.UInt(1),
        "ulong": ULong(1),
        "binary": b"x",
        "string": "x",
        "symbol": Symbol("x"),
        "*": b"x",
    }
    return [samples[field.amqp] if field.default is dataclasses.MISSING else None for field in composite.fields_of(cls)]


def read(cls: type[composite.Composite], fields: list[object]) -> composite.Composite:
    return composite.from_described(decode_all(encode(Described(ULong(cls.descriptor), fields))))


@pytest.mark.parametrize(("cls", "field"), ROWS, ids=NAMES)
def test_a_missing_mandatory_field_is_named(cls: type[composite.Composite], field: composite.Field) -> None:
    fields = minimal(cls)
    position = composite.fields_of(cls).index(field)
    if field.default is not dataclasses.MISSING:
        assert getattr(read(cls, fields), field.name) == field.default
        return
    for absent in ([*fields[:position], None, *fields[position + 1 :]], fields[:position]):
        with pytest.raises(DecodeError, match=rf"^{short(cls)}: [a-z-]+ is missing$"):
            read(cls, absent)


WRONG: list[Any] = [
    True, types.UByte(1), types.UShort(1), types.UInt(1), ULong(1), 1, types.Int(1), 1.5, b"x", "x", Symbol("x"),
    {}, [1], Array("uint", [types.UInt(1)]), Described(ULong(0x99), []), Described(ULong(0x1D), [Symbol("x")]),
    types.Char("x"), types.PairMap([([], 1)]),
]  # fmt: skip


# A peer's offered and desired capabilities may be anything; see test_an_odd_capability_is_passed_over. So may its
# reasons; see test_a_malformed_reason_does_not_undo_an_ending.
ENDINGS: tuple[type[composite.Composite], ...] = (p.Detach, p.End, p.Close)
STRICT = [
    (cls, field)
    for cls, field in ROWS
    if not field.name.endswith("ed_capabilities") and not (cls in ENDINGS and field.name == "error")
]


@pytest.mark.parametrize(("cls", "field"), STRICT, ids=[f"{cls.__name__}.{field.name}" for cls, field in STRICT])
def test_a_field_of_the_wrong_type_is_named(cls: type[composite.Composite], field: composite.Field) -> None:
    right = {
        "boolean": bool, "ubyte": types.UByte, "ushort": types.UShort, "uint": types.UInt, "ulong": ULong,
        "binary": bytes, "string": str, "symbol": Symbol, "map": dict,
    }.get(field.amqp)  # fmt: skip
    position = composite.fields_of(cls).index(field)
    for value in WRONG:
        fields = minimal(cls)
        fields[position] = value
        described = isinstance(value, Described)
        allowed = (
            field.amqp == "*"
            or type(value) is right
            or (described and field.amqp in ("source", "target", "state"))
            or (described and field.amqp == "error" and value.descriptor == 0x1D)
        )
        if allowed:
            assert getattr(read(cls, fields), field.name) is not None
        else:
            name = field.name.replace("_", "-")
            with pytest.raises(DecodeError, match=rf"^{short(cls)}: {name} is not a valid {field.amqp} but "):
                read(cls, fields)


REASONS: dict[str, tuple[object, p.Error | None]] = {
    "a text": ("forced", None),
    "a number": (types.UInt(7), None),
    "an outcome": (Described(ULong(0x25), []), None),
    "an error without a condition": (Described(ULong(0x1D), [None, "why"]), None),
    "an error that is no list": (Described(ULong(0x1D), {}), None),
    "a condition of text": (Described(ULong(0x1D), ["x:y", Symbol("why")]), p.Error("x:y", "why")),
    "a description that is a number": (Described(ULong(0x1D), [Symbol("x:y"), 4, {}]), p.Error("x:y", None, {})),
    "an info that is a list": (Described(ULong(0x1D), [Symbol("x:y"), "why", [1]]), p.Error("x:y", "why")),
    "a field too many": (Described(ULong(0x1D), [Symbol("x:y"), "why", {}, 5]), p.Error("x:y", "why", {})),
}


@pytest.mark.parametrize("cls", ENDINGS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("name", REASONS)
def test_a_malformed_reason_does_not_undo_an_ending(cls: type[composite.Composite], name: str) -> None:
    reason, wanted = REASONS[name]
    fields: list[object] = [types.UInt(3), True, reason] if cls is p.Detach else [reason]
    ending = read(cls, fields)
    assert getattr(ending, "error") == wanted  # noqa: B009 - one of three classes
    assert isinstance(ending, p.Performative)
    assert decode_performative(encode_performative(ending), 0, len(encode_performative(ending)))[0] == ending


@pytest.mark.parametrize("cls", p.COMPOSITES, ids=lambda cls: cls.__name__)
def test_too_many_fields_are_refused(cls: type[composite.Composite]) -> None:
    fields = minimal(cls)
    assert isinstance(read(cls, [*fields, None]), cls)
    with pytest.raises(DecodeError, match=rf"^{short(cls)} has {len(fields) + 1} fields"):
        read(cls, [*fields, True])


@pytest.mark.parametrize("cls", p.COMPOSITES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("body", [None, {}, "x", Described(ULong(1), []), Array("uint", [])], ids=repr)
def test_a_composite_that_is_no_list_is_refused(cls: type[composite.Composite], body: object) -> None:
    with pytest.raises(DecodeError, match=rf"^{short(cls)} is not a list"):
        composite.from_described(Described(ULong(cls.descriptor), body))


@pytest.mark.parametrize("cls", p.COMPOSITES, ids=lambda cls: cls.__name__)
def test_a_composite_cut_anywhere_is_refused(cls: type[composite.Composite]) -> None:
    data = encode(Described(ULong(cls.descriptor), minimal(cls)))
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode_performative(data, 0, end)
        with pytest.raises(DecodeError):
            decode_state(data, 0, end)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (Described(ULong(0x19), []), "unknown descriptor 0x19"),
        (Described(Symbol("amqp:opem:list"), []), "unknown descriptor Symbol\\('amqp:opem:list'\\)"),
        (Described("amqp:open:list", ["x"]), "unknown descriptor 'amqp:open:list'"),
        (Described(types.UInt(0x10), ["x"]), "unknown descriptor UInt"),
        (Described(True, []), "unknown descriptor bool"),
        (Described([], []), "unknown descriptor list"),
        (Described(Described(1, 2), []), "unknown descriptor Described"),
        (Described(ULong(0x28), []), "amqp:source:list is not a performative"),
        (Described(ULong(0x24), []), "amqp:accepted:list is not a performative"),
        (["x"], "not a described list"),
        (None, "not a described list"),
    ],
    ids=str,
)
def test_a_body_that_is_no_performative_is_refused(body: object, complaint: str) -> None:
    data = encode(body)
    with pytest.raises(DecodeError, match=complaint):
        decode_performative(data, 0, len(data))


@given(values)
def test_any_value_as_a_body_is_a_performative_or_refused(value: object) -> None:
    data = encode(value)
    for read_any in (decode_performative, decode_state):
        try:
            read_any(data, 0, len(data))
        except DecodeError:
            pass


@given(st.sampled_from(p.COMPOSITES), st.lists(values, max_size=6))
def test_any_fields_are_valid_or_refused(cls: type[composite.Composite], fields: list[object]) -> None:
    try:
        found = composite.from_described(Described(ULong(cls.descriptor), fields))
    except DecodeError:
        return
    assert composite.from_described(decode_all(composite.encode(found))) == found


# ---- multiple


@pytest.mark.parametrize(
    "sent",
    [Symbol("a"), Array("symbol", ["a"]), [Symbol("a")]],
    ids=["one", "array", "list"],
)
def test_a_multiple_field_may_come_as_one_an_array_or_a_list(sent: object) -> None:
    found = read(p.Open, ["c", *[None] * 6, sent])
    assert isinstance(found, p.Open)
    assert found.offered_capabilities == ("a",)


@pytest.mark.parametrize("sent", [None, Array("symbol", []), []], ids=["null", "empty array", "empty list"])
def test_a_multiple_field_without_values_is_empty(sent: object) -> None:
    found = read(p.Open, ["c", *[None] * 6, sent])
    assert isinstance(found, p.Open)
    assert found.offered_capabilities == ()


@pytest.mark.parametrize(
    "sent",
    ["a", Array("string", ["a"]), ["a"], [Symbol("a"), None], {}, Array("symbol", ["a"], [Symbol("d")])],
    ids=repr,
)
def test_a_value_that_is_no_symbol_in_a_multiple_field_is_refused(sent: object) -> None:
    with pytest.raises(DecodeError, match="open: outgoing-locales is not a valid symbol"):
        read(p.Open, ["c", *[None] * 4, sent])


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("a", ()), (Array("uint", [1]), ()), ([Symbol("a"), UInt(1), None], ("a",)), ({}, ())],
    ids=repr,
)
def test_an_odd_capability_is_passed_over(sent: object, kept: tuple[str, ...]) -> None:
    found = read(p.Open, ["c", *[None] * 6, sent])
    assert isinstance(found, p.Open)
    assert found.offered_capabilities == kept


@pytest.mark.parametrize(
    ("cls", "values"),
    [(p.Source, [None] * 10), (p.Target, [None] * 6), (p.Coordinator, []), (p.Open, ["c", *[None] * 6])],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
@pytest.mark.parametrize(
    ("sent", "written"),
    [
        (Symbol("a"), Symbol("a")),
        (Array("symbol", [Symbol("a")]), Array("symbol", [Symbol("a")])),
        ([Symbol("a")], Symbol("a")),
        (Array("symbol", [Symbol("a"), Symbol("b")]), Array("symbol", [Symbol("a"), Symbol("b")])),
    ],
    ids=["one", "array of one", "list of one", "array of two"],
)
def test_a_multiple_field_is_written_in_the_form_of_its_source(
    cls: type[composite.Composite], values: list[object], sent: object, written: object
) -> None:
    read_one = composite.from_described(Described(ULong(cls.descriptor), [*values, sent]))
    again = decode_all(composite.encode(read_one)).value[len(values)]
    assert again == written
    assert type(again) is type(written)


def test_one_value_of_a_multiple_field_is_written_bare_where_the_field_may_be_absent() -> None:
    # An interior router of Qpid Dispatch takes a link for a router's only by a bare symbol.
    found = decode_all(composite.encode(p.Source(capabilities=("qd.router",)))).value[10]
    assert type(found) is Symbol
    assert found == "qd.router"
    assert decode_all(encode_performative(p.SaslMechanisms(("ANONYMOUS",)))).value == [Array("symbol", ["ANONYMOUS"])]


def test_more_values_of_a_multiple_field_are_written_as_an_array_and_none_as_null() -> None:
    assert decode_all(encode_performative(p.Open("c", desired_capabilities=("a", "b")))).value[6:] == [
        None, None, Array("symbol", [Symbol("a"), Symbol("b")])
    ]  # fmt: skip
    assert decode_all(encode_performative(p.SaslMechanisms(()))).value == [Array("symbol", [])]


# ---- termini, states, secrets


def test_an_unknown_terminus_is_kept_unchanged() -> None:
    source = Described(Symbol("vendor:source"), {Symbol("a"): 1})
    target = Described(ULong(0x0000468C_00000007), [1])
    data = encode_performative(p.Attach("l", 0, True, source=source, target=target))
    found, _ = decode_performative(data, 0, len(data))
    assert isinstance(found, p.Attach)
    assert (found.source, found.target) == (source, target)


def test_a_terminus_of_another_kind_is_kept_unchanged() -> None:
    data = encode(
        Described(
            ULong(0x12),
            ["l", types.UInt(0), True, None, None, Described(ULong(0x29), ["a"]), Described(ULong(0x28), [])],
        )
    )
    found, _ = decode_performative(data, 0, len(data))
    assert isinstance(found, p.Attach)
    assert found.source == Described(ULong(0x29), ["a"])
    assert found.target == Described(ULong(0x28), [])


@pytest.mark.parametrize("address", ["queue/a", Symbol("a"), 7, b"x", None])
def test_an_address_of_any_type_is_kept(address: object) -> None:
    data = encode_performative(p.Attach("l", 0, False, target=p.Target(address)))
    found, _ = decode_performative(data, 0, len(data))
    assert isinstance(found, p.Attach)
    assert isinstance(found.target, p.Target)
    assert key_of(found.target.address) == key_of(address)


def test_filters_keep_their_described_values() -> None:
    selector = Described(ULong(0x0000468C00000004), "colour = 'green'")
    data = composite.encode(p.Source("a", filter={"apache.org:selector-filter:string": selector}))
    found = composite.from_described(decode_all(data))
    assert isinstance(found, p.Source)
    assert found.filter == {Symbol("apache.org:selector-filter:string"): selector}


@pytest.mark.parametrize(
    "policy", [p.DeleteOnClose, p.DeleteOnNoLinks, p.DeleteOnNoMessages, p.DeleteOnNoLinksOrMessages]
)
def test_a_lifetime_policy_is_a_value_of_the_node_properties(policy: type[composite.Composite]) -> None:
    data = composite.encode(p.Target(dynamic=True, dynamic_node_properties={"lifetime-policy": policy()}))
    found = composite.from_described(decode_all(data))
    assert isinstance(found, p.Target)
    assert found.dynamic_node_properties == {"lifetime-policy": policy()}


@pytest.mark.parametrize("text", ["00532445", "005324c00100", "005324d00000000400000000", "0080000000000000002445"])
def test_accepted_in_every_spelling(text: str) -> None:
    data = bytes.fromhex(text)
    assert decode_state(data, 0, len(data)) == (p.ACCEPTED, len(data))


@pytest.mark.parametrize("state", [p.ACCEPTED, p.RELEASED, p.REJECTED, p.MODIFIED])
def test_an_outcome_without_detail_takes_four_octets(state: p.State) -> None:
    assert encode_state(state) == bytes((0, 0x53, state.descriptor, 0x45))
    assert decode_state(encode_state(state) + b"x", 0, 5) == (state, 4)


def test_a_bare_outcome_that_ends_beyond_the_range_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode_state(bytes.fromhex("00532445"), 0, 3)


def test_unknown_states_are_kept_as_described_values() -> None:
    custom = Described(ULong(0x0000468C00000099), [1, "x"])
    data = encode_state(custom)
    assert decode_state(data, 0, len(data)) == (custom, len(data))
    not_a_state = encode(Described(ULong(0x28), []))
    assert decode_state(not_a_state, 0, len(not_a_state))[0] == Described(ULong(0x28), [])


def test_states_cannot_be_changed_for_they_are_shared() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.MODIFIED.delivery_failed = True  # type: ignore[misc]


def test_secrets_are_not_shown() -> None:
    shown = repr([p.SaslInit("PLAIN", b"\0user\0secret"), p.SaslResponse(b"secret"), p.SaslChallenge(b"secret")])
    assert "secret" not in shown
    with pytest.raises(DecodeError) as caught:
        read(p.SaslResponse, ["secret"])
    assert "secret" not in str(caught.value)


# ---- values that must not be sent


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (p.Open(None), "open: container-id is mandatory"),  # type: ignore[arg-type]
        (p.Open("c", max_frame_size=2**32), "open: max-frame-size: UInt out of range"),
        (p.Open("c", channel_max=-1), "open: channel-max: UShort out of range"),
        (p.Open("c", channel_max=True), "open: channel-max: bool is not a ushort"),
        (p.Open("c", channel_max="1"), "open: channel-max: str is not a ushort"),  # type: ignore[arg-type]
        (p.Open(b"c"), "open: container-id: bytes is not a string"),  # type: ignore[arg-type]
        (p.Close(p.Error("käse")), "error: condition: symbol is not ASCII"),
        (p.SaslChallenge("c"), "sasl-challenge: challenge: str is not a binary"),  # type: ignore[arg-type]
        (p.Open("c", properties=[]), "open: properties: list is not a map"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_field_that_amqp_cannot_encode_is_named(value: p.Performative, complaint: str) -> None:
    with pytest.raises(EncodeError, match=complaint):
        encode_performative(value)


def test_descriptors_are_those_of_the_standard() -> None:
    """Parts 2 (2.7, 2.8), 3 (3.4, 3.5), 4 (4.5) and 5 (5.3.3)."""
    standard = {
        0x10: "open begin attach flow transfer disposition detach end close",
        0x1D: "error",
        0x23: "received accepted rejected released modified source target",
        0x2B: "delete-on-close delete-on-no-links delete-on-no-messages delete-on-no-links-or-messages",
        0x30: "coordinator declare discharge declared transactional-state",
        0x40: "sasl-mechanisms sasl-init sasl-challenge sasl-response sasl-outcome",
    }
    numbered = {name: first + index for first, names in standard.items() for index, name in enumerate(names.split())}
    assert {short(cls): cls.descriptor for cls in p.COMPOSITES} == numbered

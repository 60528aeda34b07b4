"""Any AMQP value as a Hypothesis strategy, and an equality that compares types, for the tests of the wire room."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from trouter.wire import types
from trouter.wire.types import Array, Described, PairMap, Symbol

RANGED = (types.UByte, types.UShort, types.UInt, types.ULong, types.Byte, types.Short, types.Int, types.Timestamp)

symbols = st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)
strings = st.text(max_size=300)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    *[st.integers(cls.low, cls.high).map(cls) for cls in RANGED],
    st.integers(types.Long.low, types.Long.high),
    st.floats(),
    st.floats(width=32).map(types.Float),
    *[
        st.binary(min_size=cls.width, max_size=cls.width).map(cls)
        for cls in (types.Decimal32, types.Decimal64, types.Decimal128)
    ],
    st.characters(exclude_categories=["Cs"]).map(types.Char),
    st.uuids(),
    st.binary(max_size=300),
    strings,
    symbols,
)
_OF = {
    "null": st.none(),
    "boolean": st.booleans(),
    "uint": st.integers(0, 0xFFFFFFFF).map(types.UInt),
    "long": st.integers(types.Long.low, types.Long.high),
    "double": st.floats(),
    "string": strings,
    "symbol": symbols,
    "binary": st.binary(max_size=300),
    "list": st.lists(scalars, max_size=3),
    "map": st.dictionaries(symbols, scalars, max_size=3),
    "uuid": st.uuids(),
}


def key_of(value: object) -> object:
    """Return a key that is equal exactly for values that are the same in AMQP: type, and bits for floats."""
    if isinstance(value, float):
        return type(value), struct.pack(">d", value)
    if isinstance(value, Described):
        return Described, key_of(value.descriptor), key_of(value.value)
    if isinstance(value, Array):
        return Array, value.of, tuple(map(key_of, value.items)), tuple(map(key_of, value.descriptors))
    if isinstance(value, (dict, PairMap)):
        return "map", tuple((key_of(key), key_of(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(key_of, value))
    return type(value), value


def _unique(pairs: list[tuple[object, object]]) -> dict[object, object] | PairMap:
    """Return the map of these pairs as the decoder returns it, the first of equal keys kept."""
    kept = list({repr(key_of(key)): (key, value) for key, value in pairs}.values())
    try:
        mapping = dict(kept)
    except TypeError:
        return PairMap(kept)
    return mapping if len(mapping) == len(kept) else PairMap(kept)


def _nest(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(
        st.lists(inner, max_size=5),
        st.lists(st.tuples(inner, inner), max_size=5).map(_unique),
        st.builds(Described, inner, inner),
    )


arrays = st.sampled_from(sorted(_OF)).flatmap(
    lambda of: st.builds(Array, st.just(of), st.lists(_OF[of], max_size=5), st.lists(symbols, max_size=2))
)
values: st.SearchStrategy[object] = st.recursive(st.one_of(scalars, arrays), _nest, max_leaves=12)

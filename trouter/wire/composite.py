"""Composite types (AMQP 1.0 part 1, 1.4) as dataclasses whose declarations are the codec's table.

Each field is annotated with its AMQP type (``Annotated[int, "uint"]``; a ``*`` behind the type means multiple), in the
order of the standard. A field without a default is mandatory. A null on the wire reads as the field's default; None is
written as a null. ``performatives.py`` has the declarations.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, get_type_hints

from trouter.wire import codec, types
from trouter.wire.constants import MAX_SYMBOL_BYTES
from trouter.wire.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from cython import Py_ssize_t

_C = TypeVar("_C", bound="Composite")
_MISSING: Final = dataclasses.MISSING
#: The position of each further word in a class's name.
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


class Composite:
    """A described list with named fields, identified by ``descriptor`` and ``symbol``.

    A subclass gives its descriptor. Its symbol follows from its name: ``SaslInit`` is ``amqp:sasl-init:list``.
    """

    __slots__ = ()
    descriptor: ClassVar[int]
    symbol: ClassVar[str]

    def __init_subclass__(cls, descriptor: int | None = None) -> None:
        super().__init_subclass__()
        if descriptor is not None:  # else an abstract class, or one that dataclass has copied to give it slots
            cls.descriptor = descriptor
            cls.symbol = f"amqp:{_CAPITAL.sub('-', cls.__name__).lower()}:list"


class Field:
    """One field of a composite: its name, its AMQP type, and the value of a null."""

    __slots__ = ("name", "amqp", "multiple", "default", "mandatory", "plain", "given", "low", "high")

    def __init__(self, name: str, amqp: str, multiple: bool, default: object) -> None:
        self.name = name
        self.amqp = amqp
        self.multiple = multiple
        self.default = default  # dataclasses.MISSING when mandatory
        self.mandatory: bool = default is _MISSING
        #: The class of values that are encoded and decoded unconverted; None if the field needs more work.
        self.plain: Any = None if multiple or amqp == "map" else _PLAIN.get(amqp)
        #: The class of values that are converted to ``plain``: int for a UInt, str for a Symbol.
        self.given: Any = None if self.plain is None else self.plain.__mro__[-2]
        self.low: int = getattr(self.plain, "low", 0)
        self.high: int = getattr(self.plain, "high", -1)


_TABLES: Final[dict[type[Composite], tuple[Field, ...]]] = {}
_CLASSES: Final[dict[object, type[Composite]]] = {}  # by code and by symbol
_CODES: Final[dict[type[Composite], types.ULong]] = {}

_PLAIN: Final[dict[str, type]] = {
    "boolean": bool,
    "ubyte": types.UByte,
    "ushort": types.UShort,
    "uint": types.UInt,
    "ulong": types.ULong,
    "binary": bytes,
    "string": str,
    "symbol": types.Symbol,
    "timestamp": types.Timestamp,
    "map": dict,
}


# The composites that fields of these types may hold; any other described value stays as it came.
_STATES: Final = frozenset((0x23, 0x24, 0x25, 0x26, 0x27, 0x33, 0x34))
_NESTED: Final[dict[str, frozenset[int]]] = {
    "source": frozenset((0x28,)),
    "target": frozenset((0x29, 0x30)),
    "state": _STATES,
    "error": frozenset((0x1D,)),
}
# A receiver need not understand the extensions that a peer advertises, so a malformed one is not a fault.
_CAPABILITIES: Final = frozenset(("offered_capabilities", "desired_capabilities"))
_IN_MAPS: Final = _STATES | {0x2B, 0x2C, 0x2D, 0x2E}
#: Detach, end and close: a malformed reason of the peer does not undo that it ended something.
_ENDINGS: Final = frozenset((0x16, 0x17, 0x18))


def register(cls: type[Composite]) -> None:
    """Add ``cls``, a dataclass, to the table."""
    hints = get_type_hints(cls, include_extras=True)
    rows = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # every Composite is a dataclass
        amqp = hints[field.name].__metadata__[0]
        multiple = amqp != "*" and amqp.endswith("*")
        amqp = amqp.removesuffix("*") if multiple else amqp
        rows.append(Field(field.name, amqp, multiple, field.default))
    _TABLES[cls] = tuple(rows)
    _CODES[cls] = types.ULong(cls.descriptor)
    _CLASSES[cls.descriptor] = _CLASSES[types.Symbol(cls.symbol)] = cls


def fields_of(cls: type[Composite]) -> tuple[Field, ...]:
    """Return the fields of a composite type, in the order of the wire."""
    return _TABLES[cls]


def class_of(descriptor: object) -> type[Composite] | None:
    """Return the composite type that a descriptor names, by ulong code or by symbol; None if unknown."""
    if type(descriptor) is types.ULong or type(descriptor) is types.Symbol:
        return _CLASSES.get(descriptor)
    return None


def encode(composite: Composite) -> bytes:
    """Return the described list without trailing nulls; EncodeError names the faulty field."""
    return codec.encode(_described(composite))


def _described(composite: Composite) -> types.Described:
    values: list[Any] = []
    count: Py_ssize_t = 0
    field: Field
    for field in _TABLES[type(composite)]:
        value = getattr(composite, field.name)
        if value is None:
            if field.mandatory:
                raise EncodeError(f"{_label(type(composite), field)} is mandatory")
        elif field.multiple and not value and field.default == ():
            value = None
        elif field.given is int and type(value) is int and field.low <= value <= field.high:
            value = int.__new__(field.plain, value)  # as field.plain(value), in a third of the time
        elif type(value) is not field.plain:
            try:
                value = field.plain(value) if type(value) is field.given else _to_wire(field, value)
            except EncodeError as error:
                raise EncodeError(f"{_label(type(composite), field)}: {error}") from None
        values.append(value)
        if value is not None:
            count = len(values)
    del values[count:]
    return types.Described(_CODES[type(composite)], values)


def _to_wire(field: Field, value: Any) -> Any:
    if isinstance(value, types.Described):
        return value
    if isinstance(value, Composite):
        return _described(value)
    if field.multiple:
        return _multiple_to_wire(field, value)
    if field.amqp == "map":
        return _map_to_wire(value)
    return _plain_to_wire(field, value)


def _plain_to_wire(field: Field, value: Any) -> Any:
    plain = _PLAIN.get(field.amqp)
    if plain is None or isinstance(value, plain):
        return value
    if isinstance(value, bool) or not isinstance(value, plain.__mro__[-2]):  # int for a UInt, str for a Symbol
        raise EncodeError(f"{type(value).__name__} is not a {field.amqp}")
    return plain(value)


def _multiple_to_wire(field: Field, value: Any) -> Any:
    """Return None for no value, the bare value for one, else an array; an array also for ArrayForm and mandatory
    fields.

    Qpid Dispatch recognises the links of other routers only by a bare symbol.
    """
    if not field.mandatory:
        if not value:
            return None
        if len(value) == 1 and type(value) is not types.ArrayForm:
            return _plain_to_wire(field, value[0])
    return types.Array(field.amqp, value)


def _map_to_wire(value: Any) -> Any:
    """Return the map of a performative: its keys as symbols, a composite in it as a described list; EncodeError."""
    if not isinstance(value, dict):
        raise EncodeError(f"{type(value).__name__} is not a map")
    return {
        types.Symbol(key) if type(key) is str and key.isascii() else key: _described(item)
        if isinstance(item, Composite)
        else item
        for key, item in value.items()
    }


def from_described(described: types.Described) -> Composite:
    """Return ``described`` as a composite; DecodeError names the type and the faulty field."""
    cls = class_of(described.descriptor)
    if cls is None:
        raise DecodeError(f"unknown descriptor {_show(described.descriptor)}")
    return from_values(cls, described.value)


def from_values(cls: type[_C], values: Any) -> _C:
    """Return the composite of type ``cls`` with decoded values; DecodeError names the type and the faulty field."""
    if not isinstance(values, list):
        raise DecodeError(f"{_label(cls)} is not a list")
    table: tuple[Field, ...] = _TABLES[cls]
    if len(values) > len(table):
        if values[len(table) :].count(None) < len(values) - len(table):
            raise DecodeError(f"{_label(cls)} has {len(values)} fields, not at most {len(table)}")
        values = values[: len(table)]
    found: dict[str, Any] = {}
    field: Field
    for field, value in zip(table, values, strict=False):
        if type(value) is field.plain:
            found[field.name] = value
        elif value is not None:
            found[field.name] = _from_wire(cls, field, value)
    for field in table:
        if field.mandatory and field.name not in found:
            raise DecodeError(f"{_label(cls, field)} is missing")
    return cls(**found)


def mend(described: types.Described) -> Composite | None:
    """Return ``described`` with those of its fields that are valid; None for an unknown type, or if a mandatory field
    is not among them. A symbol may come as a string, and a string as a symbol.
    """
    cls = class_of(described.descriptor)
    if cls is None:
        return None
    found: dict[str, Any] = {}
    table: tuple[Field, ...] = _TABLES[cls]
    field: Field
    for field, value in zip(table, described.value if isinstance(described.value, list) else (), strict=False):
        try:
            valid = None if value is None else _from_wire(cls, field, value)
        except DecodeError:
            valid = _mend_field(field, value)
        if valid is not None:
            found[field.name] = valid
    for field in table:
        if field.mandatory and field.name not in found:
            return None
    return cls(**found)


def _mend_field(field: Field, value: Any) -> object:
    """Return what is valid of a ``value`` that is not: a composite without its wrong fields, a text; or None."""
    if isinstance(value, types.Described):
        cls = class_of(value.descriptor)
        return mend(value) if cls is not None and cls.descriptor in _NESTED.get(field.amqp, ()) else None
    if isinstance(value, str) and field.amqp in ("symbol", "string") and not field.multiple:
        return _PLAIN[field.amqp](value) if value.isascii() and len(value) <= MAX_SYMBOL_BYTES else None
    return None


def _from_wire(cls: type[Composite], field: Field, value: Any) -> object:
    if field.multiple:
        return _multiple(cls, field, value)
    if field.amqp in _PLAIN:
        if type(value) is not _PLAIN[field.amqp]:
            raise _wrong(cls, field, value)
        return _map_from_wire(value) if isinstance(value, dict) else value
    if field.amqp in _NESTED:
        if cls.descriptor in _ENDINGS:
            return _mend_field(field, value)
        if not isinstance(value, types.Described):
            raise _wrong(cls, field, value)
        nested = class_of(value.descriptor)
        if nested is not None and nested.descriptor in _NESTED[field.amqp]:
            return from_described(value)
        if field.amqp == "error":
            raise _wrong(cls, field, value)
    return value


def _map_from_wire(mapping: dict[Any, Any]) -> dict[Any, Any]:
    """Replace lifetime policies and delivery states by composites; other described values stay as they came."""
    for key, value in mapping.items():
        if isinstance(value, types.Described):
            cls = class_of(value.descriptor)
            if cls is not None and cls.descriptor in _IN_MAPS:
                mapping[key] = from_described(value)
    return mapping


def _multiple(cls: type[Composite], field: Field, value: Any) -> tuple[Any, ...]:
    """Return the values of a single value, an array, or (from careless peers) a list; skip malformed capabilities."""
    if field.name in _CAPABILITIES:
        values = value.items if isinstance(value, types.Array) else value if isinstance(value, list) else (value,)
        known = tuple(item for item in values if type(item) is types.Symbol)
        return types.ArrayForm(known) if isinstance(value, types.Array) else known
    if isinstance(value, types.Array):
        if value.descriptors or value.of != field.amqp:
            raise _wrong(cls, field, value)
        return types.ArrayForm(value.items)
    values = value if isinstance(value, list) else (value,)
    if any(type(item) is not _PLAIN[field.amqp] for item in values):
        raise _wrong(cls, field, value)
    return tuple(values)


def _label(cls: type[Composite], field: Field | None = None) -> str:
    name = cls.symbol.split(":")[1]
    return name if field is None else f"{name}: {field.name.replace('_', '-')}"


def _wrong(cls: type[Composite], field: Field, value: object) -> DecodeError:
    return DecodeError(f"{_label(cls, field)} is not a valid {field.amqp} but {type(value).__name__}")


def _show(descriptor: object) -> str:
    """Return ``descriptor`` as a short text for a log line."""
    if isinstance(descriptor, types.ULong):
        return f"{descriptor:#x}"
    return repr(descriptor)[:60] if isinstance(descriptor, str) else type(descriptor).__name__

"""The row that declares a column, and the parts of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from trouter.wire.types import ULong

#: What columns are read from: the owner of all rows, such as the router, and the object that a row is about.
Owner = TypeVar("Owner")
Thing = TypeVar("Thing")

#: Every type has these; their texts are those of ``config/schema.py``.
COMMON: Final = frozenset({"name", "identity", "type"})


#: The types of series of /metrics.
GAUGE: Final = "gauge"
COUNTER: Final = "counter"


class EntityId(int):
    """The type of a column with the identity of another entity; its values are plain numbers."""


class Form(Enum):
    """How `trouter stat` writes a value."""

    PLAIN = "as it is"
    COMMAS = "a whole number with its thousands apart"
    DASHED = "a number, a dash for none or below zero"
    SPAN = "seconds as ddd:hh:mm:ss, a dash for null"
    BLOCKED = "seconds as hh:mm:ss, a dash for none"
    YES_NO = "yes or no"
    LISTED = "a list in brackets"
    OR_NIL = "a text, `(nil)` for an empty one"
    DASH_FOR_NONE = "a text, a dash for none, in CSV too"
    NONE_FOR_ZERO = "a number, nothing for zero, in CSV too"
    SECONDS_OF_MS = "milliseconds as seconds"
    DATE_OF_MS = "milliseconds since 1970 as a date"


class Merge(Enum):
    """What becomes of the values that several workers have in one column, for an entity of which each has a part."""

    FIRST = "that of the first worker which has one"
    SUM = "their sum"
    LARGEST = "the largest"
    SMALLEST = "the smallest"
    JOIN = "the items of all lists, each once; of all maps the sums or the items of each key"
    ANY_TEXT = "the first text that is not empty"
    DRAIN = "the state of a drain, which goes on until all are done"


@dataclass(frozen=True, slots=True)
class Head:
    """The column of a table of `trouter stat`: its head, and how it is shown."""

    text: str
    form: Form = Form.PLAIN
    #: Left out if the router does not know the attribute, as an older one.
    needs: bool = True
    #: Only with -v.
    detail: bool = False
    #: It only grows, so that its rate means something.
    counter: bool = False
    #: A value other than zero is worth a look.
    alarm: bool = False
    #: Requested by the column's other name, the one that Qpid Dispatch has.
    by_twin: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """The series of /metrics with the same value: its name without `qdr_` and `_total`, its type, its help."""

    name: str
    kind: str
    help: str


@dataclass(frozen=True, slots=True)
class Column(Generic[Owner, Thing]):
    """One column of a type of running objects."""

    name: str
    #: The type of its values: one of ``wire/types.py``, str, bool, list, dict, EntityId, or int for a number that is
    #: encoded as an AMQP int, or as a long if it does not fit.
    type: type
    #: What it is, for the schema and the manual.
    text: str
    #: Returns the value; a number as a plain int or float, which is cut to the range of its type.
    read: Callable[[Owner, Thing], object]
    #: The values of an enum.
    values: tuple[str, ...] = ()
    unit: str = ""
    #: Its column in `trouter stat`; None for none.
    head: Head | None = None
    #: The value may be null.
    optional: bool = False
    #: Charts can show it.
    graph: bool = False
    #: UPDATE may change it, and the value that it has otherwise.
    update: bool = False
    default: Any = None
    #: Another name under which rows carry it too.
    twin: str = ""
    #: Only trouter has it. The columns of Qpid Dispatch come first, in its order.
    extra: bool = False
    series: Series | None = None
    #: What becomes of the values of several workers; None for the sum of numbers, and the first of all others.
    merge: Merge | None = None

    @property
    def merged_by(self) -> Merge:
        """What becomes of the values of several workers."""
        is_number = issubclass(self.type, int) and self.type is not bool
        return self.merge or (Merge.SUM if is_number else Merge.FIRST)


def count(
    name: str,
    text: str,
    read: Callable[[Owner, Thing], object],
    head: Head | None = None,
    *,
    series: Series | None = None,
    extra: bool = False,
) -> Column[Owner, Thing]:
    """Return a column with a number of deliveries."""
    return Column(name, ULong, text, read, unit="deliveries", head=head, graph=True, extra=extra, series=series)

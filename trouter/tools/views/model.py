"""The parts of a view: requests to the router, and listings made of the answers. The views are tables of these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from trouter.columns.column import Column, Form, Head
from trouter.config.schema import Attribute
from trouter.tools import formats
from trouter.tools.words import PREFIX

from .lookup import Lookup

if TYPE_CHECKING:
    from trouter.tools.node import NodeClient

Row = Mapping[str, object]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """A QUERY of an entity type, or an operation of the management node whose result ``rows`` makes rows of."""

    entity: str = ""
    attributes: tuple[str, ...] = ()
    #: `--limit` applies to it.
    limited: bool = False
    operation: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)
    rows: Callable[[object], Rows] | None = None
    #: A refusal counts as no rows.
    optional: bool = False
    #: Attributes that the rows have besides, if the router has several workers.
    of_workers: tuple[str, ...] = ()

    @property
    def entity_type(self) -> str:
        """The full name of the type."""
        return PREFIX + self.entity


@dataclass(frozen=True, slots=True)
class ViewField:
    """A column of a listing: its head, the source of its value and the format."""

    head: str
    value: Callable[[Row], object]
    show: Callable[[object], str] = formats.plain
    #: Left out when the answer knows no such attribute, as that of Qpid Dispatch.
    needs: str = ""
    #: Only with -v.
    detail: bool = False
    #: It only grows, so that its rate means something.
    counter: bool = False
    #: A value here is worth a look.
    alarm: bool = False
    #: The attributes that its value is made of.
    reads: tuple[str, ...] = ()


def attribute(
    head: str, name: str, show: Callable[[object], str] = formats.plain, *, needs: bool = False, **marks: bool
) -> ViewField:
    """Return a column that is an attribute of the entity; ``marks`` are fields of ``ViewField``, by their names."""
    return ViewField(head, lambda row: row.get(name), show, name if needs else "", reads=(name,), **marks)


_FORMATS: Final = {
    Form.PLAIN: formats.plain,
    Form.COMMAS: formats.commas,
    Form.DASHED: formats.dashed,
    Form.SPAN: formats.span,
    Form.BLOCKED: formats.blocked,
    Form.YES_NO: formats.yes_or_no,
    Form.LISTED: formats.listed,
    Form.OR_NIL: formats.or_nil,
    Form.SECONDS_OF_MS: formats.seconds_of_ms,
    Form.DATE_OF_MS: formats.date_of_ms,
}


#: The value in place of none, an empty text or zero, of the forms that have one.
_INSTEAD: Final = {Form.DASH_FOR_NONE: "-", Form.NONE_FOR_ZERO: None}


def fields_of(
    columns: Iterable[Column[Any, Any] | Attribute], first: Sequence[str | ViewField] = (), *, others: bool = True
) -> tuple[ViewField, ...]:
    """Return the fields of the columns or attributes with a head: ``first``, heads or fields, then the ``others``."""
    found = {head.text: _field_of(column, head) for column in columns if (head := column.head) is not None}
    placed = [each if isinstance(each, ViewField) else found.pop(each) for each in first]
    return (*placed, *found.values()) if others else tuple(placed)


def _field_of(column: Column[Any, Any] | Attribute, head: Head) -> ViewField:
    found = attribute(
        head.text,
        column.twin if head.by_twin else column.name,
        _FORMATS.get(head.form, formats.plain),
        needs=head.needs,
        detail=head.detail,
        counter=head.counter,
        alarm=head.alarm,
    )
    if head.form not in _INSTEAD:
        return found
    instead = _INSTEAD[head.form]
    return replace(found, value=lambda row: found.value(row) or instead)


def attributes_of(fields: Iterable[ViewField], last: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the attributes to request for these fields, each once; those that are named ``last`` as the last ones."""
    names = dict.fromkeys(name for each in fields for name in each.reads)
    return tuple(sorted(names, key=tuple(last).count))


@dataclass(frozen=True, slots=True)
class Listing:
    """A titled table: one entity a row, or, when ``upright``, one attribute of the only entity a row."""

    title: str
    fields: Sequence[ViewField]
    rows: Rows
    upright: bool = False
    #: Shown instead of an empty table; None shows the title alone.
    empty: str | None = None
    #: The attribute that identifies a row over time.
    key: str = "identity"
    #: Formats a row as a line, if the listing is no table.
    line: Callable[[Row], str] | None = None
    #: The key of the rows in JSON: the type of the entities, as `manage` names it. "" for what other rows have already.
    table: str = ""

    @property
    def name(self) -> str:
        """The title as a name: its first line with words in it."""
        return next((line for line in self.title.split("\n") if line), "")

    def columns(self, *, verbose: bool) -> list[ViewField]:
        """Return the fields to show: those that the answer has, with details only if ``verbose``."""
        known = self.rows[0] if self.rows else {}
        wanted = [column for column in self.fields if verbose or not column.detail]
        return [column for column in wanted if not column.needs or column.needs in known]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of rows: whether a row stays for a wanted text, and the other rows that this needs."""

    keep: Callable[[Row, str, Lookup], bool]
    connections: bool = False
    links: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """One view. ``listings`` makes its listings of the answers, which come in the order of the requests."""

    name: str
    flags: tuple[str, ...]
    help: str
    requests: tuple[ViewRequest, ...]
    listings: Callable[[Sequence[Rows]], list[Listing]]
    #: Date and router id come first.
    dated: bool = True
    #: Gets the answers if that takes more than requests to one node.
    gather: Callable[[NodeClient], Awaitable[list[Rows]]] | None = None
    #: The filters that apply to the rows of the first request.
    filters: Mapping[str, Filter] = field(default_factory=dict)


def simple(
    title: str,
    fields: Sequence[ViewField],
    table: str,
    *,
    sort: str = "",
    empty: str | None = None,
    key: str = "identity",
) -> Callable[[Sequence[Rows]], list[Listing]]:
    """Return one listing of the rows of one request, sorted by a column if one is named."""
    column = next((column for column in fields if column.head == sort), None)

    def listings(answers: Sequence[Rows]) -> list[Listing]:
        rows = answers[0]
        if column is not None:
            rows = sorted(rows, key=lambda row: str(column.value(row) or ""))
        return [Listing(title, fields, rows, empty=empty, key=key, table=table)]

    return listings

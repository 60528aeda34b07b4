"""The base classes of all providers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trouter.columns.rows import Rows
from trouter.config.schema import EntityType
from trouter.management.values import to_wire

Row = Mapping[str, object]


class Provider(ABC):
    """The entities of one type. A key stands for one of them while it lives, and is not used again.

    ``rooted``: names and identities are unique among all rooted types, and are found without a type.
    """

    rooted = True

    def __init__(self, kind: EntityType) -> None:
        self.kind = kind

    @abstractmethod
    def keys(self) -> Sequence[Any]:
        """Return the keys of all entities, in a stable order."""

    def named_keys(self) -> Sequence[Any]:
        """Return the keys for the listing of every type, which omits entities without a name."""
        return self.keys()

    @abstractmethod
    def row(self, key: Any) -> Row | None:
        """Return all attributes of an entity; None if it is gone."""

    def plain_row(self, key: Any) -> Row | None:
        """Return the row for listings of several types: with a unique name and identity."""
        return self.row(key)

    def shown_row(self, row: Row) -> Row:
        """Return a row of an entity as the one who asks sees it."""
        return row

    def by_identity(self, identity: str) -> Any | None:
        """Return the key of the entity with this identity; None if there is none."""
        return self._first("identity", identity)

    def by_name(self, name: str) -> Sequence[Any]:
        """Return the keys of the entities with this name."""
        found = self._first("name", name)
        return () if found is None else (found,)

    def _first(self, column: str, text: str) -> Any | None:
        return next((key for key in self.keys() if (row := self.row(key)) is not None and row[column] == text), None)

    def cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        """Return the cells of an entity as values of AMQP types; None if it is gone."""
        return _picked(self.row(key), columns)

    def plain_cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        """Return the same cells of the plain row."""
        return _picked(self.plain_row(key), columns)


def _picked(row: Row | None, columns: Sequence[str]) -> list[object] | None:
    return None if row is None else [to_wire(row.get(column)) for column in columns]


class Fixed(Provider):
    """A provider of few rows, all made at once; the rows of a listing are of one moment."""

    def __init__(self, kind: EntityType) -> None:
        super().__init__(kind)
        #: Rows of the last listing that were not read yet.
        self._listed: dict[str, Row] = {}

    @abstractmethod
    def rows(self) -> Mapping[str, Row]:
        """Return the rows by identity."""

    def identity_of(self, name: str) -> str:
        """Return the identity of the entity ``name``; the same text for most types."""
        return name

    def keys(self) -> Sequence[str]:
        self._listed = dict(self.rows())
        return list(self._listed)

    def row(self, key: str) -> Row | None:
        listed = self._listed.pop(key, None)
        return self.rows().get(key) if listed is None else listed

    def by_identity(self, identity: str) -> str | None:
        if not identity.startswith(f"{self.kind.short}/"):
            return None
        self._listed.clear()
        return identity if identity in self.rows() else None

    def by_name(self, name: str) -> Sequence[str]:
        found = self.by_identity(self.identity_of(name))
        return () if found is None else (found,)


class Listed(Fixed):
    """The objects that a function lists, each with the last part of its identity; ``rows`` has their columns.

    If ``has_names``, the name of an object is this last part, else it is the identity.
    """

    def __init__(
        self,
        kind: EntityType,
        rows: Rows,
        objects: Callable[[], Iterable[tuple[object, object]]],
        *,
        has_names: bool = False,
    ) -> None:
        super().__init__(kind)
        self._rows = rows
        self._objects = objects
        self._has_names = has_names

    def identity_of(self, name: str) -> str:
        return f"{self.kind.short}/{name}" if self._has_names else name

    def rows(self) -> Mapping[str, Row]:
        return {
            (identity := f"{self.kind.short}/{which}"): identified(self.kind, identity, self._rows.row(shown))
            for which, shown in self._objects()
        }


def identified(kind: EntityType, identity: str, row: Row) -> Row:
    """Return a row with its identity and type, and its name, if it has no other name."""
    return {**row, "name": row.get("name", identity), "identity": identity, "type": kind.full_name}


class Nothing(Provider):
    """A type without entities."""

    def keys(self) -> Sequence[Any]:
        return ()

    def row(self, key: Any) -> Row | None:
        return None

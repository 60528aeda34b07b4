"""What one who may change nothing may have judged: texts with passwords and paths that the router uses already.

Otherwise the answers would tell which files there are, what is in them, and which of many passwords is the right one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from trouter.config.configuration import Configuration
from trouter.config.nodes import Entry, is_null
from trouter.config.passwords import Secret, source_of
from trouter.config.remote import FILES, holds_secret
from trouter.config.rules import LOG_STREAMS
from trouter.config.schema import Attribute, BadValue, EntityType, Kind
from trouter.config.trusted import TABLE
from trouter.config.values import CONVERTERS

_IN_TEXT: Final = "the management level admin is needed for a check of a password that is in the text"
_UNUSED: Final = "the management level admin is needed for a check of a place that the router does not use so far"

#: The attributes whose files are judged, by the entity and the field.
_JUDGED: Final = frozenset((row.kind, row.field) for row in TABLE)


class UsedSources:
    """The passwords and paths that a configuration in force uses, by the attribute that names them."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def withheld(self, kind: EntityType, entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
        """Yield the entries of a section that are not judged, and why. Call this before anything is read."""
        for entry in entries:
            attribute = kind.field_spelled(entry.key)
            if attribute is None or is_null(entry.node) or not _is_source(kind, attribute):
                continue
            with suppress(BadValue):  # not a text: drafting reports that
                text = str(CONVERTERS[attribute.kind](attribute, entry.node))
                if attribute.secret and not source_of(text)[0]:
                    yield entry, f"{attribute.name}: {_IN_TEXT}"
                elif not (_is_no_file(attribute, text) or text in self._texts(kind, attribute)):
                    yield entry, f"{attribute.name}: {_UNUSED}"

    def _texts(self, kind: EntityType, attribute: Attribute) -> frozenset[str]:
        """Return the texts of an attribute in force, as they are written."""
        key = kind.short, attribute.field
        if key not in self._known:
            written = (
                entity.written.get(attribute.field, getattr(entity, attribute.field))
                for entity in self._configuration.of(kind.short)
            )
            self._known[key] = frozenset(
                each.reveal() if isinstance(each, Secret) else each
                for each in written
                if isinstance(each, Secret | str)
            )
        return self._known[key]


def _is_source(kind: EntityType, attribute: Attribute) -> bool:
    of_file = attribute.field in FILES or attribute.kind is Kind.PATH or (kind.entity, attribute.field) in _JUDGED
    return of_file or holds_secret(attribute)


def _is_no_file(attribute: Attribute, text: str) -> bool:
    """Return whether an attribute that may name a file names something else: a stream, or keys at a web server."""
    return (attribute.field == "output_file" and text in LOG_STREAMS) or (
        attribute.field == "oauth_jwks" and "://" in text
    )

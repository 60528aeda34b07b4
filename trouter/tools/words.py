"""Words on the command line: short names of types, and `ATTRIBUTE=VALUE`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from trouter.config.problems import nearest

from .failures import UsageError, ValidationError
from .values import value_of

if TYPE_CHECKING:
    from trouter.config.schema import EntityType

PREFIX: Final = "org.apache.qpid.dispatch."
#: Short name -> the type.
SHORT_NAMES: Final = {
    "link": "router.link",
    "node": "router.node",
    "address": "router.config.address",
    "linkRoute": "router.config.linkRoute",
    "autoLink": "router.config.autoLink",
    "exchange": "router.config.exchange",
    "binding": "router.config.binding",
}
_BOOLEANS: Final = {"yes": True, "on": True, "no": False, "off": False}


def long_type(word: str) -> str:
    """Return the name of a type as it is sent; a name with a dot stays as it is."""
    return word if not word or "." in word else PREFIX + SHORT_NAMES.get(word, word)


def known_type(word: str) -> str:
    """Return the name of a type as it is sent; UsageError for one that this version lacks, and that is nearly another.

    A router of another version may have types that are not known here, so other words, and any with a dot, are sent.
    """
    from trouter.config.types import TYPES, type_named  # noqa: PLC0415  # the whole schema

    name = long_type(word)
    if not word or "." in word or type_named(name) is not None:
        return name
    hint = nearest(word, (*SHORT_NAMES, *(kind.short for kind in TYPES if "." not in kind.short)))
    if hint:
        raise UsageError(f"there is no type {word!r}, {hint}")
    return name


def attributes_of(
    words: Iterable[str], type_name: str, *, strict: bool, lenient_booleans: bool = False
) -> dict[str, Any]:
    """Return the attributes in `NAME=VALUE` words, None for a word without `=`.

    Values have the kinds of the schema, else ValueError. If `strict`, ValidationError for an attribute that a known
    type lacks. For unknown types yes, no, on and off are booleans if `lenient_booleans`.
    """
    from trouter.config.types import type_named  # noqa: PLC0415  # the whole schema

    kind = type_named(type_name) if type_name else None
    found: dict[str, Any] = {}
    for word in words:
        name, given, text = word.partition("=")
        if not name:
            raise ValueError("an attribute without a name")
        found[name] = _value(kind, name, text, strict=strict) if given else None
        if lenient_booleans and kind is None and text in _BOOLEANS:
            found[name] = _BOOLEANS[text]
    if isinstance(found.get("type"), str):
        found["type"] = long_type(found["type"])
    return found


def secrets_of(attributes: Mapping[str, Any]) -> list[str]:
    """Return values that are passwords, as they were written."""
    return [value for name, value in attributes.items() if isinstance(value, str) and name.lower().endswith("password")]


def _value(kind: EntityType | None, name: str, text: str, *, strict: bool) -> Any:
    attribute = kind.attribute(name) if kind is not None else None
    if kind is not None and attribute is None and strict:
        raise ValidationError(f"no attribute {name!r} in {kind.full_name}{_near(kind, name)}")
    return value_of(text, attribute)


def _near(kind: EntityType, name: str) -> str:
    close = get_close_matches(name, [attribute.name for attribute in kind.attributes], 1)
    return f" (did you mean {close[0]!r}?)" if close else ""

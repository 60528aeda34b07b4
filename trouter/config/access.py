"""Parses the users, host names and addresses of vhosts and their groups (security.md 4.3 to 4.8)."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from trouter.config.schema import BadValue, Doubt
from trouter.core.patterns import PatternError, pattern_tokens

#: Both spellings of the user's name; `$${user}` is text.
USER_TOKEN: Final = re.compile(r"(?<!\$)\$\{user\}|(?<!\$)\{user\}")
MIN_FRAME: Final = 512
#: Separates the tokens of a host name that is a pattern.
HOST_SEPARATOR: Final = "."
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
#: A host and its port. An address of IPv6 stands in brackets, or has no port.
_HOST_AND_PORT: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^:]*))(?::[0-9]*)?", re.DOTALL)


def names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return users, each once."""
    return tuple(dict.fromkeys(entries))


def host_key(name: str) -> str:
    """Return the form in which host names of vhosts are compared: no port, no trailing dot, ASCII in lower case."""
    if (":" in name or "[" in name) and (match := _HOST_AND_PORT.fullmatch(name)):
        name = match[2] if match[1] is None else match[1]
    return name.removesuffix(".").translate(_LOWER)


def host_tokens(key: str) -> tuple[str, ...] | None:
    """Return the tokens of a host name, or of a pattern for such; None if it has none."""
    try:
        return pattern_tokens(key, HOST_SEPARATOR)
    except PatternError:
        return None


def aliases(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return host names; BadValue if one appears twice."""
    keys: set[str] = set()
    for entry in entries:
        if host_key(entry) in keys:
            raise BadValue(f"the alias '{entry}' appears twice", "leave one of them out")
        keys.add(host_key(entry))
    return entries


def policy_tokens(text: str) -> list[str]:
    """Return the tokens of an address or of a pattern for such; a separator at an end has an empty one beside it."""
    return text.replace("/", ".").split(".")


def address_names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return addresses, whole or ending in `*`, each once; BadValue if one has several user tokens."""
    for entry in entries:
        _at_most_one_token(entry)
    return tuple(dict.fromkeys(entries))


def address_patterns(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return address patterns, each once; BadValue for an invalid one, or a user token that is not first or last."""
    for entry in entries:
        _at_most_one_token(entry)
        tokens = policy_tokens(entry)
        if not any(tokens):
            raise BadValue(f"'{entry}' is not a pattern", "tokens between '.' or '/', e.g. a/*/#")
        where = [at for at, token in enumerate(tokens) if "{" in token and USER_TOKEN.search(token)]
        if where and not USER_TOKEN.fullmatch(tokens[where[0]]):
            raise BadValue(f"in '{entry}' the user is only a part of a token", "write e.g. ${user}/a or a/${user}")
        if where and where[0] not in {0, len(tokens) - 1}:
            raise BadValue(f"in '{entry}' the user is in the middle", "write e.g. ${user}/a or a/${user}")
    return tuple(dict.fromkeys(entries))


def frame_size(size_bytes: int) -> int:
    if 0 < size_bytes < MIN_FRAME:
        raise Doubt("size-clamped", MIN_FRAME, "is out of range", f"0, or an integer from {MIN_FRAME}")
    return size_bytes


def _at_most_one_token(entry: str) -> None:
    if entry.count("{") > 1 and len(USER_TOKEN.findall(entry)) > 1:
        raise BadValue(f"'{entry}' holds the user's name more than once", "leave one of them out")

"""Parses the users, host names and addresses of vhosts and their groups (security.md 4.3 to 4.8)."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from trouter.config.schema import BadValue, Doubt
from trouter.core.patterns import HOSTS, MANY_TEXT, POLICIES, Pattern, PatternError

#: Both spellings of the user's name; `$${user}` is text.
USER_TOKEN: Final = re.compile(r"(?<!\$)\$\{user\}|(?<!\$)\{user\}")
#: The wildcards of patterns: one token, and any number of them.
WILDCARDS: Final = frozenset({POLICIES.one, MANY_TEXT})
MIN_FRAME: Final = 512
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
#: A host and its port. An address of IPv6 stands in brackets, or has no port.
_HOST_AND_PORT: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^:]*))(?::[0-9]*)?", re.DOTALL)


def names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return users, each once."""
    return tuple(dict.fromkeys(entries))


def peers(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return users, each once; semicolons separate names that have commas, as `CN=a,O=Example; CN=b,O=Example`."""
    if any(";" in entry for entry in entries):
        entries = tuple(name.strip() for name in ",".join(entries).split(";") if name.strip())
    return names(entries)


def covers_user(entries: tuple[str, ...], user: str) -> bool:
    """Return whether entries name a user: whole, or by a beginning that ends in `*`; none names the empty user."""
    return bool(user) and any(
        user.startswith(entry[:-1]) if entry.endswith("*") else user == entry for entry in entries
    )


def goes_on(entry: str) -> bool:
    """Return whether a separator follows the user's name in an entry, so that a longer name can be one's address."""
    return (token := USER_TOKEN.search(entry)) is not None and entry[token.end() : token.end() + 1] in (".", "/")


def is_preceded(pattern: str) -> bool:
    """Return whether a wildcard precedes the user's name in a pattern, so that a longer name can end with one's own."""
    token = USER_TOKEN.search(pattern)
    return token is not None and not WILDCARDS.isdisjoint(POLICIES.split(pattern[: token.start()]))


def is_separated(user: str) -> bool:
    """Return whether another user's name and a separator may be the beginning of a user's name."""
    return "." in user or "/" in user


def leads_to_management(target: str) -> bool:
    """Return whether an entry of targets or targetPattern appears to cover an address of the agent."""
    beginning, star, _ = target.partition("*")
    beginning = beginning.partition("#")[0]
    agents = ("$management", "_local/$management", "_topo/0/")
    return any(agent.startswith(beginning) for agent in agents) if star or "#" in target else "$management" in target


def host_key(name: str) -> str:
    """Return the form in which host names of vhosts are compared: no port, no trailing dot, ASCII in lower case."""
    if (":" in name or "[" in name) and (match := _HOST_AND_PORT.fullmatch(name)):
        name = match[2] if match[1] is None else match[1]
    return name.removesuffix(".").translate(_LOWER)


def host_pattern(key: str) -> Pattern | None:
    """Return a host name, or a pattern for such, parsed; None if it has no token."""
    try:
        return HOSTS.parse(key)
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


def address_names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return addresses, whole or ending in `*`, each once; BadValue if one has several user tokens."""
    for entry in entries:
        _at_most_one_token(entry)
    return tuple(dict.fromkeys(entries))


def address_patterns(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return address patterns, each once; BadValue for an invalid one, or a user token that is not first or last."""
    for entry in entries:
        _at_most_one_token(entry)
        tokens = POLICIES.split(entry)
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

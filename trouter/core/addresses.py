"""Addresses: from the text of a client to the lookup key (routing.md 1.1), and those that the router makes up (1.3a).

Parsing strips scheme and host, drops one trailing separator, then classifies by the leading text. Comparison is
case-sensitive and exact; nothing is unescaped or normalised further. The functions are pure and take linear time; the
caller bounds the length of the text.
"""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

LOCAL: Final = "L"
TOPOLOGICAL: Final = "T"
ROUTER: Final = "R"
AREA: Final = "A"
EDGE: Final = "H"
MOBILE: Final = "M"

#: The address to which an edge router sends everything that is elsewhere.
UPLINK_KEY: Final = "L_edge"

#: Longer addresses are refused, which bounds the cost of parsing and matching, in bytes.
MAX_ADDRESS_BYTES: Final = 4096
DEFAULT_AREA: Final = "0"
FIRST_PHASE: Final = "0"
FALLBACK_PHASE: Final = "F"
PHASES: Final = frozenset("0123456789F")
#: The number of the fallback phase in annotations: its letter's distance from "0" (inter-router.md 2.7).
FALLBACK_NUMBER: Final = ord(FALLBACK_PHASE) - ord(FIRST_PHASE)

#: More than Qpid Dispatch's 15, so that a client cannot find one by trying (security.md 7.4).
TEMPORARY_LENGTH: Final = 22
#: The beginning of the keys of dynamic sources, and of made-up addresses.
TEMPORARY_KEY: Final = "Ltemp."
TEMPORARY_NAMES: Final = ("temp.", "_$temp.")
_TEMPORARY_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_"


class Address(NamedTuple):
    """A parsed address. A mobile ``text`` includes the tenant; patterns of address configuration match against it."""

    #: L, T, R, A, H or M: the first character of the key, which decides which links may serve it.
    letter: str
    #: The key of lookup tables.
    key: str
    #: The whole address without scheme, host and trailing separator.
    text: str
    #: The text behind the leading part that chose the class; all of a mobile address, without the tenant.
    rest: str

    def key_in_phase(self, phase: str) -> str:
        """Return the key of a mobile address in ``phase``; other classes have no phases and keep their key."""
        return f"{MOBILE}{phase}{self.text}" if self.letter == MOBILE else self.key


def phase_of(key: str) -> int:
    """Return the number of a key's phase in annotations; 0 for classes without phases."""
    return ord(key[1]) - ord(FIRST_PHASE) if key.startswith(MOBILE) else 0


def phase_named(number: int) -> str:
    """Return the phase with an annotation's ``number``, "" if there is none."""
    if number == FALLBACK_NUMBER:
        return FALLBACK_PHASE
    return str(number) if 0 <= number <= 9 else ""


def parse_address(
    text: str,
    *,
    router_id: str,
    mode: str = "standalone",
    phase: str = FIRST_PHASE,
    tenant: str = "",
) -> Address:
    """Return ``text`` classified for router ``router_id``; only a mobile address takes ``phase`` and ``tenant``.

    ``phase`` is one of PHASES, else ValueError; ``tenant`` has no slash at its end. Any text is an address, that of a
    symbol too: the standard gives an address no type (3.5.3).
    """
    text = str(text)
    if phase not in PHASES:
        raise ValueError(f"no such phase: {phase!r}")
    path = plain(text)
    if path.startswith("_"):
        reserved = _parse_reserved(path, router_id, mode == "edge")
        if reserved is not None:
            return reserved
    qualified = f"{tenant}/{path}" if tenant else path
    return Address(MOBILE, f"{MOBILE}{phase}{qualified}", qualified, path)


def plain(text: str) -> str:
    """Return an address without scheme, host and one trailing separator."""
    path = strip_location(text)
    return path[:-1] if path.endswith((".", "/")) else path


def strip_location(text: str) -> str:
    """Return ``text`` without scheme and host; all of it if no path follows the host."""
    if text.startswith("/"):
        location_end = 1
    else:
        location_end = text.find(":/") + 2  # a scheme is any text before the first ":/", even "a b/c"
        if location_end == 1:
            return text
    if not text.startswith("/", location_end):
        return text[location_end:]
    host_end = text.find("/", location_end + 1)
    return text if host_end < 0 else text[host_end + 1 :]


def _parse_reserved(path: str, router_id: str, on_edge: bool) -> Address | None:
    """Return the address if ``path`` has a complete reserved form; None if it is mobile."""
    head, *parts = path.split("/", 3)
    if head == "_local" and parts:
        return _local(path, path[len("_local/") :])
    if head == "_edge" and len(parts) >= 2:
        its_way = path[len("_edge/") :]
        if its_way.startswith(f"{router_id}/"):  # ids may have slashes in them
            return _local(path, its_way[len(router_id) + 1 :])
        there, rest = parts[0], its_way[len(parts[0]) + 1 :]
        return Address(LOCAL, UPLINK_KEY, path, rest) if on_edge else Address(EDGE, EDGE + there, path, rest)
    if head == "_topo" and len(parts) >= 2:
        return _parse_topological(path, parts, router_id, on_edge)
    return None


def _parse_topological(path: str, parts: list[str], router_id: str, on_edge: bool) -> Address | None:
    """Return the address of ``path``, _topo/AREA/ROUTER/REST with at least AREA and a slash; None if it is mobile."""
    its_area, there, rest = parts[0], parts[1], parts[2] if len(parts) == 3 else None
    if there == "all" and rest is not None and its_area in ("all", DEFAULT_AREA):
        return Address(TOPOLOGICAL, TOPOLOGICAL + rest, path, rest)
    if its_area not in ("all", DEFAULT_AREA):
        rest = path[len("_topo/") + len(its_area) + 1 :]
        return Address(LOCAL, UPLINK_KEY, path, rest) if on_edge else Address(AREA, AREA + its_area, path, rest)
    if rest is None:
        return None
    its_way = path[len("_topo/") + len(its_area) + 1 :]
    if its_way.startswith(f"{router_id}/"):  # ids may have slashes in them
        return _local(path, its_way[len(router_id) + 1 :])
    return Address(LOCAL, UPLINK_KEY, path, rest) if on_edge else Address(ROUTER, ROUTER + there, path, rest)


def _local(path: str, rest: str) -> Address:
    return Address(LOCAL, LOCAL + rest, path, rest)


def temporary_token() -> str:
    """Return 22 random characters from a-zA-Z0-9+_ that no client can guess (132 bits)."""
    return token_of(secrets.token_bytes(TEMPORARY_LENGTH))


def token_of(octets: bytes) -> str:
    """Return the octets as characters of a token, with six bits of each."""
    return "".join([_TEMPORARY_ALPHABET[byte & 63] for byte in octets])


def temporary_source(router_id: str, token: str, *, mode: str = "standalone") -> str:
    """Return a new address for a dynamic source: local to this router, and reachable from all others."""
    if mode == "edge":
        return f"amqp:/_edge/{router_id}/temp.{token}"
    return f"amqp:/_topo/{DEFAULT_AREA}/{router_id}/temp.{token}"


def temporary_target(token: str) -> str:
    """Return a new address for a dynamic target: mobile, so that receivers on any router can use it."""
    return f"amqp:/_$temp.{token}"

"""Any annotations that are parsed, changed and composed equal those that the reference decodes, changes and encodes.

The first byte chooses the router's changes. The reference decodes the section, drops the routers' keys and appends the
new ones. The bytes of the sender's entries stay as they were.

Allowed: InvalidAnnotation, because most bytes are no annotations.
"""

from __future__ import annotations

from typing import Any

from trouter.testing.fuzz import behind, values
from trouter.wire.annotations import InvalidAnnotation, compose_annotations, parse_annotations
from trouter.wire.codec import decode_all, encode
from trouter.wire.errors import DecodeError
from trouter.wire.types import Described, PairMap, Symbol

MUTATOR = behind(1, values)
COVERS = ("trouter.wire.annotations",)

OURS = frozenset(f"x-opt-qd.{name}" for name in ("", "class", "phase", "stream", "to", "ingress", "trace"))


def pairs_of(section: Any) -> list[tuple[Any, Any]]:
    value = section.value if isinstance(section, Described) else None
    assert isinstance(value, dict | PairMap)
    return list(value.items())


def slow(data: bytes, here: str, phase: int, to: str | None) -> bytes:
    """Return the section as the reference writes it, encoded, so that two sections can be compared by value."""
    kept: list[tuple[Any, Any]] = []
    theirs: dict[str, Any] = {}
    for key, value in pairs_of(decode_all(data)):
        if isinstance(key, Symbol) and key in OURS:
            theirs[key] = value
        else:
            kept.append((key, value))
    trace = [*(theirs.get("x-opt-qd.trace") or []), here]
    ingress = theirs.get("x-opt-qd.ingress", here)
    added: list[tuple[str, Any]] = []
    if phase:
        added.append(("x-opt-qd.phase", phase))
    if theirs.get("x-opt-qd.stream"):
        added.append(("x-opt-qd.stream", 1))
    if to is not None:
        added.append(("x-opt-qd.to", to))
    added += [("x-opt-qd.ingress", str(ingress)), ("x-opt-qd.trace", [str(entry) for entry in trace])]
    return comparable([*kept, *((Symbol(key), value) for key, value in added)])


def comparable(pairs: list[tuple[Any, Any]]) -> bytes:
    """Return pairs as bytes in which each number has one encoding."""
    return b"".join(encode(key) + encode(plain(value, key)) for key, value in pairs)


def plain(value: Any, key: object) -> Any:
    return int(value) if isinstance(value, int) and isinstance(key, Symbol) and key in OURS else value


def check(data: bytes) -> None:
    how, section = (data[0], data[1:]) if data else (0, b"")
    phase, to, here = (0, 1, 200)[how % 3], (None, "closest/a", "")[(how >> 2) % 3], f"0/R{how}"
    try:
        found = parse_annotations(section, 0, len(section), True)
    except InvalidAnnotation:
        return
    composed = compose_annotations(
        found.user,
        found.user_count,
        phase,
        found.stream,
        to,
        here if found.ingress is None else found.ingress,
        (*found.trace, here),
    )
    assert found.user in composed
    try:
        expected = slow(section, here, phase, to)
    except DecodeError:
        return  # a value of the sender that only the reference decodes
    except AssertionError:
        return  # a map with a key twice, which only the reference refuses
    if not keys_twice(section):
        assert comparable(pairs_of(decode_all(composed))) == expected


def keys_twice(section: bytes) -> bool:
    """Return whether a key occurs twice; the parser takes the last."""
    names = [key for key, _ in pairs_of(decode_all(section)) if isinstance(key, Symbol)]
    return len(names) != len(set(names))

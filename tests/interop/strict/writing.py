"""Qpid Dispatch's writer: values in its encodings, performatives, and messages with their sections."""

from __future__ import annotations

from tests.interop.recorded.forms import Form, uint, write

NULL: Form = ("null", None)
YES: Form = ("true", True)
NO: Form = ("false", False)
DETACH = "link-detach"
ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27


def text(value: str) -> Form:
    """Return a string."""
    return ("str8" if len(value.encode()) < 256 else "str32", value)


def symbol(value: str) -> Form:
    """Return a symbol."""
    return ("sym8" if len(value) < 256 else "sym32", value)


def integer(value: int) -> Form:
    """Return an int, or a long if the value needs one."""
    return ("smallint" if -128 <= value < 128 else "int" if abs(value) < 2**31 else "long", value)


def long(value: int) -> Form:
    """Return a long."""
    return ("smalllong" if -128 <= value < 128 else "long", value)


def listed(*items: Form) -> Form:
    """Return a list."""
    return ("list32", list(items)) if items else ("list0", [])


def mapped(*entries: tuple[Form, Form]) -> Form:
    """Return a map."""
    return ("map32", [each for entry in entries for each in entry])


def described(code: int, content: Form) -> Form:
    """Return a value with a descriptor."""
    return ("described", [("smallulong", code), content])


def error(condition: str, description: str) -> Form:
    """Return an error."""
    return described(0x1D, listed(symbol(condition), text(description)))


def source(address: str | None = None, capability: str = "", *, dynamic: bool = False) -> Form:
    """Return a source, with one bare capability."""
    named = NULL if address is None else text(address)
    fields = [named, uint(0), symbol(DETACH), uint(0), YES if dynamic else NO, NULL, NULL, NULL, NULL, NULL]
    return described(0x28, listed(*fields, symbol(capability) if capability else NULL))


def target(address: str | None = None, capability: str = "") -> Form:
    """Return a target, with one bare capability."""
    named = NULL if address is None else text(address)
    fields = [named, uint(0), symbol(DETACH), uint(0), NO, NULL]
    return described(0x29, listed(*fields, symbol(capability) if capability else NULL))


def way(name: str, to: str | None = None) -> Form:
    """Return the annotations of a message that enters the network at ``name``."""
    entries = [] if to is None else [(symbol("x-opt-qd.to"), text(to))]
    entries.append((symbol("x-opt-qd.ingress"), text(f"0/{name}")))
    return mapped(*entries, (symbol("x-opt-qd.trace"), listed(text(f"0/{name}"))))


def message(
    value: Form,
    *,
    annotations: Form | None = None,
    to: str | None = None,
    reply_to: str | None = None,
    correlation: str | None = None,
    properties: Form | None = None,
) -> bytes:
    """Return the bytes of a message with a value."""
    parts = [described(0x70, listed(NO))]
    if annotations is not None:
        parts.append(described(0x72, annotations))
    fields = [NULL, NULL, *(NULL if each is None else text(each) for each in (to, None, reply_to, correlation))]
    parts.append(described(0x73, listed(*fields)))
    if properties is not None:
        parts.append(described(0x74, properties))
    return b"".join(map(write, [*parts, described(0x77, value)]))

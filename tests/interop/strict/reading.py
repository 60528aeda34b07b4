"""Qpid Dispatch's reader, and its reaction to other encodings: it skips a value of a type that it does not know.

The functions take forms (`tests.interop.recorded.forms`), which distinguish a symbol from an array of one symbol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.interop.recorded.forms import Form, pairs, plain, sections
from tests.interop.recorded.recording import Frame

TEXT = frozenset({"str8", "str32", "sym8", "sym32"})
STRING = frozenset({"str8", "str32"})
SYMBOL = frozenset({"sym8", "sym32"})
NUMBER = frozenset(
    {"smallint", "int", "smalllong", "long", "uint0", "smalluint", "uint", "ulong0", "smallulong", "ulong"}
)
INT = frozenset({"smallint", "int"})
LIST = frozenset({"list0", "list8", "list32"})
MAP = frozenset({"map8", "map32"})
#: By opcode: the entries that a message of routers must have, and the encodings that each may have.
ENTRIES = {
    "HELLO": {"instance": NUMBER, "seen": LIST},
    "RA": {"instance": NUMBER, "ls_seq": NUMBER, "mobile_seq": NUMBER},
    "LSR": {},
    "LSU": {"instance": NUMBER, "ls_seq": NUMBER, "ls": MAP},
    "MAR": {"have_seq": NUMBER},
    "MAU": {"mobile_seq": NUMBER},
}
LINK_STATE = {"id": TEXT, "ls_seq": NUMBER, "peers": MAP}
HEADER, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, VALUE = 0x70, 0x72, 0x73, 0x74, 0x77
#: Positions of fields.
OFFERED, OPEN_PROPERTIES = 7, 9
SOURCE, TARGET = 5, 6
SOURCE_CAPABILITIES, TARGET_CAPABILITIES = 10, 6


class Unread(ValueError):
    """Qpid Dispatch refuses this; the text has the reason."""


def item(form: Form, place: int) -> Form:
    """Return a field of a list with a descriptor; null if it is left out."""
    values = form[1][1][1] if form[0] == "described" else form[1] or ()
    found: Form = values[place] if place < len(values) else ("null", None)
    return found


def terminus(attach: Frame, *, mine: bool) -> Form:
    """Return the source or target of a peer's attach: the one on the side that reads (``mine``), or the other."""
    return item(attach.form, SOURCE if attach.fields["role"] is mine else TARGET)


def address(form: Form) -> str | None:
    """Return the address of a terminus."""
    text = item(form, 0)
    return text[1] if text[0] in STRING else None


def capability(attach: Frame) -> str:
    """Return the capability of a link of routers: one bare symbol, of the terminus on the reading side; "" if none."""
    place = SOURCE_CAPABILITIES if attach.fields["role"] else TARGET_CAPABILITIES
    form = item(terminus(attach, mine=True), place)
    return form[1] if form[0] in SYMBOL else ""


def offers(opened: Frame, name: str) -> bool:
    """Return whether an open offers a capability; Qpid Dispatch reads arrays of several here, too."""
    form = item(opened.form, OFFERED)
    return (form[0] in SYMBOL and form[1] == name) or (
        form[0].startswith("array") and (("sym32", name) in form[1] or ("sym8", name) in form[1])
    )


def properties(opened: Frame) -> dict[str, Form]:
    """Return the properties of an open, up to the first key that is no symbol."""
    found: dict[str, Form] = {}
    form = item(opened.form, OPEN_PROPERTIES)
    for key, value in pairs(form) if form[0] in MAP else ():
        if key[0] not in SYMBOL:
            break
        found[key[1]] = value
    return found


@dataclass
class Annotations:
    """The annotations of a message. ``lost`` has the keys at positions where Qpid Dispatch does not read them."""

    own: dict[str, Any] = field(default_factory=dict)
    phase: int = 0
    to: str | None = None
    ingress: str | None = None
    trace: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


_WAY = {"phase": NUMBER, "stream": NUMBER, "to": STRING, "ingress": STRING, "trace": LIST}
_PREFIX = "x-opt-qd."


def way_of(message: bytes) -> Annotations:
    """Return the annotations of a message, whose own keys must come first; raise Unread if a type is wrong."""
    found = Annotations()
    form = sections(message).get(ANNOTATIONS, ("map8", []))
    if form[0] not in MAP:
        raise Unread("annotations that are no map")
    begun = ended = False
    for key, value in pairs(form):
        name = key[1].removeprefix(_PREFIX) if key[0] in SYMBOL and key[1].startswith(_PREFIX) else ""
        begun = begun or bool(name)
        ended = ended or (begun and not name)
        if ended:
            found.lost.append(key[1])
        elif not name:
            found.own[key[1]] = plain(value)
        elif name in _WAY:
            if value[0] not in _WAY[name]:
                raise Unread(f"{key[1]} is {value[0]}")
            setattr(found, name, plain(value))
    bad = [each for each in _trace(form) if each[0] not in STRING]
    if bad:
        raise Unread(f"the trace has {bad[0][0]}")
    return found


def _trace(form: Form) -> list[Form]:
    return next((value[1] for key, value in pairs(form) if key[1] == f"{_PREFIX}trace" and value[0] in LIST), [])


def control(message: bytes) -> tuple[str, str, dict[str, Any]]:
    """Return the opcode, the address and the body of a message of routers; raise Unread if one is wrong."""
    found = sections(message)
    opcode = plain(found.get(APPLICATION_PROPERTIES, ("map8", []))).get("opcode")
    to = item(found.get(PROPERTIES, ("list0", [])), 2)
    body = found.get(VALUE, ("null", None))
    if opcode not in ENTRIES:
        raise Unread(f"the opcode {opcode!r}")
    if to[0] not in STRING:
        raise Unread(f"{opcode} goes to {to[0]}")
    _hold(opcode, body, {"id": TEXT, "pv": NUMBER, **ENTRIES[opcode]})
    entries = {key[1]: value for key, value in pairs(body)}
    for name in ("seen", "exist", "add", "del", "hints"):
        if name in entries:
            _hold_items(f"{opcode} {name}", entries[name], NUMBER if name == "hints" else STRING)
    if opcode == "LSU":
        _hold("LSU ls", entries["ls"], LINK_STATE)
        for peer, cost in pairs({key[1]: value for key, value in pairs(entries["ls"])}["peers"]):
            if peer[0] not in STRING or cost[0] not in NUMBER:
                raise Unread(f"LSU peers has {peer[0]}: {cost[0]}")
    if opcode == "MAU" and ("exist" in entries, "add" in entries, "del" in entries) not in (
        (True, False, False),
        (False, True, True),
    ):
        raise Unread("a MAU with neither all addresses nor what changed")
    return opcode, to[1], plain(body)


def _hold(what: str, form: Form, wanted: dict[str, frozenset[str]]) -> None:
    if form[0] not in MAP:
        raise Unread(f"{what} is {form[0]}")
    entries = {key[1]: value for key, value in pairs(form) if key[0] in TEXT}
    for name, kinds in wanted.items():
        kind = entries.get(name, ("absent", None))[0]
        if kind not in kinds:
            raise Unread(f"{what}: {name} is {kind}")


def _hold_items(what: str, form: Form, kinds: frozenset[str]) -> None:
    if form[0] not in LIST or any(each[0] not in kinds for each in form[1]):
        raise Unread(f"{what} is {form[0]} of {sorted({each[0] for each in form[1] or ()})}")

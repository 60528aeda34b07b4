"""The recorded conversations as frames, and the comparison of two frames."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.interop.recorded.forms import Form, is_same_type, plain, read, read_all

FOLDER = Path(__file__).parent
PERFORMATIVES = {
    0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer", 0x15: "disposition",
    0x16: "detach", 0x17: "end", 0x18: "close", 0x40: "mechanisms", 0x41: "init", 0x44: "outcome",
}  # fmt: skip
#: The fields of lists with a descriptor, as the standard names them.
FIELDS = {
    0x10: "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales "
    "offered-capabilities desired-capabilities properties",
    0x11: "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered-capabilities "
    "desired-capabilities properties",
    0x12: "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled "
    "initial-delivery-count max-message-size offered-capabilities desired-capabilities properties",
    0x13: "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count link-credit "
    "available drain echo properties",
    0x14: "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume aborted batchable",
    0x15: "role first last settled state batchable",
    0x16: "handle closed error",
    0x18: "error",
    0x28: "address durable expiry-policy timeout dynamic dynamic-node-properties distribution-mode filter "
    "default-outcome outcomes capabilities",
    0x29: "address durable expiry-policy timeout dynamic dynamic-node-properties capabilities",
    0x40: "sasl-server-mechanisms",
    0x41: "mechanism initial-response hostname",
    0x44: "code additional-data",
    0x70: "durable priority ttl first-acquirer delivery-count",
    0x73: "message-id user-id to subject reply-to correlation-id content-type",
}
#: The value of a null field, where trouter writes it out.
DEFAULTS = {"handle-max": 0xFFFFFFFF, "incomplete-unsettled": False, "settled": False, "more": False}
SECTIONS = {
    0x70: "header", 0x72: "message-annotations", 0x73: "properties", 0x74: "application-properties", 0x75: "data",
    0x77: "value",
}  # fmt: skip


@dataclass
class Frame:
    """A frame or a protocol header; a delivery in several frames is one, with all its payload."""

    octets: bytes
    channel: int = 0
    kind: str = "header"
    form: Form = ("null", None)
    payload: bytes = b""
    frames: int = 1
    #: The fields of the performative by their names, without encodings.
    fields: dict[str, Any] = field(default_factory=dict)
    #: The name of the link, if the frame has a handle.
    link: str = ""

    def sections(self) -> dict[str, Form]:
        """Return the sections of the message by name, empty for an incomplete payload."""
        return {SECTIONS[int(form[1][0][1])]: form[1][1] for form in read_all(self.payload)}

    @property
    def opcode(self) -> str:
        """Return the opcode of a message of routers, "" for any other."""
        if self.kind != "transfer" or self.fields.get("more") or len(self.payload) > 2000:
            return ""
        opcode = plain(self.sections().get("application-properties", ("map8", []))).get("opcode", "")
        return opcode if isinstance(opcode, str) else "lookup"

    @property
    def is_heartbeat(self) -> bool:
        """Whether this is the heartbeat that an edge router sends every two seconds."""
        return self.kind == "transfer" and bool(self.fields.get("settled")) and self.payload[-3:-1] == b"\x77\x54"


@dataclass
class Step:
    """One line of a recording: a frame of ``side``, or an action of the clients of ``side``."""

    side: str
    frame: Frame | None = None
    action: str = ""


def frame_of(octets: bytes) -> Frame:
    """Return the frame in these bytes."""
    if octets.startswith(b"AMQP"):
        return Frame(octets)
    start = octets[4] * 4
    if start == len(octets):
        return Frame(octets, kind="empty")
    form, end = read(octets, start)
    code = form[1][0][1]
    values = [plain(each) for each in form[1][1][1]]
    fields = dict(zip(FIELDS.get(code, "").split(), values, strict=False))
    channel = int.from_bytes(octets[6:8], "big")
    return Frame(octets, channel, PERFORMATIVES[code], form, octets[end:], 1, fields)


def take_frame(gathered: bytearray) -> Frame | None:
    """Remove the next frame from a stream and return it; None while it is incomplete."""
    if len(gathered) < 8:
        return None
    size = 8 if gathered.startswith(b"AMQP") else int.from_bytes(gathered[:4], "big")
    if len(gathered) < size:
        return None
    octets = bytes(gathered[:size])
    del gathered[:size]
    return frame_of(octets)


class Joiner:
    """Join the frames of a delivery into one."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, Any], Frame] = {}

    def join(self, frame: Frame) -> Frame | None:
        """Return the frame, the delivery that it ends, or None in the middle of one."""
        if frame.kind != "transfer":
            return frame
        key = frame.channel, frame.fields["handle"]
        begun = self._open.pop(key, None)
        if begun is not None:
            begun.payload += frame.payload
            begun.frames += 1
        whole = begun or replace(frame)
        if frame.fields.get("more"):
            self._open[key] = whole
            return None
        return whole


def steps(name: str) -> list[Step]:
    """Return the lines of a recording."""
    return list(_steps((FOLDER / f"{name}.txt").read_text(encoding="ascii")))


def _steps(text: str) -> Iterator[Step]:
    for line in text.splitlines():
        side, _, rest = line.partition(" ")
        if side == "!":
            side, _, action = rest.partition(" ")
            yield Step(side, action=action)
        elif side in ("D", "L"):
            digits = re.sub(r"\((..)\*(\d+)\)", lambda found: found[1] * int(found[2]), rest)
            yield Step(side, frame_of(bytes.fromhex(digits)))


@dataclass(frozen=True)
class Difference:
    """A difference between trouter's answer and Qpid Dispatch's.

    ``kind`` is ``width`` for one value in two encodings of its type, ``default`` for a null and its default value,
    ``order`` for a map with its keys in another order, ``missing`` for a frame that did not arrive, else ``value``.
    """

    kind: str
    where: str
    recorded: str
    ours: str

    def __str__(self) -> str:
        return f"{self.kind} of {self.where}: {self.recorded} there, {self.ours} here"


def compare(where: str, recorded: Frame, ours: Frame) -> Iterator[Difference]:
    """Yield all differences between two frames of one kind, by the path to them."""
    if recorded.kind == "header":
        if recorded.octets != ours.octets:
            yield Difference("value", where, repr(recorded.octets), repr(ours.octets))
        return
    yield from _compare(where, recorded.form, ours.form)
    if recorded.payload != ours.payload:
        there, here = recorded.sections(), ours.sections()
        if list(there) != list(here):
            yield Difference("value", f"{where}/sections", " ".join(there), " ".join(here))
        for name in [each for each in there if each in here]:
            yield from _compare(f"{where}/{name}", there[name], here[name])


def _compare(where: str, there: Form, here: Form) -> Iterator[Difference]:
    if there == here:
        return
    families = {_family(there), _family(here)}
    if there[0] == here[0] == "described" and there[1][0] == here[1][0]:
        yield from _compare_fields(where, there[1][1], here[1][1], FIELDS.get(there[1][0][1], "").split())
    elif families == {"map"}:
        yield from _compare_widths(where, there, here)
        yield from _compare_maps(where, there, here)
    elif families in ({"list"}, {"array"}):
        yield from _compare_widths(where, there, here)
        for place in range(max(len(there[1]), len(here[1]))):
            yield from _compare(f"{where}/{place}", _item(there, place), _item(here, place))
    elif "null" in (there[0], here[0]) and DEFAULTS.get(where.rpartition("/")[2], object()) in (there[1], here[1]):
        yield Difference("default", where, _show(there), _show(here))
    elif is_same_type(there[0], here[0]) and there[1] == here[1]:
        yield from _compare_widths(where, there, here)
    else:
        yield Difference("value", where, _show(there), _show(here))


def _compare_widths(where: str, there: Form, here: Form) -> Iterator[Difference]:
    if there[0] != here[0]:
        yield Difference("width", where, there[0], here[0])


def _compare_fields(where: str, there: Form, here: Form, names: list[str]) -> Iterator[Difference]:
    """Compare the fields of a composite; a null left out at the end (AMQP 1.0 part 1, 1.4) is no difference."""
    if {there[0], here[0]} != {"list0", "list8"}:
        yield from _compare_widths(where, there, here)
    for place in range(max(len(there[1]), len(here[1]))):
        name = names[place] if place < len(names) else str(place)
        yield from _compare(f"{where}/{name}", _item(there, place), _item(here, place))


def _compare_maps(where: str, there: Form, here: Form) -> Iterator[Difference]:
    maps = [dict(zip(form[1][::2], form[1][1::2], strict=True)) for form in (there, here)]
    for key in dict.fromkeys([*maps[0], *maps[1]]):
        yield from _compare(f"{where}/{key[1]}", *[each.get(key, ("absent", None)) for each in maps])
    if maps[0].keys() == maps[1].keys() and list(maps[0]) != list(maps[1]):
        yield Difference("order", where, *[" ".join(key[1] for key in each) for each in maps])


def _item(form: Form, place: int) -> Form:
    item: Form = form[1][place] if place < len(form[1]) else ("null", None)
    return item


def _family(form: Form) -> str:
    return next((each for each in ("list", "map", "array") if form[0].startswith(each)), "")


def _show(form: Form) -> str:
    text = f"{form[0]} {form[1]!r}"
    return text if len(text) < 120 else f"{text[:117]}..."

"""The strict reader itself: it reads Qpid Dispatch's recorded frames, and no other encodings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.recorded.forms import Form, write
from tests.interop.recorded.recording import Frame, Joiner, frame_of, steps
from tests.interop.strict import reading
from tests.interop.strict.reading import Unread
from tests.interop.strict.writing import described, integer, listed, mapped, message, symbol, text


def said(name: str) -> list[Frame]:
    """Return the frames of both sides, deliveries whole."""
    joiners = {"D": Joiner(), "L": Joiner()}
    frames = (joiners[step.side].join(step.frame) for step in steps(name) if step.frame is not None)
    return [frame for frame in frames if frame is not None]


@pytest.mark.parametrize("name", ["interior", "edge"])
def test_recorded_frames_of_qpid_dispatch_are_read(name: str) -> None:
    frames = said(name)
    messages = [frame.payload for frame in frames if frame.kind == "transfer"]
    assert [reading.way_of(each).lost for each in messages] == [[]] * len(messages)
    read = {reading.control(frame.payload)[0] for frame in frames if frame.opcode not in ("", "lookup")}
    assert read == (set() if name == "edge" else {"HELLO", "RA", "LSR", "LSU", "MAU"})
    known = {reading.capability(frame) for frame in frames if frame.kind == "attach"}
    assert known >= ({"qd.router-edge-downlink"} if name == "edge" else {"qd.router", "qd.router-data"})
    assert all(reading.offers(frame, "qd.streaming-links") for frame in frames if frame.kind == "open")


def attached(capabilities: Form) -> Frame:
    """Return an attach of a receiver whose source has these capabilities."""
    null: Form = ("null", None)
    source = described(0x28, listed(*[null] * 10, capabilities))
    body = write(described(0x12, listed(text("l"), integer(0), ("true", True), null, null, source, null)))
    return frame_of((len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body)


@pytest.mark.parametrize(
    ("capabilities", "read"),
    [
        (symbol("qd.router"), "qd.router"),
        (("array8", [symbol("qd.router")]), ""),
        (listed(symbol("qd.router")), ""),
        (text("qd.router"), ""),
    ],
)
def test_a_capability_is_one_bare_symbol(capabilities: Form, read: str) -> None:
    assert reading.capability(attached(capabilities)) == read


TO, INGRESS, TRACE = (
    (symbol("x-opt-qd.to"), text("a")),
    (symbol("x-opt-qd.ingress"), text("0/R")),
    (symbol("x-opt-qd.trace"), listed(text("0/R"))),
)
OWN = (symbol("own"), text("v"))


@pytest.mark.parametrize(
    ("entries", "read"),
    [
        ((OWN, TO, INGRESS, TRACE), (["own"], "a", ["0/R"], [])),
        ((TO, INGRESS, TRACE, OWN), ([], "a", ["0/R"], ["own"])),
        ((TO, INGRESS, OWN, TRACE), ([], "a", [], ["own", "x-opt-qd.trace"])),
        (((text("x-opt-qd.to"), text("a")),), (["x-opt-qd.to"], None, [], [])),
    ],
)
def test_annotations_of_routers_stand_behind_all_others(entries: Any, read: tuple[Any, ...]) -> None:
    way = reading.way_of(message(text("x"), annotations=mapped(*entries)))
    assert (list(way.own), way.to, way.trace, way.lost) == read


@pytest.mark.parametrize(
    "entry",
    [
        (TO[0], symbol("a")),
        (INGRESS[0], symbol("0/R")),
        (TRACE[0], text("0/R")),
        (TRACE[0], listed(symbol("0/R"))),
        (TRACE[0], ("array8", [text("0/R")])),
    ],
)
def test_an_annotation_of_another_type_is_not_read(entry: tuple[Form, Form]) -> None:
    with pytest.raises(Unread):
        reading.way_of(message(text("x"), annotations=mapped(entry)))


HELLO = {"id": text("R"), "pv": integer(1), "instance": integer(5), "seen": listed(text("P"))}
PEERS = {"id": text("R"), "ls_seq": integer(1), "peers": mapped((text("P"), integer(1)))}
LINKS = {"id": text("R"), "pv": integer(1), "instance": integer(5), "ls_seq": integer(1)}
NAMES = {"id": text("R"), "pv": integer(1), "mobile_seq": integer(1)}


def entries_of(entries: dict[str, Form]) -> Form:
    return mapped(*((text(key), value) for key, value in entries.items()))


@pytest.mark.parametrize(
    ("opcode", "entries", "is_read"),
    [
        ("HELLO", HELLO, True),
        ("HELLO", HELLO | {"id": symbol("R"), "instance": ("uint", 5), "seen": listed()}, True),
        ("HELLO", HELLO | {"seen": ("array8", [text("P")])}, False),
        ("HELLO", HELLO | {"pv": ("true", True)}, False),
        ("HELLO", {"id": text("R"), "pv": integer(1), "seen": listed()}, False),
        ("LSU", LINKS | {"ls": entries_of(PEERS)}, True),
        ("LSU", LINKS | {"ls": entries_of(PEERS | {"peers": listed(text("P"))})}, False),
        ("LSU", LINKS | {"ls": entries_of(PEERS | {"peers": mapped((text("P"), text("1")))})}, False),
        ("MAU", NAMES | {"exist": listed(text("M0a")), "hints": listed(integer(3))}, True),
        ("MAU", NAMES | {"add": listed(text("M0a")), "del": listed()}, True),
        ("MAU", NAMES | {"add": listed(text("M0a"))}, False),
        ("MAU", NAMES | {"exist": ("array8", [text("M0a")])}, False),
        ("NEWS", NAMES, False),
    ],
)
def test_entries_of_messages_of_routers_have_their_types(opcode: str, entries: dict[str, Form], is_read: bool) -> None:
    properties = mapped((text("opcode"), text(opcode)))
    octets = message(entries_of(entries), to="amqp:/_local/qdhello", properties=properties)
    if is_read:
        assert reading.control(octets)[0] == opcode
    else:
        with pytest.raises(Unread):
            reading.control(octets)

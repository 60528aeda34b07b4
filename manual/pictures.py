"""The pictures of the manual's pages about concepts, drawn from descriptions; `make docs` writes them to docs/images/.

A picture has a white ground of its own, so that it is readable in the light and in the dark theme of the site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

Kind = Literal["client", "router", "broker"]
#: What an arrow stands for: a message that goes this way, one that does not, or a connection.
Line = Literal["message", "none", "connection"]

_WIDTH: Final = 720
_BOX_WIDTH: Final = 120
_BOX_HEIGHT: Final = 44
_FILL: Final[Mapping[Kind, str]] = {"client": "#e0f2fe", "router": "#dcfce7", "broker": "#fef3c7"}
_INK: Final = "#0f172a"
_STROKE: Final[Mapping[Line, str]] = {"message": "#15803d", "none": "#94a3b8", "connection": "#334155"}


@dataclass(frozen=True, slots=True)
class Box:
    """One program, at the middle of its box; ``below`` is a second line in it."""

    x: int
    y: int
    title: str
    kind: Kind
    below: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line from one box to another; both are named by their keys in the picture."""

    start: str
    end: str
    label: str = ""
    line: Line = "message"
    #: How far to the right and down it is moved, so that two arrows between the same boxes lie apart.
    moved: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes by their keys, arrows between them, and a sentence below."""

    title: str
    height: int
    boxes: Mapping[str, Box]
    arrows: tuple[Arrow, ...]
    caption: str
    notes: tuple[tuple[int, int, str], ...] = ()


def _treatment(title: str, caption: str, arrows: tuple[Arrow, ...]) -> Picture:
    """Return a picture of a sender at one router, two receivers there, and one at another router."""
    return Picture(
        title=title,
        height=220,
        boxes={
            "sender": Box(80, 85, "sender", "client"),
            "north": Box(270, 85, "North", "router"),
            "south": Box(460, 145, "South", "router"),
            "ann": Box(630, 35, "Ann", "client", "receiver"),
            "ben": Box(630, 90, "Ben", "client", "receiver"),
            "cleo": Box(630, 145, "Cleo", "client", "receiver"),
        },
        arrows=arrows,
        caption=caption,
    )


PICTURES: Final[Mapping[str, Picture]] = {
    "network": Picture(
        title="Clients, an edge router, two interior routers and a broker",
        height=270,
        boxes={
            "shop": Box(75, 75, "client", "client"),
            "till": Box(75, 185, "client", "client"),
            "edge": Box(230, 130, "edge router", "router"),
            "north": Box(400, 75, "interior", "router", "North"),
            "south": Box(400, 185, "interior", "router", "South"),
            "broker": Box(620, 75, "broker", "broker", "stores"),
            "office": Box(620, 185, "client", "client"),
        },
        arrows=(
            Arrow("shop", "edge", line="connection"),
            Arrow("till", "edge", line="connection"),
            Arrow("edge", "north", line="connection"),
            Arrow("edge", "south", line="none"),
            Arrow("north", "south", line="connection"),
            Arrow("north", "broker", line="connection"),
            Arrow("office", "south", line="connection"),
        ),
        caption="Each arrow is one connection, from the program that dials. The grey one stands by.",
    ),
    "balanced": _treatment(
        "balanced: one receiver gets each message, the one with the least to do",
        "Six at once: each goes where the fewest are unsettled. Cleo is one hop away: that counts as one.",
        (
            Arrow("sender", "north", "1 2 3 4 5 6"),
            Arrow("north", "ann", "1 3 6"),
            Arrow("north", "ben", "2 4"),
            Arrow("north", "south", "5"),
            Arrow("south", "cleo", "5"),
        ),
    ),
    "closest": _treatment(
        "closest: one receiver gets each message, one that is nearest to the sender",
        "Six at once: Ann and Ben get them in turn, busy or not. Cleo gets none while they are there.",
        (
            Arrow("sender", "north", "1 2 3 4 5 6"),
            Arrow("north", "ann", "1 3 5"),
            Arrow("north", "ben", "2 4 6"),
            Arrow("north", "south", line="none"),
            Arrow("south", "cleo", line="none"),
        ),
    ),
    "multicast": _treatment(
        "multicast: every receiver gets each message",
        "One message: three receivers get it. One copy goes to South, however many receivers are there.",
        (
            Arrow("sender", "north", "1"),
            Arrow("north", "ann", "1"),
            Arrow("north", "ben", "1"),
            Arrow("north", "south", "1"),
            Arrow("south", "cleo", "1"),
        ),
    ),
    "unavailable": Picture(
        title="unavailable: the router refuses the link",
        height=130,
        boxes={"sender": Box(80, 45, "sender", "client"), "north": Box(460, 45, "North", "router")},
        arrows=(Arrow("north", "sender", "amqp:not-found, Node not found"),),
        caption="No client can attach to the address, neither a sender nor a receiver.",
    ),
    "credit": Picture(
        title="Credit and outcomes: the receiver says how many messages may come, and what became of each",
        height=160,
        boxes={
            "sender": Box(80, 65, "sender", "client"),
            "router": Box(360, 65, "router", "router"),
            "receiver": Box(640, 65, "receiver", "client"),
        },
        arrows=(
            Arrow("receiver", "router", "credit", "connection", (0, -15)),
            Arrow("router", "sender", "credit", "connection", (0, -15)),
            Arrow("sender", "router", "message", moved=(0, 2)),
            Arrow("router", "receiver", "message", moved=(0, 2)),
            Arrow("receiver", "router", "outcome", "connection", (0, 19)),
            Arrow("router", "sender", "outcome", "connection", (0, 19)),
        ),
        caption="The outcome of a message is the receiver's. With it the sender may send one more.",
    ),
    "waypoint": Picture(
        title="A waypoint: messages pass through a broker between phase 0 and phase 1",
        height=230,
        boxes={
            "sender": Box(80, 150, "sender", "client"),
            "router": Box(360, 150, "router", "router"),
            "receiver": Box(640, 150, "receiver", "client"),
            "broker": Box(360, 40, "broker", "broker", "queue orders"),
        },
        arrows=(
            Arrow("sender", "router", "orders, phase 0"),
            Arrow("router", "receiver", "orders, phase 1"),
            Arrow("router", "broker", moved=(-30, 0)),
            Arrow("broker", "router", moved=(30, 0)),
        ),
        notes=((275, 98, "auto link out"), (440, 98, "auto link in")),
        caption="No message passes by the broker: senders send to phase 0, receivers receive from phase 1.",
    ),
    "edge": Picture(
        title="An edge router with two ways up, and its clients",
        height=230,
        boxes={
            "till": Box(75, 60, "client", "client"),
            "scale": Box(75, 150, "client", "client"),
            "branch": Box(250, 105, "branch", "router", "edge router"),
            "hub": Box(450, 60, "hub", "router", "interior"),
            "hub2": Box(450, 150, "hub 2", "router", "interior"),
            "office": Box(640, 60, "client", "client"),
        },
        arrows=(
            Arrow("till", "branch", line="connection"),
            Arrow("scale", "branch", line="connection"),
            Arrow("branch", "hub", line="connection"),
            Arrow("branch", "hub2", line="none"),
            Arrow("hub", "hub2", line="connection"),
            Arrow("office", "hub", line="connection"),
        ),
        notes=((335, 70, "uplink"), (330, 152, "stands by")),
        caption="The branch dials, and no router dials it. Only messages of its own clients pass through it.",
    ),
    "link-route": Picture(
        title="A routed link: the client's own link reaches the broker",
        height=130,
        boxes={
            "client": Box(80, 45, "client", "client"),
            "router": Box(360, 45, "router", "router"),
            "broker": Box(640, 45, "broker", "broker", "audit"),
        },
        arrows=(
            Arrow("client", "router", "its link"),
            Arrow("router", "broker", "the same link"),
        ),
        caption="Attach, credit, filters, outcomes and transactions are between the client and the broker.",
    ),
}


def _box(box: Box) -> str:
    left, top = box.x - _BOX_WIDTH // 2, box.y - _BOX_HEIGHT // 2
    lines = [
        (
            f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" '
            f'fill="{_FILL[box.kind]}" stroke="#334155"/>'
        ),
        (
            f'<text x="{box.x}" y="{box.y - 3 if box.below else box.y + 5}" text-anchor="middle" font-weight="bold" '
            f'fill="{_INK}">{escape(box.title)}</text>'
        ),
    ]
    if box.below:
        lines.append(
            f'<text x="{box.x}" y="{box.y + 14}" text-anchor="middle" font-size="12" fill="{_INK}">'
            f"{escape(box.below)}</text>"
        )
    return "\n".join(lines)


def _arrow(arrow: Arrow, boxes: Mapping[str, Box]) -> str:
    start, end = boxes[arrow.start], boxes[arrow.end]
    across = start.x != end.x
    side = _BOX_WIDTH // 2 if end.x > start.x else -(_BOX_WIDTH // 2)
    drop = _BOX_HEIGHT // 2 if end.y > start.y else -(_BOX_HEIGHT // 2)
    x1, y1 = (start.x + side, start.y) if across else (start.x, start.y + drop)
    x2, y2 = (end.x - side, end.y) if across else (end.x, end.y - drop)
    right, down = arrow.moved
    x1, y1, x2, y2 = x1 + right, y1 + down, x2 + right, y2 + down
    dashed = ' stroke-dasharray="6 5"' if arrow.line == "none" else ""
    lines = [
        (
            f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{_STROKE[arrow.line]}" stroke-width="2" fill="none"{dashed} '
            f'marker-end="url(#{arrow.line})"/>'
        )
    ]
    if arrow.label:
        lines.append(_note((x1 + x2) // 2, (y1 + y2) // 2 - 7, arrow.label))
    return "\n".join(lines)


def _note(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle" font-size="12" fill="{_INK}">{escape(text)}</text>'


def _tip(line: Line, colour: str) -> str:
    return (
        f'<marker id="{line}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
    )


def drawn(picture: Picture) -> str:
    """Return a picture as SVG."""
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {picture.height}" font-family="sans-serif" '
            'font-size="14" role="img">'
        ),
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="{_WIDTH}" height="{picture.height}" rx="8" fill="#ffffff"/>',
        f"<defs>{''.join(_tip(line, colour) for line, colour in _STROKE.items())}</defs>",
        *(_arrow(arrow, picture.boxes) for arrow in picture.arrows),
        *(_box(box) for box in picture.boxes.values()),
        *(_note(*note) for note in picture.notes),
        (
            f'<text x="{_WIDTH // 2}" y="{picture.height - 14}" text-anchor="middle" font-size="13" fill="#334155">'
            f"{escape(picture.caption)}</text>"
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return every picture by its name in docs/."""
    return {f"images/concepts/{name}.svg": drawn(picture) for name, picture in PICTURES.items()}

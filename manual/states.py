"""The manual's page on states, written from the tables in ``engine/states.py``; `make docs` puts it into docs/.

Mermaid draws the diagrams where a page is shown with it; elsewhere their text is still readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from trouter.engine import states

INTRODUCTION: Final = """\
# States

*This page is written from the tables in `trouter/engine/states.py` (`make docs`).*

The engine changes the state of a connection, session, link or delivery first, and everything else after it. A step
that a table does not list is refused: it is a fault of the peer, or an error in the router.
`tests/engine/test_states.py` tries every step in every state.
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its table, the state in which it begins, and those in which it may stay for ever."""

    title: str
    text: str
    table: Mapping[tuple[Any, Any], Any]
    first: IntEnum
    last: frozenset[Any]


_SASL_LAST: Final = frozenset({states.SaslState.ACCEPTED, states.SaslState.REFUSED})
_DELIVERY_LAST: Final = states.ABORTED | {
    states.DeliveryState.SETTLED_HERE,
    states.DeliveryState.SETTLED_THERE,
    states.DeliveryState.SETTLED,
}
MACHINES: Final = (
    Machine(
        "Connection",
        "AMQP 1.0 part 2, 2.4.6.",
        states.CONNECTION_NEXT,
        states.ConnectionState.START,
        frozenset({states.ConnectionState.END}),
    ),
    Machine(
        "Session",
        "AMQP 1.0 part 2, 2.5.5.",
        states.SESSION_NEXT,
        states.SessionState.UNMAPPED,
        frozenset({states.SessionState.END}),
    ),
    Machine(
        "Link",
        "AMQP 1.0 part 2, 2.6.3.",
        states.LINK_NEXT,
        states.LinkState.DETACHED,
        frozenset({states.LinkState.END}),
    ),
    Machine(
        "Incoming delivery",
        "A delivery that a peer sends, AMQP 1.0 part 2, 2.6.12 to 2.6.14. `begin` and `finish` are its first and its "
        "last frame; `decide` is an outcome of ours that does not settle it.",
        states.INCOMING_NEXT,
        states.DeliveryState.NEW,
        frozenset(_DELIVERY_LAST - {states.DeliveryState.DROPPED}),
    ),
    Machine(
        "Outgoing delivery",
        "A delivery that the router sends. It may be settled or given up before its first frame; `decide` is an "
        "outcome of the peer that does not settle it.",
        states.OUTGOING_NEXT,
        states.DeliveryState.NEW,
        frozenset(_DELIVERY_LAST),
    ),
    Machine(
        "SASL, as a server",
        "AMQP 1.0 part 5, 5.3.",
        states.SASL_SERVER_NEXT,
        states.SaslState.START,
        _SASL_LAST,
    ),
    Machine(
        "SASL, as a client",
        "AMQP 1.0 part 5, 5.3.",
        states.SASL_CLIENT_NEXT,
        states.SaslState.START,
        _SASL_LAST,
    ),
)


def _words(name: IntEnum) -> str:
    return name.name.lower().replace("_", " ")


def _diagram(machine: Machine) -> str:
    """Return the machine as a state diagram for Mermaid."""
    arrows = [f"    [*] --> {machine.first.name}"]
    for (state, step), following in machine.table.items():
        arrows.append(f"    {state.name} --> {following.name}: {_words(step)}")
    arrows += [f"    {state.name} --> [*]" for state in sorted(machine.last)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, "```"])


def _rows(machine: Machine) -> str:
    rows = [
        f"| {_words(state)} | {_words(step)} | {_words(following)} |"
        for (state, step), following in sorted(machine.table.items())
    ]
    return "\n".join(["| state | step | next state |", "|---|---|---|", *rows])


def page() -> str:
    """Return the page."""
    parts = [
        f"\n## {machine.title}\n\n{machine.text}\n\n{_diagram(machine)}\n\n{_rows(machine)}\n" for machine in MACHINES
    ]
    return INTRODUCTION + "".join(parts)

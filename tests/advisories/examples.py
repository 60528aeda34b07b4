"""One performative of each kind, to be sent where it does not belong."""

from __future__ import annotations

from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    Source,
    Target,
    Transfer,
)

PERFORMATIVES: list[Performative] = [
    Open("intruder"),
    Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1),
    Attach("intruder", 0, True, source=Source("intruder"), target=Target()),
    Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1),
    Transfer(0, 0, b"tag"),
    Disposition(True, 0),
    Detach(0),
    End(),
    Close(),
]


def name(performative: object) -> str:
    """Return the name of the performative's kind."""
    return type(performative).__name__

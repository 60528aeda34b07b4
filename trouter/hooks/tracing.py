"""The traces of messages: what a tracer chooses, and the spans that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

#: A span that has ended: begin and end in ns since 1970; trace id (empty: any), parent's span id (empty: none) and span
#: id (empty: any) in hex digits; ``tracestate``; the address of the message; the container and the number of the
#: connection that it came by; its outcome.
EndedSpan = tuple[int, int, bytes, bytes, bytes, bytes, str, tuple[str, int], str]


@runtime_checkable
class MessageTracer(Protocol):
    """A plugin's choice of messages, which the router reads once, and the taker of their spans."""

    @property
    def ratio(self) -> float:
        """Of the traces that senders sample, the share of which spans are made, from 0 to 1; chosen by the trace id."""

    @property
    def one_in(self) -> int:
        """Of messages without a trace context, one in so many begins a trace; 0 for none."""

    @property
    def propagates(self) -> bool:
        """Whether a message that has a span goes on with its context, among the message annotations."""

    def export(self, spans: Sequence[EndedSpan], dropped: int) -> None:
        """Take the spans that have ended since the last call, and how many there was no room for.

        It is called on the event loop: no I/O, no waiting.
        """

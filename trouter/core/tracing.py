"""Which messages get a span at this router, and the spans that have ended, until they are taken to the tracer.

All routers decide alike: from the sampled flag of the message's trace context, and from the lower half of the trace id
as OpenTelemetry's ``TraceIdRatioBased`` does. Of messages without a context one in so many begins a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from random import getrandbits
from time import time_ns
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from trouter.engine.ports import LinkPort
from trouter.wire import octets
from trouter.wire.trace_context import UNREADABLE, TraceContextScan

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

#: Ended spans that may wait to be taken.
MAX_ENDED: Final = 4096
#: The outcomes of a span by the codes of the standard.
OUTCOMES: Final = {0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
SETTLED: Final = "settled"
#: The outcome of a message whose sender left, or aborted it, before it had one.
LOST: Final = "lost"

_UNREADABLE: Final[Py_ssize_t] = UNREADABLE
_OUTCOMES: Final[dict[int, str]] = OUTCOMES
#: Where the lower half of the trace id and the last flags are in a context.
_HALF: Final[Py_ssize_t] = 19
_FLAGS: Final[Py_ssize_t] = 54

#: Container and number of the connection that a message came by.
Source: TypeAlias = tuple[str, int]
#: A span that has ended: begin and end in ns since 1970; trace id (empty: any), parent's span id (empty: none) and span
#: id (empty: any) in hex digits; ``tracestate``; the address of the message; its source; its outcome.
EndedSpan: TypeAlias = tuple[int, int, bytes, bytes, bytes, bytes, str, Source, str]


class MessageInHand(Protocol):
    """The octets of a message, ``data[start:end]``; see ``Arrival``."""

    data: bytes
    start: int
    end: int


class Span:
    """The span of one message."""

    __slots__ = ("_began_ns", "_tracing", "_source", "trace_id", "parent", "state", "span_id", "address")

    def __init__(self, tracing: Tracing, source: Source, trace_id: bytes, parent: bytes, state: bytes) -> None:
        self._began_ns: int = time_ns()
        self._tracing = tracing
        self._source = source
        self.trace_id = trace_id
        self.parent = parent
        self.state = state
        #: These ids are empty until another router needs them.
        self.span_id = b""
        #: The address of the message, once it is known.
        self.address = ""

    def end(self, code: c_int) -> None:
        """End the span by the code of the message's outcome: 0 for none, negative for a lost message."""
        outcome: str = LOST if code < 0 else _OUTCOMES.get(code, SETTLED)
        self._tracing.keep_ended(
            (
                self._began_ns,
                time_ns(),
                self.trace_id,
                self.parent,
                self.span_id,
                self.state,
                self.address,
                self._source,
                outcome,
            )
        )


class Tracing:
    """The choice of messages, and the spans that have ended.

    ``ratio``, of sampled traces, gets spans; one in ``one_in`` messages without a context begins a trace, 0 for none.
    ``propagates``: the message that goes on has the context of its span. ``describe_source`` returns where the messages
    of a link come from; ``notify`` is called when a first span waits.
    """

    __slots__ = ("_bound", "_ended", "_left", "_one_in", "_notify", "describe_source", "_scan", "propagates", "dropped")

    def __init__(
        self,
        ratio: float,
        one_in: Py_ssize_t,
        propagates: bool,
        describe_source: Callable[[LinkPort], Source],
        notify: Callable[[], None],
    ) -> None:
        bound = round(ratio * 2**64)
        #: Lower halves of trace ids, in hex digits, are less than this; None for all.
        self._bound: bytes | None = b"%016x" % bound if bound < 2**64 else None
        self._one_in = one_in
        self._left = one_in
        self.describe_source = describe_source
        self._notify = notify
        self._scan = TraceContextScan()
        self._ended: list[EndedSpan] = []
        self.propagates = propagates
        #: Spans that had no room.
        self.dropped: Py_ssize_t = 0

    def find_context(self, arrival: MessageInHand) -> Py_ssize_t:
        """Return where the sampled context of a message is, -1 if it begins a trace; -2 for a message without a span.

        The beginning of the message suffices; ``begin_span`` is to be called for it next.
        """
        data: bytes = arrival.data
        place: Py_ssize_t = self._scan.find_context(data, arrival.start, arrival.end)
        if place >= 0:
            flags: Py_ssize_t = octets.octet_at(data, place + _FLAGS)
            if (flags & 1) == (flags > 0x39):  # of digits the odd ones, of the letters b, d and f
                return _UNREADABLE
            if self._bound is not None and not octets.is_less_at(data, place + _HALF, self._bound):
                return _UNREADABLE
            return place
        if place == _UNREADABLE or self._one_in == 0:
            return _UNREADABLE
        self._left -= 1
        if self._left > 0:
            return _UNREADABLE
        self._left = self._one_in
        return -1

    def begin_span(self, arrival: MessageInHand, place: Py_ssize_t, source: Source) -> Span | None:
        """Return the span of the message for which ``find_context`` has returned ``place``; None if it has none."""
        if place < 0:
            return Span(self, source, b"", b"", b"")
        context: bytes = self._scan.read_context(arrival.data, place)
        if not context:
            return None
        return Span(self, source, context[3:35], context[36:52], self._scan.read_state(arrival.data))

    def write_context(self, span: Span, arrival: MessageInHand) -> bytes:
        """Return the message with the context of its span among the message annotations."""
        if not span.trace_id:
            span.trace_id = b"%032x" % getrandbits(128)
        span.span_id = b"%016x" % getrandbits(64)
        context = b"00-%b-%b-01" % (span.trace_id, span.span_id)
        return self._scan.write_context(arrival.data, arrival.start, arrival.end, context, span.state)

    def keep_ended(self, span: EndedSpan) -> None:
        """Keep a span that has ended until it is taken; count it as dropped if there is no room."""
        if len(self._ended) >= MAX_ENDED:
            self.dropped += 1
            return
        self._ended.append(span)
        if len(self._ended) == 1:
            self._notify()

    def take_ended(self) -> list[EndedSpan]:
        """Return the spans that have ended, and forget them."""
        ended, self._ended = self._ended, []
        return ended

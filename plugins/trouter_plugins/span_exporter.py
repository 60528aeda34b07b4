"""The process that exports spans, from batches on its standard input: `python -m trouter_plugins.span_exporter`.

It makes them by OpenTelemetry's SDK, and ends with its input. A batch is a line of JSON, in which each octet of a bytes
value is a character. The router has decided which messages get a span.
"""

from __future__ import annotations

import json
import resource
import sys
from importlib import metadata
from random import getrandbits
from typing import Any, BinaryIO

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

#: Spans that wait for the receiver; the SDK's own limit is 2048.
MAX_WAITING = 16384
#: The data of this process, in bytes: a receiver may send an answer without end.
MAX_BYTES = 256 << 20


class ChosenIds(IdGenerator):
    """Gives the next span the ids that the router chose."""

    def __init__(self) -> None:
        self.trace_id = self.span_id = 0

    def generate_trace_id(self) -> int:
        """See ``IdGenerator``."""
        return self.trace_id or getrandbits(128)

    def generate_span_id(self) -> int:
        """See ``IdGenerator``."""
        return self.span_id or getrandbits(64)


class SpanMaker:
    """Makes spans of the router's tuples."""

    def __init__(self, router: str, processor: SpanProcessor) -> None:
        self._ids = ChosenIds()
        resource = Resource.create({"service.name": "trouter", "service.instance.id": router})
        self.provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=self._ids)
        self.provider.add_span_processor(processor)
        self._tracer = self.provider.get_tracer("trouter", metadata.version("trouter"))

    def make_span(self, ended: list[Any]) -> None:
        """Make a span of an ``EndedSpan``, as JSON has it, and end it."""
        began_ns, ended_ns, trace_id, parent, span_id, state, address, (container, connection), outcome = ended
        self._ids.trace_id, self._ids.span_id = int(trace_id or "0", 16), int(span_id or "0", 16)
        above = Context()
        if parent:
            states = trace.TraceState.from_header([state])
            sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            place = trace.SpanContext(self._ids.trace_id, int(parent, 16), True, sampled, states)
            above = trace.set_span_in_context(trace.NonRecordingSpan(place), above)
        attributes: dict[str, str | int] = {
            "messaging.system": "amqp",
            "messaging.destination.name": address,
            "messaging.client.id": container,
            "trouter.connection": connection,
            "trouter.outcome": outcome,
        }
        name = f"route {address}".rstrip()
        span = self._tracer.start_span(name, above, trace.SpanKind.INTERNAL, attributes, start_time=began_ns)
        span.end(ended_ns)


def export(stream: BinaryIO) -> None:
    """Export the spans of a stream until it ends."""
    hello = json.loads(stream.readline())
    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=hello["endpoint"]), max_queue_size=MAX_WAITING)
    maker = SpanMaker(hello["router"], processor)
    try:
        for line in stream:
            for ended in json.loads(line):
                maker.make_span(ended)
    finally:
        maker.provider.shutdown()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
    export(sys.stdin.buffer)

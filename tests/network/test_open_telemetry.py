"""The spans of two routers in a row, as a receiver of OTLP gets them from OpenTelemetry's own exporter."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import NamedTuple

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.networks import client_port
from tests.routers import RunningRouter, StartRouter
from tests.waiting import until
from trouter.client import Message, connect
from trouter.hooks import ConfigurationRefused, EndedSpan, RouterFacts
from trouter_plugins import open_telemetry
from trouter_plugins.open_telemetry import MAX_WAITING, Exporter, Plugin
from trouter_plugins.span_exporter import MAX_BYTES

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"


class Received(NamedTuple):
    """What a test looks at of a span."""

    router: str
    name: str
    trace: str
    parent: str
    span: str
    state: str
    outcome: str


class Receiver:
    """A receiver of OTLP over HTTP."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/v1/traces"
        self.requests: list[ExportTraceServiceRequest] = []

    def spans(self) -> list[Received]:
        """Return the spans that have come, in the order of their routers."""
        found = []
        for request in self.requests:
            for each in request.resource_spans:
                of = {pair.key: pair.value.string_value for pair in each.resource.attributes}
                for scope in each.scope_spans:
                    for span in scope.spans:
                        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                        ids = span.trace_id.hex(), span.parent_span_id.hex(), span.span_id.hex()
                        notes = {pair.key: pair.value.string_value for pair in span.attributes}
                        name = of["service.instance.id"]
                        found.append(Received(name, span.name, *ids, span.trace_state, notes["trouter.outcome"]))
        return sorted(found)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that the library calls
            request = ExportTraceServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.requests.append(request)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_port)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def router_of(name: str, more: str = "", **settings: object) -> str:
    return (
        f"router {{ mode: interior, id: {name}\n    pluginSettings: {json.dumps({'open_telemetry': settings})}\n}}\n"
        f"listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}\n{more}"
    )


async def send(source: RunningRouter, sink: RunningRouter, messages: list[Message]) -> list[Message]:
    """Send messages from one router to the other, accept them there, and return them as they came."""
    came: list[Message] = []
    async with (
        connect(f"amqp://127.0.0.1:{client_port(source)}") as here,
        connect(f"amqp://127.0.0.1:{client_port(sink)}") as there,
        there.open_receiver("orders") as receiver,
        here.open_sender("orders") as sender,
        trio.open_nursery() as nursery,
    ):

        async def accept() -> None:
            for _ in messages:
                delivery = await receiver.receive()
                came.append(delivery.message)
                await delivery.accept()

        nursery.start_soon(accept)
        for message in messages:
            await sender.send(message)
    return came


@pytest.mark.parametrize("propagate", [False, True])
def test_each_hop_has_a_span_below_that_of_the_sender(start_router: StartRouter, propagate: bool) -> None:
    between = "listener { name: between, host: 127.0.0.1, port: 0, role: inter-router, saslMechanisms: ANONYMOUS }\n"
    with receiving() as receiver:
        settings = {"endpoint": receiver.endpoint, "propagate": propagate}
        one = start_router(router_of("ONE", between, **settings))
        dial = (
            f"connector {{ host: 127.0.0.1, port: {one.ports[-1]}, role: inter-router, saslMechanisms: ANONYMOUS }}\n"
        )
        two = start_router(router_of("TWO", dial, **settings))
        contexts = [{"traceparent": SAMPLED, "tracestate": "a=b"}, {"traceparent": UNSAMPLED}, {}]
        came = trio.run(send, one, two, [Message("x", application_properties=context) for context in contexts])
        until(lambda: len(receiver.spans()) >= 2, "two spans")
        one.stop()
        two.stop()
    first, second = receiver.spans()
    assert first[:4] == ("ONE", "route orders", TRACE, PARENT)
    assert second[:4] == ("TWO", "route orders", TRACE, first.span if propagate else PARENT)
    assert (first.state, second.state, first.outcome, second.outcome) == ("a=b", "a=b", "accepted", "accepted")
    assert [message.application_properties for message in came] == contexts
    assert [bool(message.message_annotations) for message in came] == [propagate, False, False]


def test_of_messages_without_a_context_the_share_begins_a_trace_and_the_last_spans_come(
    start_router: StartRouter,
) -> None:
    with receiving() as receiver:
        router = start_router(router_of("ONE", endpoint=receiver.endpoint, newTraces=0.5))
        trio.run(send, router, router, [Message(number) for number in range(10)])
        router.stop()
    assert [(span.name, span.parent) for span in receiver.spans()] == [("route orders", "")] * 5
    assert len({span.trace for span in receiver.spans()}) == 5


SPAN: EndedSpan = (1, 2, b"", b"", b"", b"", "orders", ("client", 1), "accepted")


def test_an_exporting_process_that_ends_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(open_telemetry, "RESTART_S", 0.01)
    with receiving() as receiver:
        exporter = Exporter(receiver.endpoint, "ONE")
        until(lambda: exporter.process is not None, "a process")
        first = exporter.process
        assert first is not None
        first.kill()
        first.wait()
        exporter.put([SPAN], 0)
        until(lambda: exporter.process not in (first, None), "another process")
        exporter.put([SPAN], 0)
        exporter.close()
        until(lambda: len(receiver.spans()) == 1, "the span after the start")
    assert exporter.dropped == 1
    assert "the exporting process has ended" in caplog.text


def test_an_exporting_process_that_cannot_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(open_telemetry, "RESTART_S", 0.01)
    with receiving() as receiver:
        with monkeypatch.context() as without:
            without.setattr("sys.executable", "/nonexistent/python")
            exporter = Exporter(receiver.endpoint, "ONE")
            until(lambda: "no exporting process can be started" in caplog.text, "a start that fails")
        until(lambda: exporter.process is not None, "a process")
        exporter.put([SPAN], 0)
        exporter.close()
        until(lambda: len(receiver.spans()) == 1, "the span after the start")
    assert exporter.dropped == 0


def test_a_process_that_can_never_be_started_ends_with_its_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    before = set(enumerate_threads())
    exporter = Exporter("http://127.0.0.1:1/v1/traces", "ONE")
    exporter.close()
    until(lambda: set(enumerate_threads()) <= before, "the end of the thread")


@contextmanager
def answering(piece: bytes, limit_bytes: int) -> Iterator[tuple[str, list[int]]]:
    """Run a receiver of one request, whose answer repeats ``piece``; yield the endpoint, and what one could send."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            accepted, _ = server.accept()
            with accepted, suppress(OSError):
                sent.append(0)
                accepted.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while sent[0] < limit_bytes:
                    accepted.sendall(piece)
                    sent[0] += len(piece)
            sent.append(sent[0])

        Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces", sent


@pytest.mark.attack
def test_an_answer_without_end_does_not_fill_the_memory_of_the_machine() -> None:
    beyond = 2 * MAX_BYTES
    with answering(bytes(1 << 20), beyond) as (endpoint, sent):
        exporter = Exporter(endpoint, "ONE")
        exporter.put([SPAN], 0)
        until(lambda: len(sent) == 2, "the end of the answer")
        assert sent[0] < beyond
        exporter.close()


@pytest.mark.attack
def test_a_receiver_that_never_answers_holds_up_no_message_and_no_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        exporter = Exporter(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces", "ONE")
        until(lambda: exporter.process is not None, "a process")
        for _ in range(8):
            exporter.put([SPAN] * MAX_WAITING, 0)  # returns at once
        exporter.close()
        process = exporter.process
        assert process is not None
        until(lambda: process.poll() is not None, "the end of the process")


def test_what_does_not_fit_into_the_queue_is_counted() -> None:
    exporter = Exporter("http://127.0.0.1:1/v1/traces", "ONE")
    exporter.put([SPAN] * (MAX_WAITING + 1), 4)
    assert exporter.dropped == MAX_WAITING + 5
    exporter.close()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"endpoint": 7}, "endpoint must be the URL"),
        ({"endpoint": "ftp://x"}, "endpoint must be the URL"),
        ({"endpoint": "http://x", "ratio": 2}, "ratio must be a number from 0"),
        ({"endpoint": "http://x", "newTraces": True}, "newTraces must be a number from 0"),
        ({"endpoint": "http://x", "propagate": "yes"}, "propagate must be true or false"),
        ({"endpoint": "http://x", "rate": 1}, "there is no setting rate"),
    ],
)
def test_wrong_settings_are_refused_with_the_cure(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationRefused, match=problem):
        Plugin().configure(RouterFacts("R", settings=settings))


def test_without_settings_there_is_no_tracer() -> None:
    plugin = Plugin()
    plugin.configure(RouterFacts("R"))
    assert plugin.message_tracer(RouterFacts("R")) is None

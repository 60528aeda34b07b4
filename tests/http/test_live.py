"""The HTTP listener of a running router."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from proton import ConnectionException, Message
from proton.utils import BlockingConnection

from tests.e2e.peer import Peer
from tests.http.test_metrics import QPID_DISPATCH
from tests.routers import DEADLINE_S, WORKERS, RunningRouter, StartRouter, running, start_router

__all__ = ["start_router"]

BOTH = """
router {{ id: R }}
listener {{ name: amqp, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: web, host: 127.0.0.1, port: {port}, saslMechanisms: ANONYMOUS, http: yes
{more}
}}
"""
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def configured(port: int = 0, more: str = "") -> str:
    return BOTH.format(port=port, more=more)


def http_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"SERVER \(notice\) Listening for HTTP on 127\.0\.0\.1:(\d+) \(web\)")[1])


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def scrape(port: int, combine: Callable[[list[float]], float] = sum) -> dict[str, float]:
    """Return the samples by name and labels; ``combine`` makes one of those of several workers."""
    status, text = get(port, "/metrics")
    assert status == 200
    found: dict[str, list[float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sorted(sample.labels.items()) if name != "worker" or WORKERS == 1}
            found.setdefault(sample.name + (str(labels) if labels else ""), []).append(sample.value)
    return {name: combine(values) for name, values in found.items()}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(configured(), tmp_path_factory.mktemp("router")) as router:
        yield router


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_router_that_runs_is_healthy(shared: RunningRouter, path: str) -> None:
    assert get(http_port(shared), path) == (200, "OK")


def test_the_series_of_qpid_dispatch_are_there(shared: RunningRouter) -> None:
    figures = scrape(http_port(shared))
    assert {name for name in figures if name.startswith("qdr_") and ":" not in name} == set(QPID_DISPATCH)


def test_messages_of_clients_show_in_the_metrics(shared: RunningRouter) -> None:
    port = http_port(shared)
    before = scrape(port)
    exchange(shared.port, "seen", 7)
    after = scrape(port)

    def grown(name: str, **labels: str) -> float:
        key = name + (str(dict(sorted(labels.items()))) if labels else "")
        return after[key] - before[key]

    assert grown("qdr_deliveries_ingress_total") == 7
    assert grown("qdr_deliveries_egress_total") == 7
    assert grown("qdr_accepted_deliveries_total") >= 7
    assert grown("trouter_connections_accepted_total", listener="amqp") == 2
    kind = {"address_class": "mobile", "outcome": "accepted"}
    assert grown("trouter_deliveries_total", **kind) == 7
    assert grown("trouter_settle_latency_seconds_count", **kind) == 7
    assert grown("trouter_settle_latency_seconds_bucket", le="+Inf", **kind) == 7
    assert grown("trouter_connections_accepted_total", listener="web") == 1


def test_connections_links_and_addresses_show_in_the_metrics(shared: RunningRouter) -> None:
    port = http_port(shared)
    connection = BlockingConnection(f"127.0.0.1:{shared.port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    connection.create_receiver("here")
    figures = scrape(port)
    assert figures["trouter_connections{'listener': 'amqp'}"] >= 1
    assert figures["qdr_connections_total"] >= 1
    assert figures["qdr_links_total"] >= 1
    assert figures["qdr_addresses_total"] >= 1
    assert figures["trouter_ready"] == 1
    assert figures["trouter_memory_objects{'owner': 'qdr_link_t'}"] == figures["qdr_links_total"]
    assert figures["trouter_held_message_bytes_limit"] > figures["trouter_held_message_bytes"] >= 0
    assert figures["trouter_log_events_total{'level': 'error', 'module': 'SERVER'}"] >= 0
    connection.close()


def test_clients_create_no_new_series(shared: RunningRouter) -> None:
    port = http_port(shared)
    before = set(scrape(port))
    for number in range(5):
        connection = BlockingConnection(
            f"127.0.0.1:{shared.port}",
            allowed_mechs="ANONYMOUS",
            timeout=DEADLINE_S,
            virtual_host=f"stranger{number}",
        )
        connection.create_receiver(f"address{number}")
        assert set(scrape(port)) == before
        connection.close()


def test_plain_amqp_is_not_spoken_here(shared: RunningRouter) -> None:
    with pytest.raises(ConnectionException):
        BlockingConnection(f"127.0.0.1:{http_port(shared)}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    with socket.create_connection(("127.0.0.1", http_port(shared)), DEADLINE_S) as sock:
        sock.sendall(b"AMQP\x00\x01\x00\x00\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_websocket_is_a_connection_of_its_listener(shared: RunningRouter) -> None:
    port = http_port(shared)
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
        remote = sock.getsockname()
        sock.sendall(HANDSHAKE)
        assert sock.recv(4).startswith(b"HTTP")
        shared.wait_for_line(rf"HTTP \(info\) WebSocket from 127\.0\.0\.1:{remote[1]} opened, subprotocol not named")
        assert scrape(port)["trouter_connections{'listener': 'web'}"] >= 1


def test_a_silent_websocket_has_the_time_of_the_listener_to_open(start_router: StartRouter) -> None:
    router = start_router(configured(more="initialHandshakeTimeoutSeconds: 1"))
    with socket.create_connection(("127.0.0.1", http_port(router)), DEADLINE_S) as sock:
        sock.sendall(HANDSHAKE)
        content = b""
        while data := sock.recv(1000):
            content += data
        assert content.startswith(b"HTTP/1.1 101 ")
        assert content.endswith(b"\x88\x02\x03\xe8")


def test_switches_and_files(start_router: StartRouter, tmp_path: Path) -> None:
    root = tmp_path / "www"
    root.mkdir()
    (root / "index.html").write_text("hello")
    router = start_router(configured(more=f"healthz: no\nmetrics: no\nhttpRootDir: {root}"))
    port = http_port(router)
    assert get(port, "/") == (200, "hello")
    assert get(port, "/metrics")[0] == get(port, "/healthz")[0] == get(port, "/../index.html")[0] == 404


def test_a_port_in_use_is_an_error_and_the_pages_come_once_it_is_free(start_router: StartRouter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        router = start_router(configured(port))
        router.wait_for_line(rf"SERVER \(error\) Listener error: cannot listen on 127\.0\.0\.1:{port}")
        with Peer(router.port) as peer:
            peer.be_heard()
    assert http_port(router) == port
    assert get(port, "/livez")[0] == 200


def test_a_router_stops_despite_pending_http_clients(start_router: StartRouter) -> None:
    router = start_router(configured())
    address = ("127.0.0.1", http_port(router))
    with ExitStack() as stack:
        for content in (b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", HANDSHAKE):
            stack.enter_context(socket.create_connection(address, DEADLINE_S)).sendall(content)
        router.wait_for_line("WebSocket from")
        assert router.stop() == 0
        router.assert_no_fault_of_ours()


def test_a_draining_router_is_alive_and_not_ready(start_router: StartRouter) -> None:
    router = start_router(configured())
    port = http_port(router)
    receiving = BlockingConnection(f"127.0.0.1:{router.port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    receiver = receiving.create_receiver("held", credit=1)
    sending = BlockingConnection(f"127.0.0.1:{router.port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    sender = sending.create_sender("held")
    sending.wait(lambda: sender.link.credit > 0)
    sender.link.send(Message(body="held"))
    transport = sending.conn.transport if sending.conn is not None else None
    assert transport is not None
    sending.wait(lambda: transport.pending() <= 0)
    receiver.receive()
    router.process.send_signal(signal.SIGTERM)
    router.wait_for_line("Stopping: draining")
    assert get(port, "/readyz") == (503, "NOT OK\nthe router is stopping\n")
    assert get(port, "/livez") == (200, "OK")
    assert scrape(port)["trouter_ready"] == 0
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
        sock.sendall(HANDSHAKE)
        assert sock.recv(100).startswith(b"HTTP/1.1 503 ")
    receiver.accept()
    receiving.close()
    assert router.wait() == 0


def exchange(port: int, address: str, count: int) -> None:
    """Send ``count`` messages and accept them."""
    receiving = BlockingConnection(f"127.0.0.1:{port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    receiver = receiving.create_receiver(address, credit=count)

    def take() -> None:
        for _ in range(count):
            receiver.receive()
            receiver.accept()
        receiving.close()

    taker = threading.Thread(target=take)
    taker.start()
    sending = BlockingConnection(f"127.0.0.1:{port}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    sender = sending.create_sender(address)
    for number in range(count):
        sender.send(Message(body=number))
    sending.close()
    taker.join(DEADLINE_S)

"""A client in a browser with suspended timers sends no frames, but answers pings: it stays connected."""

from __future__ import annotations

import socket

import pytest

from tests.e2e.peer import Peer
from tests.e2e.websocket import WebSocket
from tests.interop.test_websockets import http_port
from tests.routers import StartRouter
from trouter.wire.performatives import Close

pytestmark = pytest.mark.slow

LISTENER = "listener { host: 127.0.0.1, port: 0, http: yes, idleTimeoutSeconds: 8, saslMechanisms: ANONYMOUS }\n"
#: Empty frames of the router, one each half second: more than fit in the listener's idle time-out.
BEATS = 20


def test_a_client_that_only_answers_pings_is_alive(start_router: StartRouter) -> None:
    router = start_router("router { id: R }\n" + LISTENER)
    with Peer(
        0, wire=WebSocket(socket.create_connection(("127.0.0.1", http_port(router)))), idle_time_out=2000
    ) as peer:
        for _ in range(BEATS):
            assert peer.next() is None
        peer.be_heard()


def test_a_client_that_answers_nothing_is_not(start_router: StartRouter) -> None:
    router = start_router("router { id: R }\n" + LISTENER)
    wire = WebSocket(socket.create_connection(("127.0.0.1", http_port(router))), answers=False)
    with Peer(0, wire=wire, idle_time_out=1000) as peer:
        error = peer.expect(Close).error
        assert error is not None
        assert error.condition == "amqp:resource-limit-exceeded"

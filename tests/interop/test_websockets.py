"""Clients over WebSockets and over TCP exchange messages through one router."""

from __future__ import annotations

import pytest

from tests.interop.agents import agent, message
from tests.routers import RunningRouter, StartRouter, start_router

pytestmark = pytest.mark.interop

__all__ = ["start_router"]

SIZES = {"small": (10, 100), "10 MB": (1, 10_000_000), "1,000 messages": (1_000, 40)}
BOTH = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }
"""


def http_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])


@pytest.fixture
def both(start_router: StartRouter) -> RunningRouter:
    return start_router(BOTH)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("subprotocol", ["amqp", "binary"])
@pytest.mark.parametrize("other", ["rhea-websocket", "proton"])
def test_every_message_arrives_whole_once_and_in_order(
    both: RunningRouter, subprotocol: str, other: str, kind: str
) -> None:
    count, size = SIZES[kind]
    web = {"subprotocol": subprotocol}
    for sender, receiver in (("rhea-websocket", other), (other, "rhea-websocket")):
        ports = {name: http_port(both) if name == "rhea-websocket" else both.port for name in (sender, receiver)}
        ways = {name: web if name == "rhea-websocket" else {} for name in (sender, receiver)}
        address = f"{sender}-to-{receiver}"
        with agent(receiver, "receive", ports[receiver], address=address, count=count, **ways[receiver]) as receiving:
            receiving.wait_for("ready")
            with agent(
                sender, "send", ports[sender], address=address, count=count, size=size, **ways[sender]
            ) as sending:
                sending.wait_for("ready")
                assert receiving.result()["messages"] == [message(number, size) for number in range(count)]
                assert sending.result()["outcomes"] == [["accepted", None, None]] * count


def test_requests_and_replies_through_dynamic_addresses(both: RunningRouter) -> None:
    port = http_port(both)
    with agent("rhea-websocket", "respond", port, address="service", count=5, subprotocol="binary") as responding:
        responding.wait_for("ready")
        with agent("rhea-websocket", "request", port, address="service", count=5, subprotocol="amqp") as requesting:
            requesting.wait_for("ready")
            assert requesting.result()["replies"] == [[f"id-{number}", f"PING {number}"] for number in range(5)]
            responding.result()


def test_a_router_stops_while_websockets_are_open(both: RunningRouter) -> None:
    with agent("rhea-websocket", "receive", http_port(both), address="a", subprotocol="binary") as receiving:
        receiving.wait_for("ready")
        assert both.stop() == 0
        assert receiving.wait_for("failed")["condition"] == "amqp:connection:forced"


def test_a_client_that_is_killed_is_forgotten(both: RunningRouter) -> None:
    with agent("rhea-websocket", "receive", http_port(both), address="a", subprotocol="binary") as receiving:
        receiving.wait_for("ready")
        receiving.kill()
        both.wait_for_line(r"Connection Closed|Connection from \S+ failed")

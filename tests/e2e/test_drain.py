"""A router that is drained by an operator: its clients move to another router, and nothing is lost."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import proton
import pytest
import trio
from proton.handlers import MessagingHandler
from proton.reactor import Container

from tests.e2e.peer import Peer
from tests.http.test_live import get
from tests.management.node import Node, node_of
from tests.networks import edge, wait_for_reach
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, running, start_router
from tests.tools.live import Ran, run
from tests.waiting import until
from trouter.wire.performatives import Close

__all__ = ["start_router"]

OPEN = "host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS"
#: The ports: clients, the operator; the pages come after them.
ROUTER = f"""
router {{ id: R, drainTimeoutSeconds: 3600 }}
listener {{ {OPEN} }}
listener {{ name: own, {OPEN}, drains: no }}
listener {{ name: web, {OPEN}, http: yes }}
"""
FORCED = ("amqp:connection:forced", "the router is draining: connect to another one")


def own_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+) \(own\)")[1])


def web_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"Listening for HTTP on 127\.0\.0\.1:(\d+)")[1])


def tool(*words: str) -> Ran:
    """Run `trouter` with these words; return what it printed."""

    async def go() -> Ran:
        return await run(*words)

    return trio.run(go)


@contextmanager
def operator(router: RunningRouter) -> Iterator[Node]:
    with node_of(own_port(router)) as node:
        yield node


def end_of(peer: Peer) -> tuple[str, str | None]:
    """Return the reason of the router's close."""
    while not isinstance(performative := peer.next(), Close):
        pass
    assert performative.error is not None
    peer.say(Close())
    peer.expect_end_of_stream()
    return str(performative.error.condition), performative.error.description


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


def test_clients_leave_with_a_reason_and_the_operator_stays(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with Peer(router.port) as one, Peer(router.port) as another:
        ran = tool("drain", "-b", f"127.0.0.1:{own_port(router)}", "--over", "0")
        assert (ran.status, ran.out) == (0, "R: drained: no client connection is left, the router closed 2\n")
        assert [end_of(one), end_of(another)] == [FORCED, FORCED]
    assert is_refused(router.port)
    assert get(web_port(router), "/readyz") == (503, "NOT OK\ndraining: 0 of 2 client connections are left\n")
    assert get(web_port(router), "/healthz") == (200, "OK")
    with operator(router) as node:
        assert node.ask("GET-DRAIN").body["state"] == "drained"
        (row,) = node.query("router", ["drainState", "drainConnectionsLeft"])
        assert (row["drainState"], row["drainConnectionsLeft"]) == ("drained", 0)
        found = [each["message"] for each in node.query("finding", ["message"])]
        assert "takes no new clients, because it is draining: 0 of 2 client connections are left" in found


def test_a_cancelled_drain_leaves_the_others_and_takes_clients_again(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    port = router.port
    bus = f"127.0.0.1:{own_port(router)}"
    with Peer(port) as peer, operator(router) as node:
        started = tool("drain", "-b", bus, "--over", "1h", "--no-wait")
        assert started.out == "R: draining: 1 of 1 client connections are left, over 3600 s\n"
        assert is_refused(port)
        assert json.loads(tool("drain", "-b", bus, "--status", "--json").out)["state"] == "draining"
        assert get(web_port(router), "/readyz")[0] == 503
        assert tool("drain", "-b", bus, "--cancel").out == "R: takes clients, and is not draining\n"
        assert get(web_port(router), "/readyz") == (200, "OK")
        router.wait_for_line("The drain was cancelled after 0 closed connections")
        peer.be_heard()
        assert node.ask("GET-DRAIN").body["state"] == "serving"
    router.wait_for_line(r"Listening on 127\.0\.0\.1:\d+$", 2)  # port 0: it is another one now
    assert not is_refused(router.ports[-1])


def test_what_is_under_way_is_settled_before_the_close(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with Peer(router.port) as receiver, Peer(router.port) as sender, operator(router) as node:
        source = receiver.attach_receiver("a", credit=10)
        link = sender.attach_sender("a")
        delivery = sender.send_message(link, b"under way")
        sender.be_heard()
        assert node.ask("DRAIN", over=0).body["left"] == 2
        receiver.take_message(source)  # it is accepted
        sender.expect_outcome(delivery)
        assert [end_of(receiver), end_of(sender)] == [FORCED, FORCED]


def test_a_client_that_settles_nothing_is_closed_in_time(start_router: StartRouter) -> None:
    router = start_router(ROUTER.replace("3600", "1"))
    with Peer(router.port) as receiver, Peer(router.port) as sender, operator(router) as node:
        receiver.attach_receiver("a", credit=10)
        sender.send_message(sender.attach_sender("a"), b"under way")
        sender.be_heard()
        node.ask("DRAIN", over=0)
        assert end_of(receiver) == FORCED
        assert end_of(sender) == FORCED
    router.wait_for_line(r"closed: the router is draining \(unsettled deliveries: 1\)")


def test_a_reload_keeps_the_drain_and_term_ends_it(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with operator(router) as node:
        node.ask("DRAIN", over=0)
        added = "listener { name: later, host: 127.0.0.1, port: 0 }\n"
        router.configuration.write_text(ROUTER + added, encoding="utf-8")
        assert node.ask("RELOAD").body["created"] == ["listener/127.0.0.1:0:later"]
        assert node.ask("GET-DRAIN").body["state"] == "drained"
        assert not router.matching(r"\(later\)")
        node.ask("CANCEL-DRAIN")
        router.wait_for_line(r"Listening on 127\.0\.0\.1:\d+ \(later\)")
        node.ask("DRAIN", over=3600)
    assert router.stop() == 0


@pytest.mark.parametrize("over", [-1, 86_401])
def test_a_time_out_of_bounds_is_refused(start_router: StartRouter, over: int) -> None:
    router = start_router(ROUTER)
    with operator(router) as node:
        answer = node.ask("DRAIN", over=over)
        assert (answer.status, answer.description) == (
            400,
            f"the property 'over' is {over}; it must be 0 to 86400 seconds",
        )
        assert node.ask("GET-DRAIN").body["state"] == "serving"


def test_a_websocket_is_refused_and_the_pages_stay(start_router: StartRouter) -> None:
    router = start_router(ROUTER)
    with operator(router) as node:
        node.ask("DRAIN", over=0)
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Protocol": "amqp",
        }
        assert upgraded(web_port(router), headers) == (503, "503 Service Unavailable: the router is draining\n")
        node.ask("CANCEL-DRAIN")
        assert upgraded(web_port(router), headers)[0] == 101


def upgraded(port: int, headers: dict[str, str]) -> tuple[int, str]:
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.request("GET", "/", headers=headers)
    answer = connection.getresponse()
    text = "" if answer.status == 101 else answer.read().decode()
    connection.close()
    return answer.status, text


def test_an_edge_router_moves_to_the_failover_of_its_interior_router(tmp_path: Path) -> None:
    with ExitStack() as stack:
        edges = f"listener {{ name: edges, {OPEN}, role: edge, allowInsecureRole: yes }}"
        south = stack.enter_context(running(interior("South") + edges, tmp_path))
        routers = int(south.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+) \(routers\)")[1])
        edges = edges.replace("role: edge", f"role: edge, failoverUrls: amqp://127.0.0.1:{south.ports[-1]}")
        north = stack.enter_context(running(interior("North", routers) + edges, tmp_path))
        wait_for_reach({"North": north, "South": south})
        east = stack.enter_context(running(edge("East", [north.ports[-1]]), tmp_path))
        east.wait_for_line("to interior established")
        with Peer(south.ports[0]) as receiver:
            source = receiver.attach_receiver("a", credit=10)
            assert tool("drain", "-b", f"127.0.0.1:{own_port(north)}", "--over", "0").status == 0
            east.wait_for_line("to interior established", 2)
            south.wait_for_line("container_id=East")
            with Peer(east.port) as sender:
                sender.send_message(sender.attach_sender("a"), b"over the other")
                receiver.take_message(source)


# --- the ledger: clients of python-qpid-proton that reconnect to a second router

SENDERS, RECEIVERS = 4, 3
#: Deliveries without an outcome that a sender has at a time; messages that it sends over the second router.
WINDOW, AFTERWARDS = 20, 100


class Client(MessagingHandler):
    """A client with python-qpid-proton's own reconnection, over a list of two routers.

    It has a heartbeat, because it notices the end of a connection that was closed with amqp:connection:forced only when
    it writes again.
    """

    def __init__(self, urls: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self.urls = urls
        self.connections = 0

    def on_start(self, event: Any) -> None:
        again = [0, 0.01, 0.05] * 1_000
        self.connection = event.container.connect(urls=list(self.urls), reconnect=again, heartbeat=2)
        self.attach(event)

    def attach(self, event: Any) -> None:
        raise NotImplementedError

    def on_connection_opened(self, _: Any) -> None:
        self.connections += 1

    def on_transport_error(self, _: Any) -> None:
        """Let proton connect again."""


class Sending(Client):
    """Sends numbered messages until told to finish; what has no outcome when a connection ends is sent again."""

    def __init__(self, urls: Sequence[str], name: str) -> None:
        super().__init__(urls)
        self.name = name
        self.numbers = count()
        self.again: deque[str] = deque()
        self.under_way: dict[Any, str] = {}
        self.accepted: list[str] = []
        self.rejected: list[str] = []
        self.sent_again = 0
        self.accepted_afterwards = 0
        self.finishing = False
        self.done = threading.Event()

    def attach(self, event: Any) -> None:
        self.sender = event.container.create_sender(self.connection, "ledger", name=self.name)

    def on_sendable(self, _: Any) -> None:
        while self.sender.credit and len(self.under_way) < WINDOW and (self.again or not self.finishing):
            text = self.again.popleft() if self.again else f"{self.name}-{next(self.numbers)}"
            self.under_way[self.sender.send(proton.Message(body=text)).tag] = text

    def on_settled(self, event: Any) -> None:
        text = self.under_way.pop(event.delivery.tag, None)
        state = event.delivery.remote_state
        if text is None:
            return
        if state == proton.Delivery.ACCEPTED:
            self.accepted.append(text)
            self.accepted_afterwards += self.connections > 1
            self.finishing = self.accepted_afterwards >= AFTERWARDS
        elif state == proton.Delivery.REJECTED:
            self.rejected.append(text)
        else:
            self.again.append(text)
            self.sent_again += 1
        self.on_sendable(event)
        if self.finishing and not (self.again or self.under_way):
            self.done.set()

    def on_disconnected(self, _: Any) -> None:
        self.sent_again += len(self.under_way)
        self.again.extend(self.under_way.values())
        self.under_way.clear()


class Receiving(Client):
    """Accepts what comes."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__(urls, prefetch=50)
        self.received: Counter[str] = Counter()

    def attach(self, event: Any) -> None:
        event.container.create_receiver(self.connection, "ledger")

    def on_message(self, event: Any) -> None:
        self.received[event.message.body] += 1


def interior(name: str, dials: int = 0) -> str:
    link = (
        f"connector {{ host: 127.0.0.1, port: {dials}, role: inter-router, saslMechanisms: ANONYMOUS }}"
        if dials
        else f"listener {{ name: routers, {OPEN}, role: inter-router }}"
    )
    return f"""
    router {{ mode: interior, id: {name}, drainTimeoutSeconds: 3600 }}
    listener {{ name: clients, {OPEN} }}
    listener {{ name: own, {OPEN}, drains: no }}
    {link}
    """


@contextmanager
def container(handler: Client) -> Iterator[Container]:
    """Run a client in a thread of its own for the block."""
    made = Container(handler)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        handler.connection.close()
        thread.join(DEADLINE_S)


def test_clients_move_to_the_other_router_and_no_message_is_lost(tmp_path: Path) -> None:
    with ExitStack() as stack:
        north = stack.enter_context(running(interior("North"), tmp_path))
        routers = int(north.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+) \(routers\)")[1])
        south = stack.enter_context(running(interior("South", routers), tmp_path))
        wait_for_reach({"North": north, "South": south})
        urls = [f"127.0.0.1:{each.ports[0]}" for each in (north, south)]
        receiving = [Receiving(urls) for _ in range(RECEIVERS)]
        sending = [Sending(urls, f"s{number}") for number in range(SENDERS)]
        for client in (*receiving, *sending):
            stack.enter_context(container(client))
        until(lambda: all(each.accepted for each in sending), "the first messages")
        ran = tool("drain", "-b", f"127.0.0.1:{own_port(north)}", "--over", "1s", "--json")
        state = json.loads(ran.out)
        assert (state["state"], state["total"], state["closed"], state["left"]) == ("drained", 7, 7, 0)
        for each in sending:
            assert each.done.wait(DEADLINE_S)
        accepted = [text for each in sending for text in each.accepted]
        received = sum((each.received for each in receiving), Counter[str]())
        assert [each.rejected for each in sending] == [[]] * SENDERS
        assert len(accepted) == len(set(accepted)) == sum(next(each.numbers) for each in sending)
        assert set(accepted) - set(received) == set()  # lost
        assert sum(received.values()) == len(received)  # each once: what was under way was settled before the close
        until(lambda: all(each.connections > 1 for each in receiving), "the receivers at the other router")


def test_a_drain_that_would_lock_its_operator_out_needs_force(start_router: StartRouter) -> None:
    router = start_router(f"router {{ id: R }}\nlistener {{ {OPEN} }}\n")
    ran = tool("drain", "-b", f"127.0.0.1:{router.port}", "--over", "1s")
    assert ran.status == 1
    assert "all listeners of the router would close" in ran.err
    assert tool("drain", "-b", f"127.0.0.1:{router.port}", "--status").status == 0
    assert not router.matching("Draining: ")
    ran = tool("drain", "-b", f"127.0.0.1:{router.port}", "--over", "1s", "--force")
    assert (ran.status, ran.out) == (0, "R: drained: no client connection is left, the router closed 0\n")
    router.wait_for_line("Draining: 0 client connections")


def test_a_listener_for_pages_is_a_way_to_watch_a_drain(start_router: StartRouter) -> None:
    router = start_router(f"router {{ id: R }}\nlistener {{ {OPEN} }}\nlistener {{ {OPEN}, http: yes }}\n")
    assert tool("drain", "-b", f"127.0.0.1:{router.port}", "--over", "1s").status == 0

"""trouter's answers to Qpid Dispatch, compared with those of Qpid Dispatch, value by value."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import pytest

from tests.e2e.peer import Link, Peer
from tests.interop.recorded.meant import BESIDES, unmeant, unused
from tests.interop.recorded.player import Player
from tests.interop.recorded.recording import Difference, steps, take_frame
from tests.networks import OPEN
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.wire.performatives import Transfer

pytestmark = pytest.mark.slow

#: By recording: the roles of the dialling and the listening router, and their ids.
ROUTERS = {"interior": (("interior", "B"), ("interior", "A")), "edge": (("edge", "E"), ("interior", "I"))}
ADDRESSES = "address { prefix: multicast, distribution: multicast }\n"


class Clients:
    """The clients of trouter, each with a connection and a thread of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._running: list[tuple[Peer, threading.Thread]] = []

    def act(self, action: str, message: bytes) -> None:
        """Do the action of a line of a recording."""
        match action.split():
            case ["receives", "nothing"] | ["sends", "no", "more"]:
                self.leave()
            case ["receives", address]:
                peer = Peer(self._port)
                self._start(peer, take_all, peer, peer.attach_receiver(address, credit=10))
            case ["sends", _, "to", address]:
                peer = Peer(self._port)
                self._start(peer, send, peer, address, message)
            case _:
                raise AssertionError(f"no client does {action!r}")

    def _start(self, peer: Peer, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=until_left, args=(run, *arguments), daemon=True)
        thread.start()
        self._running.append((peer, thread))

    def leave(self) -> int:
        """Close all their connections; return how many."""
        left = len(self._running)
        while self._running:
            peer, thread = self._running.pop()
            with suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE_S)
            peer.sock.close()
        return left


def until_left(run: Callable[..., None], *arguments: object) -> None:
    """Run a client's actions until its connection is closed."""
    with suppress(AssertionError, OSError):
        run(*arguments)


def take_all(peer: Peer, link: Link) -> None:
    """Receive and accept each message."""
    while True:
        peer.take_message(link)


def send(peer: Peer, address: str, message: bytes) -> None:
    """Send one message, in frames of 16,000 bytes, and stay attached."""
    link = peer.attach_sender(address)
    pieces = [message[at : at + 16_000] for at in range(0, len(message), 16_000)]
    for number, piece in enumerate(pieces):
        peer.transfer(link, piece, more=number < len(pieces) - 1, first=number == 0)
    while True:
        peer.next()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        yield server


@contextmanager
def closing_after(clients: Clients) -> Iterator[None]:
    try:
        yield
    finally:
        clients.leave()


@contextmanager
def played(
    name: str, side: str, folder: Path, server: socket.socket, until: str = ""
) -> Iterator[tuple[RunningRouter, Player, Clients]]:
    """Play ``side`` of a recording to trouter, to its end or until the action ``until`` of clients."""
    dialler, listener = ROUTERS[name]
    mode, identity = listener if side == "D" else dialler
    role = "edge" if name == "edge" else "inter-router"
    text = f"router {{ mode: {mode}, id: {identity}, drainTimeoutSeconds: 60 }}\nlistener {{ {OPEN} }}\n{ADDRESSES}"
    if side == "D":
        text += f"listener {{ {OPEN}, role: {role}, allowInsecureRole: yes }}\n"
    else:
        port = server.getsockname()[1]
        text += f"connector {{ host: 127.0.0.1, port: {port}, role: {role}, saslMechanisms: ANONYMOUS }}\n"
    with running(text, folder) as router:
        clients = Clients(router.ports[0])
        if side == "D":
            sock = socket.create_connection(("127.0.0.1", router.ports[1]))
        else:
            sock, _ = server.accept()
        with sock, closing_after(clients):
            before = takewhile(lambda step: not until or f"{step.side} {step.action}" != until, steps(name))
            player = Player(list(before), side, sock, clients.act)
            player.play()
            yield router, player, clients


#: The differences of each conversation.
_SHOWN: dict[tuple[str, str], list[Difference]] = {}


@pytest.mark.parametrize("side", ["D", "L"])
@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_answers_as_the_older_one_did(name: str, side: str, tmp_path: Path, listening: socket.socket) -> None:
    with played(name, side, tmp_path, listening) as (_, player, _):
        differences = _SHOWN[name, side] = player.differences
    assert not unmeant(differences), "\n".join(unmeant(differences))
    assert player.unexpected() <= BESIDES.keys()


def test_each_difference_that_is_meant_is_one_still() -> None:
    if len(_SHOWN) < 4:
        pytest.skip("not all conversations have been played")
    assert unused(each for shown in _SHOWN.values() for each in shown) == []


#: Where the conversation with the edge router is cut: its client receives, its client sends.
CUTS = ["D receives nothing", "D sends no more"]


@pytest.mark.parametrize("until", CUTS)
def test_an_edge_router_hears_of_no_end_but_its_own(until: str, tmp_path: Path, listening: socket.socket) -> None:
    """Clients that send to the edge router and receive from it leave while the router stops."""
    with played("edge", "D", tmp_path, listening, until) as (router, player, clients), Peer(router.port) as slow:
        held = slow.attach_receiver("held", credit=1)
        slow.send_message(slow.attach_sender("held"), b"under way")
        delivery = slow.expect(Transfer).delivery_id
        assert (held.remote_handle, delivery) == (0, 0)
        router.process.send_signal(signal.SIGTERM)
        router.wait_for_line("Stopping: draining")
        left = clients.leave()
        router.wait_for_line("Connection Closed", left)
        slow.accept(0)
        *others, close = player.read_to_end()
        assert router.wait() == 0
    assert {frame.kind for frame in others} == {"flow"}
    assert any(frame.fields.get("drain") for frame in others)
    assert (close.kind, close.fields["error"][:1]) == ("close", ["amqp:connection:forced"])


def test_links_of_a_neighbour_are_answered_in_its_order(tmp_path: Path) -> None:
    # The order over all sessions is that of the priorities of the links.
    said = [step.frame for step in steps("interior") if step.side == "D" and step.frame is not None]
    said = list(takewhile(lambda frame: frame.kind != "flow", said))
    asked = [frame.fields["name"] for frame in said if frame.kind == "attach"]
    text = f"router {{ mode: interior, id: A }}\nlistener {{ {OPEN}, role: inter-router, allowInsecureRole: yes }}\n"
    with running(text, tmp_path) as router:
        for _ in range(5):  # the order is partly random
            with socket.create_connection(("127.0.0.1", router.port)) as sock:
                sock.settimeout(DEADLINE_S)
                sock.sendall(b"".join(frame.octets for frame in said))
                answered: list[str] = []
                gathered = bytearray()
                while len(answered) < len(asked):
                    gathered += sock.recv(1 << 16)
                    while (frame := take_frame(gathered)) is not None:
                        if frame.kind == "attach":
                            answered.append(frame.fields["name"])
            assert answered == asked

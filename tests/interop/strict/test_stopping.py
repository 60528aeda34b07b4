"""A router that stops or drains beside routers of Qpid Dispatch: what it tells them, and what they keep of it.

An edge router of Qpid Dispatch never recovers an address of which it hears "no receiver" just before its connection
ends (``OutLinks``). So a router that leaves withdraws nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.peer import Link as ClientLink
from tests.e2e.peer import Peer
from tests.e2e.test_drain import tool
from tests.interop.recorded.recording import Frame
from tests.interop.strict.conftest import dial
from tests.interop.strict.end import End, Link
from tests.interop.strict.routers import DATA, Below, Interior, link_name
from tests.interop.strict.writing import message, source, target, text
from tests.networks import OPEN
from tests.routers import RunningRouter, running
from trouter.wire.performatives import Detach

pytestmark = pytest.mark.slow

FLOW, FAR, HELD, OTHER = "risk.flow", "far", "held", "risk.other"
#: Messages of routers that go on while a router stops, because they say that it is alive.
ALIVE = {"HELLO", "RA"}
#: Hellos that come in more seconds than an edge router may be silent.
HELLOS = 10
FORCED = "amqp:connection:forced"


@dataclass
class Hub:
    """A router with two edge routers, a neighbour and a client: ``sending`` sends to FLOW and ``receiving`` takes it.

    The neighbour takes FAR, and keeps what comes to HELD without an outcome. The client takes OTHER and sends to HELD.
    """

    router: RunningRouter
    sending: Below
    receiving: Below
    flow: Link
    beside: Interior
    client: Peer
    taking: ClientLink


@pytest.fixture
def hub(tmp_path: Path, peers: list[End]) -> Iterator[Hub]:
    with ExitStack() as stack:
        configuration = f"""
        router {{ mode: interior, id: R, drainTimeoutSeconds: 3600 }}
        listener {{ {OPEN} }}
        listener {{ {OPEN}, role: inter-router }}
        listener {{ {OPEN}, role: edge }}
        listener {{ {OPEN}, drains: no }}
        """
        router = stack.enter_context(running(configuration, tmp_path))
        beside = stack.enter_context(Interior(dial(router.ports[1]), "W", dials=True))
        beside.listen(FAR)
        beside.listen(HELD, code=0)
        beside.wait_met("R")
        sending, receiving = (stack.enter_context(Below(dial(router.ports[2]), name, dials=True)) for name in "ST")
        peers += [beside, sending, receiving]
        for below in (sending, receiving):
            below.wait_up()
        receiving.listen(FLOW)
        client = stack.enter_context(Peer(router.port))
        taking = client.attach_receiver(OTHER, credit=10)
        client.be_heard()
        flow = sending.sender(FLOW)
        for address in (OTHER, FAR):
            sending.sender(address)
        for address in (FLOW, OTHER, FAR):
            wait_for_receiver(sending, address)
        beside.wait_listed("R", f"M0{OTHER}")
        credit = flow.credit
        sent = sending.send(flow, message(text("before")))
        sending.wait(lambda: sent.outcome == (0x24, []) and flow.credit == credit, "its outcome and its credit")
        yield Hub(router, sending, receiving, flow, beside, client, taking)


def wait_for_receiver(below: Below, address: str) -> None:
    """Wait until an edge router has heard that an address has a receiver."""
    below.wait(lambda: below.takes_elsewhere.get(f"M0{address}"), address)


def wait_for_close(*peers: End) -> None:
    """Wait until the router has closed the connections of all these."""
    for peer in peers:
        assert peer.wait(partial(getattr, peer, "closed"), "the close")


def hold_up(hub: Hub) -> None:
    """Stop the router while a message of its client is under way, so that it waits."""
    hub.client.send_message(hub.client.attach_sender(HELD), b"under way")
    hub.beside.got(HELD)
    hub.router.process.send_signal(signal.SIGTERM)
    hub.router.wait_for_line("Stopping: draining")


def let_end(hub: Hub) -> None:
    """Settle the message that is under way, and wait for the end of the router."""
    for delivery in hub.beside.got(HELD):
        hub.beside.settle(delivery, 0x24)
    assert hub.router.wait() == 0


def said(peer: End, since: int = 0) -> list[str]:
    """Return what the router has said to a peer from a frame on, without what it repeats while it is alive."""
    return [_words(peer, frame, link) for frame, link in peer.heard[since:] if frame.opcode not in ALIVE]


def _words(peer: End, frame: Frame, link: Link | None) -> str:
    if frame.kind == "close":
        return f"close {(peer.closed or ('', ''))[0]}"
    where = "" if link is None else f" {link.address or link.kind}"
    drains = " drain" if frame.kind == "flow" and frame.fields.get("drain") else ""
    return f"{frame.kind}{where}{drains}"


DRAINED = ["flow management drain", f"flow {FAR} drain", f"flow {FLOW} drain", f"flow {OTHER} drain", "flow up drain"]


def test_nothing_but_drains_and_a_close_is_said_on_term(hub: Hub) -> None:
    marks = {peer: len(peer.heard) for peer in (hub.sending, hub.receiving, hub.beside)}
    assert hub.router.stop() == 0
    wait_for_close(*marks)
    told = {peer: said(peer, mark) for peer, mark in marks.items()}
    *drains, close = told[hub.sending]
    assert (sorted(drains), close) == (sorted(DRAINED), f"close {FORCED}")
    *drains, close = told[hub.receiving]
    assert (sorted(drains), close) == (["flow management drain", "flow up drain"], f"close {FORCED}")
    *drains, close = told[hub.beside]
    assert (drains, close) == (["flow qd.router-data drain"] * 10, f"close {FORCED}")
    assert hub.sending.out_links.dead == set()
    assert hub.beside.closed == (FORCED, "the router is shutting down")


def give_up_address(hub: Hub) -> None:
    """Let the receiving edge router detach its only receiver."""
    link = next(each for each in hub.receiving.links if each.address == FLOW)
    hub.receiving.detach(link)
    hub.receiving.wait(lambda: link.detached, "the answer")


def end_link_of_client(hub: Hub) -> None:
    """Let the client detach its receiver."""
    hub.client.say(Detach(hub.taking.handle, True))
    hub.client.expect(Detach)


def withdraw_address(hub: Hub) -> None:
    """Let the neighbour lose its consumer."""
    told = hub.beside.talk.count("> MAU")
    hub.beside.unlisten(FAR)
    hub.beside.wait(lambda: hub.beside.talk.count("> MAU") > told, "the withdrawal")
    ends = source(None, DATA), target(None, DATA)
    link = hub.beside.attach(hub.beside.sessions[0], link_name(), DATA, *ends, sends=True)
    hub.beside.wait(lambda: link.attach, "an answer, which comes after the withdrawal was read")


def attach_another(hub: Hub) -> None:
    """Let the sending edge router attach a link for one more address, which has a receiver."""
    link = hub.sending.sender(HELD)
    hub.sending.wait(lambda: link.attach, "the answer")


def lose_connection(hub: Hub) -> None:
    """End the connection of the receiving edge router."""
    hub.receiving.leave()
    hub.router.wait_for_line("Connection Closed")


STEPS = (give_up_address, end_link_of_client, withdraw_address, attach_another, lose_connection)


@pytest.mark.parametrize("steps", [STEPS, (*STEPS[1:4], STEPS[4])], ids=["in turn", "without a detach"])
def test_what_ends_while_a_router_stops_is_told_to_none(hub: Hub, steps: tuple[Callable[[Hub], None], ...]) -> None:
    hold_up(hub)
    mark = len(hub.sending.heard)
    for step in steps:
        step(hub)
    let_end(hub)
    wait_for_close(hub.sending)
    assert hub.sending.out_links.dead == set()
    kinds = [words.split()[0] for words in said(hub.sending, mark)]
    assert "detach" not in kinds
    assert hub.beside.nodes["R"].addresses >= {f"M0{OTHER}", f"M0{FLOW}"}
    assert hub.beside.lost == []


def test_a_router_that_waits_for_outcomes_keeps_its_neighbours(hub: Hub) -> None:
    """Hellos and heartbeats go on, in both directions, for longer than a silent neighbour or edge router is kept."""
    hold_up(hub)
    hellos = hub.beside.talk.count("< HELLO")
    hub.beside.wait(lambda: hub.beside.talk.count("< HELLO") >= hellos + HELLOS, "hellos")
    assert [hub.beside.closed, hub.sending.closed, hub.beside.lost] == [None, None, []]
    assert hub.router.matching("no longer a neighbour|aborted|lost") == []
    let_end(hub)


def test_a_router_that_drains_does_not_say_that_receivers_have_left(hub: Hub) -> None:
    assert tool("drain", "-b", f"127.0.0.1:{hub.router.ports[3]}", "--over", "0").status == 0
    wait_for_close(hub.sending, hub.receiving)
    assert hub.sending.closed == (FORCED, "the router is draining: connect to another one")
    assert hub.sending.out_links.dead == set()


def test_a_cancelled_drain_says_what_it_withheld(hub: Hub) -> None:
    bus = f"127.0.0.1:{hub.router.ports[3]}"
    assert tool("drain", "-b", bus, "--over", "1h", "--no-wait").status == 0
    give_up_address(hub)
    attach_another(hub)
    wait_for_receiver(hub.sending, HELD)
    assert hub.sending.takes_elsewhere[f"M0{FLOW}"]
    assert tool("drain", "-b", bus, "--cancel").status == 0
    hub.sending.wait(lambda: not hub.sending.takes_elsewhere[f"M0{FLOW}"], "what was withheld")

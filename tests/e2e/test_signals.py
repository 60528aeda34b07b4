"""A router that is stopped: the deliveries that it finishes, the connections that it closes, and its exit status."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.peer import Link, Peer, message
from tests.routers import DEADLINE_S, PLAIN_LISTENER, RunningRouter, StartRouter, process
from tests.waiting import until
from trouter.wire.performatives import Accepted, Attach, Close, Detach, Disposition, Flow, Source, Target, Transfer

FORCED = "amqp:connection:forced"
PATIENT = PLAIN_LISTENER.replace("id: R", "id: R, drainTimeoutSeconds: 3600")
SHORT = PLAIN_LISTENER.replace("id: R", "id: R, drainTimeoutSeconds: 1")


def send(router: RunningRouter, number: signal.Signals = signal.SIGTERM) -> None:
    router.process.send_signal(number)


def expect_forced_close(peer: Peer) -> None:
    """Check the router's close and its reason; before it the router may release or modify undelivered messages."""
    while not isinstance(performative := peer.next(), Close):
        assert performative is None or isinstance(performative, Flow | Disposition), performative
    assert performative.error is not None
    assert performative.error.condition == FORCED
    peer.say(Close())
    peer.expect_end_of_stream()


def wait_until_refused(port: int) -> None:
    """Connect until the connection is refused; connections that come too late are dropped."""

    def is_refused() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as late:
                assert late.recv(1) == b""
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            pass
        return False

    until(is_refused, "a refusal")


def drain_with_one_under_way(router: RunningRouter, receiver: Peer, sender: Peer) -> tuple[Link, int]:
    """Stop the router while a message waits for its receiver's outcome; return the receiver's link and the delivery."""
    source = receiver.attach_receiver("a", credit=10)
    link = sender.attach_sender("a")
    delivery = sender.send_message(link, b"under way")
    sender.be_heard()
    send(router)
    router.wait_for_line("Stopping: draining")
    return source, delivery


def test_term_ends_idle_connections_with_a_reason_and_the_process_with_status_0(router: RunningRouter) -> None:
    with Peer(router.port) as one, Peer(router.port, opened=False) as another:
        another.open()
        send(router)
        expect_forced_close(one)
        expect_forced_close(another)
    assert router.wait() == 0


def test_term_lets_unsettled_deliveries_finish(start_router: StartRouter) -> None:
    router = start_router(PATIENT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source, delivery = drain_with_one_under_way(router, receiver, sender)
        assert receiver.take_message(source) == message(b"under way")
        assert sender.expect_outcome(delivery) == Accepted()
        expect_forced_close(sender)
        expect_forced_close(receiver)
    assert router.wait() == 0


def test_a_draining_router_takes_no_links_and_no_connections(start_router: StartRouter) -> None:
    router = start_router(PATIENT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source, delivery = drain_with_one_under_way(router, receiver, sender)
        wait_until_refused(router.port)
        answer = sender.attach(Attach("late", 9, False, source=Source(), target=Target("a"), initial_delivery_count=0))
        assert answer.target is None
        detach = sender.expect(Detach)
        assert detach.error is not None
        assert (detach.closed, detach.error.condition) == (True, FORCED)
        receiver.take_message(source)
        assert sender.expect_outcome(delivery) == Accepted()
        expect_forced_close(sender)
    assert router.wait() == 0


def test_a_draining_router_gives_no_new_credit(start_router: StartRouter) -> None:
    router = start_router(PATIENT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source = receiver.attach_receiver("a", credit=1_000)
        link = sender.attach_sender("a")
        deliveries = [sender.send_message(link, b"%d" % number) for number in range(2)]
        sender.be_heard()
        before = link.credit
        send(router)
        router.wait_for_line("Stopping: draining")
        receiver.take_message(source)
        assert sender.expect_outcome(deliveries[0]) == Accepted()
        sender.be_heard()
        assert link.credit <= before
        receiver.take_message(source)
        assert sender.expect_outcome(deliveries[1]) == Accepted()
        expect_forced_close(sender)
    assert router.wait() == 0


@pytest.mark.parametrize("credit", [10, 0], ids=["never settled", "never taken"])
def test_the_deadline_closes_connections_with_unsettled_deliveries(start_router: StartRouter, credit: int) -> None:
    router = start_router(SHORT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        receiver.attach_receiver("a", credit=credit)
        receiver.be_heard()
        link = sender.attach_sender("a")
        sender.send_message(link, b"under way")
        if credit:
            receiver.expect(Transfer)
        sender.be_heard()
        send(router)
        expect_forced_close(sender)
        expect_forced_close(receiver)
    assert router.wait() == 0


def test_a_second_term_stops_at_once(start_router: StartRouter) -> None:
    router = start_router(PATIENT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        receiver.attach_receiver("a", credit=10)
        link = sender.attach_sender("a")
        sender.send_message(link, b"never settled")
        sender.be_heard()
        send(router)
        router.wait_for_line("Stopping: draining")
        send(router)
        assert router.wait() == 0


def test_a_flood_of_terms_does_not_change_the_status(router: RunningRouter) -> None:
    def flood() -> None:
        with suppress(ProcessLookupError):
            while router.process.returncode is None:
                for _ in range(1000):
                    os.kill(router.process.pid, signal.SIGTERM)
                router.process.poll()

    floods = [threading.Thread(target=flood) for _ in range(4)]
    for each in floods:
        each.start()
    for each in floods:
        each.join()
    assert router.wait() == 0, router.text()


def test_int_drains_too_and_ends_the_process_by_the_signal(router: RunningRouter) -> None:
    with Peer(router.port) as one:
        send(router, signal.SIGINT)
        expect_forced_close(one)
    assert router.wait() == -signal.SIGINT


def test_a_peer_that_does_not_answer_the_close_holds_nothing_up(router: RunningRouter) -> None:
    with Peer(router.port):
        send(router)
        assert router.wait() == 0


def test_a_port_in_use_ends_the_start_with_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(f"listener {{ host: 127.0.0.1, port: {port} }}\n", tmp_path) as router:
            assert router.wait() == 1
            router.wait_for_line(rf"MAIN \(critical\) .*cannot listen on 127\.0\.0\.1:{port}: Address already in use")
            router.assert_no_fault_of_ours()

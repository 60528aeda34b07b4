"""Two well-behaved clients whose traffic runs all the time, beside the part of the router that a test disturbs."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from tests.e2e.peer import Peer, body_of
from tests.routers import DEADLINE_S
from trouter.wire.performatives import Accepted, Flow


class Neighbours:
    """A sender and a receiver: one message after the other, each received whole, in order and accepted."""

    def __init__(self, port: int, address: str = "neighbours") -> None:
        self._sender = Peer(port)
        self._receiver = Peer(port)
        self._from = self._receiver.attach_receiver(address, credit=10)
        self._to = self._sender.attach_sender(address)
        self._progress = threading.Condition()
        self._exchanged = 0
        self._failure: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        self._thread.join(DEADLINE_S)
        self._sender.sock.close()
        self._receiver.sock.close()
        if error is None and self._failure is not None:
            raise self._failure

    def go_on(self, count: int = 20) -> None:
        """Return when ``count`` more messages went through; AssertionError if they do not."""
        with self._progress:
            wanted = self._exchanged + count
            self._progress.wait_for(lambda: self._failure is not None or self._exchanged >= wanted, DEADLINE_S)
            assert self._failure is None, f"the neighbours were disturbed: {self._failure!r}"
            assert self._exchanged >= wanted, "the neighbours' traffic has stopped"

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._exchange()
                with self._progress:
                    self._exchanged += 1
                    self._progress.notify_all()
        except BaseException as failure:  # noqa: BLE001 - raised again where the test waits
            with self._progress:
                self._failure = failure
                self._progress.notify_all()

    def _exchange(self) -> None:
        body = b"neighbourly %d" % self._exchanged
        while self._to.credit <= 0:
            self._sender.take_flow(self._sender.expect(Flow))
        delivery = self._sender.send_message(self._to, body)
        assert body_of(self._receiver.take_message(self._from)) == body
        self._receiver.grant(self._from, 10)
        assert self._sender.expect_outcome(delivery) == Accepted()

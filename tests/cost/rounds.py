"""Rounds of messages through a router in memory, each played in a child of its own, for a counter of instructions.

    valgrind --tool=cachegrind python -m tests.cost.rounds REPORT

A first router records the bytes that its clients write; a second one gets them again, without clients, so that nothing
but the router works. Children of one process share what it has loaded, so that the counts of two of them differ by
their work.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from trouter.testing.memory import MemoryClient, MemoryRouter, compose

#: Rounds before the count, which fill what the router keeps for its next messages, and rounds that are counted.
WARM: Final = 50
COUNTED: Final = 60


class Case(NamedTuple):
    """One kind of rounds: how many messages each has, of how many bytes, and how they are sent and received."""

    messages: int
    body_bytes: int = 100
    settled: bool = False
    receivers: int = 1
    distribution: str = "balanced"
    #: The sender's link has no address: each message has one.
    anonymous: bool = False


CASES: Final = {
    "one message alone": Case(1),
    "ten messages of one read": Case(10),
    "ten pre-settled messages of one read": Case(10, settled=True),
    "ten messages of 10 kB": Case(10, body_bytes=10_000),
    "ten messages to ten receivers each": Case(10, receivers=10, distribution="multicast"),
    "ten messages of an anonymous sender": Case(10, anonymous=True),
}

#: The bytes of one step, by the number of the client that writes them.
Step = list[tuple[int, bytes]]


class Scene:
    """A router with a sender and receivers, whose links have credit for all rounds."""

    def __init__(self, case: Case, rounds: int) -> None:
        self.router = MemoryRouter(default_distribution=case.distribution)
        self.case = case
        self.clients = [self.router.connect() for _ in range(case.receivers + 1)]
        self.receivers = [client.receiver("queue", credit=rounds * case.messages + 1) for client in self.clients[1:]]
        self.sender = self.clients[0].sender(None if case.anonymous else "queue")
        self.message = compose(b"x" * case.body_bytes, to="queue" if case.anonymous else None)
        #: Bytes of the router's output.
        self.answered_bytes = 0

    def record_round(self) -> list[Step]:
        """Send the messages of a round and settle them; return the bytes of the clients."""
        for _ in range(self.case.messages):
            self.sender.send(self.message, settled=self.case.settled)
        steps = [self._carry()]
        for receiver in self.receivers:
            while receiver.received:
                receiver.received.pop().settle()
        while step := self._carry():
            steps.append(step)
        return [step for step in steps if step]

    def _carry(self) -> Step:
        step: Step = []
        for number, client in enumerate(self.clients):
            client.connection.flush()
            if data := taken(client):
                step.append((number, data))
        self.play(step, lambda client, data: client.connection.receive_data(data))
        return step

    def play(self, step: Step, answered: Callable[[MemoryClient, bytes], object] | None = None) -> None:
        """Give the router the bytes of a step as of one pass of its loop, and take its output."""
        for number, data in step:
            self.clients[number].server.receive_data(data)
        self.router.flush()
        for client in self.clients:
            out = client.server.out
            self.answered_bytes += len(out)
            if out and answered is not None:
                answered(client, bytes(out))
            out.clear()


def taken(client: MemoryClient) -> bytes:
    """Return and clear the output of a client."""
    data = bytes(client.connection.out)
    client.connection.out.clear()
    return data


def children(report: Path, works: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Run each work in a child of its own, and write "process name" of each into the report."""
    with report.open("w", encoding="utf-8") as lines:
        for name, work in works:
            child = os.fork()
            if not child:
                work()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status:
                sys.exit(f"{name}: the child ended with {status}")
            lines.write(f"{child} {name}\n")


def prepared(case: Case) -> Callable[[], object]:
    """Return what plays the counted rounds of a case, on a router that did the same with the rounds before."""
    recorded, scene = Scene(case, WARM + COUNTED), Scene(case, WARM + COUNTED)
    for _ in range(WARM):
        for step in recorded.record_round():
            scene.play(step)
    assert scene.answered_bytes == recorded.answered_bytes, "the router does not do the same with the same bytes"
    servers = [client.server for client in scene.clients]
    steps = [
        [(servers[number].receive_data, data) for number, data in step]
        for _ in range(COUNTED)
        for step in recorded.record_round()
    ]
    flush = scene.router.flush

    def count() -> None:
        for step in steps:
            for receive, data in step:
                receive(data)
            flush()
            for server in servers:
                server.out.clear()

    return count


def main() -> None:
    """Play all cases; the argument is the report."""
    works: list[tuple[str, Callable[[], object]]] = [("nothing", lambda: None)]
    works += [(name, prepared(case)) for name, case in CASES.items()]
    gc.disable()
    gc.freeze()
    children(Path(sys.argv[1]), works)


if __name__ == "__main__":
    main()

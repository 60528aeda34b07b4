"""Any damage to the bytes that two engines exchange raises nothing, and without damage neither engine reports a fault.

The first byte chooses the two engines. Each four bytes behind it are one change to the next bytes that are carried: the
kind (none, lost, doubled, changed, cut, exchanged with the bytes behind them), the position (two bytes) and the value.

Allowed: nothing. An engine reports each fault of its peer as an event, and both stay within their limits. Without
damage each delivery is settled at both ends.
"""

from __future__ import annotations

from fuzz.engine import Holder
from trouter.engine.events import ConnectionClosed, Event, LinkDetached, SessionEnded
from trouter.testing.fuzz import mutation

COVERS = ("trouter.engine",)
MAX_ROUNDS = 60


class End(Holder):
    """One engine at an end of the line; it keeps the bytes that it sends and the faults that it reports."""

    def __init__(self, how: int) -> None:
        self.sent = bytearray()
        self.faults: list[str] = []
        super().__init__(how)

    def handle(self, event: Event) -> None:
        if isinstance(event, ConnectionClosed | SessionEnded | LinkDetached) and event.fault is not None:
            self.faults.append(str(event.fault))
        super().handle(event)

    def look(self) -> None:
        self.connection.flush()
        self.sent += self.connection.out
        super().look()

    def unsettled(self) -> list[tuple[int, int]]:
        """Return the counts of unsettled incoming and outgoing deliveries of each session that has any."""
        deliveries = [session.deliveries for session in self.connection.sessions()]
        counts = [(each.incoming.count, each.outgoing.count) for each in deliveries]
        return [each for each in counts if any(each)]

    def take(self) -> bytes:
        taken = bytes(self.sent)
        self.sent.clear()
        return taken


def damaged(octets: bytes, kind: int, at: int, value: int) -> bytes:
    at %= len(octets) or 1
    if kind == 1:
        return octets[:at] + octets[at + 1 + value :]
    if kind == 2:
        return octets[: at + value] + octets[at:]
    if kind == 3:
        return octets[:at] + bytes((value,)) + octets[at + 1 :]
    if kind == 4:
        return octets[:at]
    if kind == 5:
        return octets[:at] + mutation.EDGES[value % len(mutation.EDGES)].to_bytes(4, "big") + octets[at + 4 :]
    if kind == 6:
        return octets[at:] + octets[:at]
    return octets


def check(data: bytes) -> None:
    how, plan = (data[0], data[1:]) if data else (0, b"")
    layer = how & 2
    client, server = End(layer), End(layer | 1)
    ends: list[End] = [client, server]
    harmed = False
    settled = 0
    client.answer()
    for number in range(MAX_ROUNDS):
        here, there = ends[number & 1], ends[~number & 1]
        octets = here.take()
        step = plan[4 * number : 4 * number + 4].ljust(4, b"\0")
        changed = damaged(octets, step[0] % 8, step[1] << 8 | step[2], step[3])
        harmed = harmed or changed != octets
        there.feed(changed)
        there.answer()
        settled = settled + 1 if not octets else 0
        if settled > 2:
            break
    if not harmed:
        assert client.faults == server.faults == []
        if settled > 2:
            assert client.unsettled() == server.unsettled() == []
    for end in ends:
        end.connection.close()
        end.answer()
        end.connection.tick(100.0)
        end.answer()

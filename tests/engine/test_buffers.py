"""The memory of one connection is bounded, and a peer that respects the windows never reaches the limit."""

from __future__ import annotations

import pytest

from trouter.engine.faults import Fault, PeerFault
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget, ConnectionPort
from trouter.engine.session import Session

LIMIT = 1 << 20


class Silent(ConnectionPort):
    """A connection that writes nothing."""

    def __init__(self) -> None:
        super().__init__([], Budget(1 << 40))
        self.buffer_limit = LIMIT

    def write(self, channel: int, performative: object) -> None:
        """Write nothing."""


def session(connection: ConnectionPort, frames: int = 0, window: int = LIMIT // 8) -> Session:
    limits = EngineLimits(session_window_bytes=window, session_window_frames=frames, max_frame_bytes=1024)
    made = Session(connection, 0, limits, [])
    made.begin()
    return made


def test_all_windows_together_promise_no_more_than_may_be_held() -> None:
    connection = Silent()
    sessions = [session(connection) for _ in range(20)]
    assert [each.windows.max_incoming_bytes for each in sessions[:7]] == [LIMIT // 8] * 7
    assert sum(each.windows.max_incoming_bytes for each in sessions) <= LIMIT + 20 * 2 * 1024
    assert all(each.windows.incoming_frames == each.windows.max_incoming_frames >= 2 for each in sessions)


def test_a_configured_window_is_not_narrowed() -> None:
    connection = Silent()
    assert [session(connection, frames=4096).windows.incoming_frames for _ in range(3)] == [4096] * 3


def test_only_the_connection_that_exceeds_its_buffer_limit_is_refused() -> None:
    connection, other = Silent(), Silent()
    first, second, neighbour = session(connection, 4096), session(connection, 4096), session(other, 4096)
    first.windows.hold_bytes(LIMIT - 10)
    with pytest.raises(PeerFault) as fault:
        second.windows.hold_bytes(11)
    assert fault.value.fault is Fault.BUFFERED
    assert fault.value.condition == "amqp:resource-limit-exceeded"
    assert (second.windows.held_bytes, connection.buffered_bytes) == (0, LIMIT - 10)
    neighbour.windows.hold_bytes(LIMIT)
    first.release_bytes(LIMIT - 10)
    second.windows.hold_bytes(LIMIT)
    assert connection.buffered_bytes == LIMIT

"""The records and alarms of connections and logins that the router refuses before the open."""

from __future__ import annotations

import pytest

from trouter._seldom import LOG_EVERY_S
from trouter.admission.guard import Guard
from trouter.admission.memory import MemoryWatch
from trouter.engine.ports import Budget
from trouter.telemetry.recorder import Recorder


def test_refused_connections_are_counted_and_reported_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    guard = Guard(MemoryWatch(Budget(0), Recorder()), lambda: now[0])
    assert not guard.refuses_connection("192.0.2.1", 1, "")
    for port in range(1, 1001):
        assert guard.refuses_connection("192.0.2.1", port, "too many")
    assert guard.turned_away == 1000
    assert caplog.messages == ["connection from 192.0.2.1:1 refused: too many"]
    now[0] += LOG_EVERY_S
    assert guard.refuses_connection("192.0.2.2", 7, "too fast")
    assert caplog.messages[1:] == ["connection from 192.0.2.2:7 refused: too fast (999 more since the last such line)"]

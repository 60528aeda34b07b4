"""The alarm about two routers with one id: raised once, and cleared when the second router is silent."""

from __future__ import annotations

import logging

import pytest

from trouter.backbone.topology import QUIET_ABOUT_ID_S, Topology
from trouter.mesh.events import Ignored
from trouter.mesh.faults import MeshFault
from trouter.mesh.mesh import Mesh
from trouter.telemetry.recorder import Recorder
from trouter.testing.memory import MemoryRouter


def test_an_alarm_is_raised_once_and_cleared_after_the_quiet_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    topology = Topology(Mesh("A", 1), MemoryRouter().core.network, 1.0, Recorder(), lambda: 0.0)
    for _ in range(2):
        topology.note_event(Ignored("A", 3, MeshFault.SAME_ID, "instance 7", 1), 10.0)
    assert topology.duplicate_ids == ["A"]
    topology.tick(10.0 + QUIET_ABOUT_ID_S - 1)
    assert topology.duplicate_ids == ["A"]
    topology.tick(10.0 + QUIET_ABOUT_ID_S)
    assert topology.duplicate_ids == []
    raised, cleared = (line for line in (each.getMessage() for each in caplog.records) if " id" in line)
    assert raised.startswith("another router has the id of this router, A ([C3], instance 7)")
    assert cleared == "no second router with the id A was seen for 60 s"

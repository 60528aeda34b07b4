"""The parts of the router that each of its connections uses."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.engine.ports import Budget
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.timers import TimerQueue
from trouter.telemetry.recorder import Recorder

from .opening import OpenAdmission
from .registry import Connections


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterParts:
    """The parts of the router that each of its connections uses: one object for all of them."""

    hub: Hub
    poller: Poller
    timers: TimerQueue
    #: The octets of messages that all connections hold together.
    budget: Budget
    connections: Connections
    recorder: Recorder
    admission: OpenAdmission

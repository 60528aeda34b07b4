"""Records of the router's events: their kinds, the segments that hold them, and readers that verify segments."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)

from trouter.records.schema import (  # noqa: E402 - the twin is chosen first
    KINDS,
    VERSION,
    Alarm,
    ClockStep,
    ConfigReloaded,
    ConnectionClosedRecord,
    ConnectionOpenedRecord,
    DeliveryInterval,
    LatencySketch,
    LinkAttachedRecord,
    LinkDetachedRecord,
    LinkStalled,
    ManagementChange,
    MessageSampled,
    PluginFault,
    PolicyDecision,
    PolicyLoaded,
    Record,
    RecordsDropped,
    RecordsSealed,
    SaslOutcomeRecord,
    TlsOutcome,
    TopologyChange,
)

__all__ = [
    "KINDS", "VERSION", "Alarm", "ClockStep", "ConfigReloaded", "ConnectionClosedRecord", "ConnectionOpenedRecord",
    "DeliveryInterval", "LatencySketch", "LinkAttachedRecord", "LinkDetachedRecord", "LinkStalled", "ManagementChange",
    "MessageSampled", "PluginFault", "PolicyDecision", "PolicyLoaded", "Record", "RecordsDropped", "RecordsSealed",
    "SaslOutcomeRecord", "TlsOutcome", "TopologyChange",
]  # fmt: skip

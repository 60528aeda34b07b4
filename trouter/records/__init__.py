"""Records of what the router does: their kinds, how they are kept in segments, and how segments are read and proved."""

from trouter.records.schema import (
    KINDS,
    VERSION,
    Alarm,
    ClockStep,
    ConfigReloaded,
    ConnectionClosed,
    ConnectionOpened,
    DeliveryInterval,
    LatencySketch,
    LinkAttached,
    LinkDetached,
    LinkStalled,
    ManagementChange,
    MessageSampled,
    PluginFault,
    PolicyDecision,
    PolicyLoaded,
    Record,
    RecordsDropped,
    SaslOutcome,
    TlsOutcome,
    TopologyChange,
)

__all__ = [
    "KINDS", "VERSION", "Alarm", "ClockStep", "ConfigReloaded", "ConnectionClosed", "ConnectionOpened",
    "DeliveryInterval", "LatencySketch", "LinkAttached", "LinkDetached", "LinkStalled", "ManagementChange",
    "MessageSampled", "PluginFault", "PolicyDecision", "PolicyLoaded", "Record", "RecordsDropped", "SaslOutcome",
    "TlsOutcome", "TopologyChange",
]  # fmt: skip

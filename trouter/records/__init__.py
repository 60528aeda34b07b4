"""Records of what the router does: their kinds, how they are kept in segments, and how segments are read and proved."""

from trouter.records.schema import (
    AUDIT,
    KINDS,
    SASL_REASONS,
    TELEMETRY,
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
    PeerRecord,
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
    "AUDIT", "KINDS", "SASL_REASONS", "TELEMETRY", "VERSION", "Alarm", "ClockStep", "ConfigReloaded",
    "ConnectionClosed", "ConnectionOpened", "DeliveryInterval", "LatencySketch", "LinkAttached", "LinkDetached",
    "LinkStalled", "ManagementChange", "MessageSampled", "PeerRecord", "PluginFault", "PolicyDecision", "PolicyLoaded",
    "Record", "RecordsDropped", "SaslOutcome", "TlsOutcome", "TopologyChange",
]  # fmt: skip

"""The kinds of records, for audit and for measuring. Version 1.

A record is one line of JSON: the kind ``k``, its number ``n`` in the stream, the time ``t``, and the fields of the
kind; fields that are None are left out. Times are microseconds since 1970 (UTC), durations are microseconds. Text from
a peer is cut and escaped by ``trouter.records.text.tidy``.

The names of fields are the schema: a new field needs a default; to rename one or change its meaning, change
``VERSION``.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: Written in the header of each segment.
VERSION: Final = 1


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="k", gc=False):
    """The fields of every record: the recorder sets ``t``, and each stream writes its own ``n``."""

    n: int = -1
    t: int = -1

    @property
    def tag(self) -> str:
        """The kind, as it stands in ``k``."""
        return str(self.__struct_config__.tag)


class PeerRecord(Record, kw_only=True, omit_defaults=True, tag_field="k", gc=False):
    """The fields of records about a connection: its number, and the peer as far as it is known."""

    conn: int
    vhost: str | None = None
    user: str | None = None
    host: str | None = None
    tenant: str | None = None


class ConnectionOpenedRecord(PeerRecord, tag="connection.opened"):
    """The opens were exchanged. ``role`` is that of the listener or connector; ``dir``: in or out."""

    listener: str
    role: str
    dir: str
    container: str | None = None
    tls_version: str | None = None
    cipher: str | None = None
    mech: str | None = None


class ConnectionClosedRecord(PeerRecord, tag="connection.closed"):
    """A connection ended. ``by``: local, peer or transport. ``opened_at`` is 0 if no open was exchanged."""

    opened_at: int
    duration_us: int
    by: str
    bytes_in: int
    bytes_out: int
    condition: str | None = None
    reason: str | None = None


class SaslOutcomeRecord(PeerRecord, tag="sasl.outcome"):
    """The router admitted or refused a client. ``code`` is that of SASL, ``reason`` one of ``SASL_REASONS``.

    ``user`` is the user that was tried or admitted, ``authz`` another one that the client wanted to act for, which is
    always refused. ``delay_us`` is how long the attempt waited for its turn.
    """

    mech: str
    ok: bool
    code: int
    reason: str
    delay_us: int
    plugin: str
    authz: str | None = None
    tls_subject: str | None = None
    listener: str | None = None


#: Reasons of SASL outcomes.
SASL_REASONS: Final = (
    "ok", "bad-credentials", "unknown-mechanism", "locked", "throttled", "timeout", "service", "expired", "protocol",
)  # fmt: skip


class TlsOutcome(PeerRecord, tag="tls.outcome"):
    """A TLS handshake ended, or a certificate in use was checked again.

    ``alert`` is the one with which the peer ended it, such as unknown_ca; absent if the router did.
    """

    ok: bool
    version: str | None = None
    cipher: str | None = None
    peer_subject: str | None = None
    peer_serial: str | None = None
    alert: str | None = None
    reason: str | None = None
    listener: str | None = None


class PolicyDecision(PeerRecord, tag="policy.decision"):
    """The policy allowed or denied an operation. ``op``: open, begin, attach, send or manage.

    ``rule`` is a stable id such as ``vhost:group:sources:3``, or the reason if no rule decided. ``repeat`` is 1,
    or the number of requests of which this is the first: of denials on one connection, or of what one user was allowed.
    """

    op: str
    allow: bool
    rule: str
    reason: str
    repeat: int
    group: str | None = None
    addr: str | None = None
    dir: str | None = None
    link: int | None = None


class PolicyLoaded(Record, tag="policy.loaded"):
    """The rules of a vhost from now on, by their ids; none if the vhost was removed."""

    vhost: str
    rules: list[str]


class LinkAttachedRecord(PeerRecord, tag="link.attached"):
    """A link was accepted. ``dir``: in if the router receives its messages. ``kind``: endpoint, route or control.

    ``repeat`` is 1, or of a user who attaches very often the number of links, of which this is the first.
    """

    link: int
    dir: str
    kind: str
    dynamic: bool
    snd_mode: int
    rcv_mode: int
    credit: int
    addr: str | None = None
    max_message: int | None = None
    repeat: int = 1


class LinkDetachedRecord(PeerRecord, tag="link.detached"):
    """A link ended. ``reason``: detached by the peer, or lost with its session or connection.

    ``repeat`` is 1, or of a user whose links end very often the number of links, of which this is the first.
    """

    link: int
    attached_at: int
    closed: bool
    reason: str
    addr: str | None = None
    dir: str | None = None
    condition: str | None = None
    repeat: int = 1


class DeliveryInterval(Record, tag="delivery.interval"):
    """The traffic of a link between ``t0`` and ``t1``: ``d_*`` within it, ``c_*`` since the attach.

    ``bytes`` are those of messages as they came or went; ``undeliverable`` counts messages without a receiver. Per link
    the sum of ``d_*`` equals the last ``c_*``, so that a lost record and its counts show.
    """

    conn: int
    link: int
    dir: str
    t0: int
    t1: int
    d_msgs: int
    d_accepted: int
    d_rejected: int
    d_released: int
    d_modified: int
    d_presettled: int
    d_dropped_presettled: int
    d_delayed1s: int
    d_delayed10s: int
    c_msgs: int
    c_accepted: int
    c_rejected: int
    c_released: int
    c_modified: int
    c_presettled: int
    c_dropped_presettled: int
    c_delayed1s: int
    c_delayed10s: int
    unsettled: int
    undelivered: int
    credit0_us: int
    final: bool
    vhost: str | None = None
    user: str | None = None
    addr: str | None = None
    tenant: str | None = None
    d_bytes: int = 0
    d_undeliverable: int = 0
    c_bytes: int = 0
    c_undeliverable: int = 0


class LatencySketch(Record, tag="latency.sketch"):
    """The latencies of deliveries that ended between ``t0`` and ``t1``, as a log-linear histogram (see ``sketch``).

    ``bits`` is the resolution of the buckets, ``bi`` are the buckets in use, ``bc`` their counts. ``family`` is the
    class of addresses if no single one is meant. ``rounded``: times were rounded up to the bounds that metrics use.
    """

    t0: int
    t1: int
    unit: str
    bits: int
    bi: list[int]
    bc: list[int]
    cnt: int
    addr: str | None = None
    family: str | None = None
    vhost: str | None = None
    path: str | None = None
    rounded: bool | None = None
    min: int | None = None
    max: int | None = None


class LinkStalled(Record, tag="link.stalled"):
    """A link has stuck deliveries or no credit for too long (``state`` start), or has recovered (end)."""

    conn: int
    link: int
    since: int
    unsettled: int
    state: str
    addr: str | None = None


class TopologyChange(Record, tag="topology.change"):
    """The network changed: neighbour-up, neighbour-down, cost, path or node-lost; or it is stable: converged.

    ``cause_id`` is the same in all routers that learned of one change. ``routers`` counts routers if no single one is
    meant: for path those beyond the ones with own records, for converged all since the first sign.
    """

    what: str
    peer: str | None = None
    why: str | None = None
    next_hop: str | None = None
    routers: int | None = None
    cost_old: int | None = None
    cost_new: int | None = None
    path_hash: str | None = None
    cause_id: str | None = None
    converge_us: int | None = None


class ManagementChange(PeerRecord, tag="management.change"):
    """An operator created, updated or deleted an entity, or was refused (``status`` as answered).

    ``attrs`` are the names of changed attributes, ``values`` their new values without secrets; the hashes distinguish
    states of the whole entity.
    """

    op: str
    entity_type: str
    entity_name: str
    attrs: list[str]
    status: int
    before_hash: str | None = None
    after_hash: str | None = None
    values: dict[str, str] | None = None


class ConfigReloaded(Record, tag="config.reloaded"):
    """The configuration was read. ``by``: start, signal or management."""

    path_hash: str
    ok: bool
    changed: int
    errors: int
    by: str


class PluginFault(Record, tag="plugin.fault"):
    """A plugin raised in a hook or gave an invalid answer, ``count`` times since the last record of this kind.

    ``verdict``: denied, or ignored if nothing depends on the answer. ``plugin`` is absent if several may have given the
    answer, ``exception`` if none was raised. The log has the place.
    """

    hook: str
    verdict: str
    count: int
    plugin: str | None = None
    exception: str | None = None


class RecordsDropped(Record, tag="records.dropped"):
    """The numbers ``from_n`` to ``to_n`` are missing because of disk-full, io-error, queue-full or retention.

    ``boot`` is set if they are of another start of the router. Retention deletes whole segments and does not count by
    kind. It names the segments: all from ``from_seg`` to ``to_seg`` were deleted, with the seals ``from_seal`` to
    ``to_seal``. ``after_seg`` is the segment before them, "" if there never was one; None if an older version deleted
    the first of them and some before it, and did not note which.
    """

    reason: str
    from_n: int
    to_n: int
    count: int
    by_kind: dict[str, int]
    boot: int | None = None
    from_seg: str | None = None
    to_seg: str | None = None
    after_seg: str | None = None
    from_seal: int | None = None
    to_seal: int | None = None


class RecordsSealed(Record, tag="records.sealed"):
    """A seal within a segment: ``mac`` proves all before it, and this line. ``epoch`` is its number, from 0."""

    epoch: int
    mac: str = ""


class ClockStep(Record, tag="clock.step"):
    """The system clock was set: its offsets from the monotonic clock, before and after, in microseconds."""

    old_offset: int
    new_offset: int


class MessageSampled(PeerRecord, tag="message.sampled"):
    """A message of a vhost that records one in ``one_in``. ``size``: bytes of the body, as far as it had come.

    ``body`` is in base64; ``cut`` if it is incomplete. ``hashed`` are the fields with keyed hashes for values, or ``*``
    if only the ``digest`` of the body is recorded.
    """

    link: int
    size: int
    one_in: int
    addr: str | None = None
    content_type: str | None = None
    body: str | None = None
    digest: str | None = None
    hashed: list[str] | None = None
    cut: bool | None = None


class Alarm(Record, tag="alarm"):
    """A condition that needs the operator, raised or cleared (``state``). ``severity``: warning or critical."""

    name: str
    severity: str
    subject: str
    state: str
    value: str | None = None
    limit: str | None = None


#: All kinds by their names.
KINDS: Final[dict[str, type[Record]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        ConnectionOpenedRecord,
        ConnectionClosedRecord,
        SaslOutcomeRecord,
        TlsOutcome,
        PolicyDecision,
        PolicyLoaded,
        LinkAttachedRecord,
        LinkDetachedRecord,
        DeliveryInterval,
        LatencySketch,
        LinkStalled,
        TopologyChange,
        ManagementChange,
        ConfigReloaded,
        PluginFault,
        RecordsDropped,
        RecordsSealed,
        ClockStep,
        Alarm,
        MessageSampled,
    )
}
#: Kinds that the configuration turns on for measuring; all others are evidence.
TELEMETRY: Final = frozenset({"delivery.interval", "latency.sketch", "message.sampled"})
AUDIT: Final = frozenset(KINDS) - TELEMETRY
#: Kinds that a user may cause at will, as often as it is allowed to; so are decisions that allow something.
ROUTINE: Final = TELEMETRY | {
    "connection.opened",
    "connection.closed",
    "link.attached",
    "link.detached",
    "link.stalled",
}


def is_routine(record: Record) -> bool:
    """Return whether a record is of something that a user may cause at will: no login, denial, change or alarm."""
    return record.allow if isinstance(record, PolicyDecision) else record.tag in ROUTINE

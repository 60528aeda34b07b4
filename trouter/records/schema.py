"""The kinds of records: what the router tells of itself, for audit and for measuring. Version 1.

A record is one line of JSON: the kind ``k``, its number ``n`` in the stream, the time ``t``, and what the kind has
beside that. Times are microseconds since 1970 (UTC), lengths of time are microseconds too. What is None is left out
of the line. Text that came from a peer is cut and escaped by ``trouter.records.text.tidy`` before it is kept.

The names of fields are the schema: a field may be added with a default, none is renamed or given another meaning
without another ``VERSION``.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: Stands in the header of each segment.
VERSION: Final = 1


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="k", gc=False):
    """What every record has. ``n`` and ``t`` are given to it by the stream it goes into."""

    n: int = -1
    t: int = -1

    @property
    def tag(self) -> str:
        """The kind, as it stands in ``k``."""
        return str(self.__struct_config__.tag)


class PeerRecord(Record, kw_only=True, omit_defaults=True, tag_field="k", gc=False):
    """What records about a connection have: its number, and who is at its other end as far as is known."""

    conn: int
    vhost: str | None = None
    user: str | None = None
    host: str | None = None
    tenant: str | None = None


class ConnectionOpened(PeerRecord, tag="connection.opened"):
    """The opens were exchanged. ``role`` is that of the listener or connector, ``dir`` who called: in or out."""

    listener: str
    role: str
    dir: str
    container: str | None = None
    tls_version: str | None = None
    cipher: str | None = None
    mech: str | None = None


class ConnectionClosed(PeerRecord, tag="connection.closed"):
    """A connection is gone. ``by``: local, peer or transport. ``opened_at`` is 0 if it never got to its open."""

    opened_at: int
    duration_us: int
    by: str
    bytes_in: int
    bytes_out: int
    condition: str | None = None
    reason: str | None = None


class SaslOutcome(PeerRecord, tag="sasl.outcome"):
    """The router admitted or refused a client. ``code`` is that of SASL, ``reason`` one of ``SASL_REASONS``, also ok.

    ``user`` is who was tried or let in, ``authz`` for whom they wanted to act instead, which is always refused;
    ``delay_us`` how long the attempt had to wait for its turn.
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


#: Why a SASL exchange ended as it did.
SASL_REASONS: Final = (
    "ok", "bad-credentials", "unknown-mechanism", "locked", "throttled", "timeout", "service", "expired", "protocol",
)  # fmt: skip


class TlsOutcome(PeerRecord, tag="tls.outcome"):
    """A TLS handshake came to its end, or a certificate in use was looked at again.

    ``alert`` is the one by which the peer gave up, such as unknown_ca; absent where it was the router.
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
    """Something was allowed or denied. ``op``: open, begin, attach, send or manage.

    ``rule`` is a stable id such as ``vhost:group:sources:3``, or the reason where no rule spoke. ``repeat`` counts
    denials of messages on one link within a second, and is 1 for all else.
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
    """The rules of a vhost as they are from now on, by their ids; none if it is gone."""

    vhost: str
    rules: list[str]


class LinkAttached(PeerRecord, tag="link.attached"):
    """A link was accepted. ``dir``: in when its messages come to the router. ``kind``: endpoint, route or control."""

    link: int
    dir: str
    kind: str
    dynamic: bool
    snd_mode: int
    rcv_mode: int
    credit: int
    addr: str | None = None
    max_message: int | None = None


class LinkDetached(PeerRecord, tag="link.detached"):
    """A link is gone. ``reason``: detached by the peer, or lost with its session or connection."""

    link: int
    attached_at: int
    closed: bool
    reason: str
    addr: str | None = None
    dir: str | None = None
    condition: str | None = None


class DeliveryInterval(Record, tag="delivery.interval"):
    """What came and went on a link between ``t0`` and ``t1``: ``d_*`` within it, ``c_*`` since the attach.

    ``bytes`` are octets of messages, as they came or went; ``undeliverable`` those that had no receiver.
    For each link the sum of ``d_*`` is ``c_*`` of the last; a lost record shows, and how much it told is known.
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
    """How long deliveries took that ended between ``t0`` and ``t1``, as a log-linear histogram (see ``sketch``).

    ``bits`` says how fine the buckets are, ``bi`` are those in use, ``bc`` how many fell into each. ``family`` is the
    class of addresses when no single address is meant. ``rounded``: each time was rounded up to the next of the bounds
    that metrics use.
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
    """A link has stuck deliveries or no credit for too long (``state`` start), or no longer (end)."""

    conn: int
    link: int
    since: int
    unsettled: int
    state: str
    addr: str | None = None


class TopologyChange(Record, tag="topology.change"):
    """The network looks different: neighbour-up, neighbour-down, cost, path or node-lost; or it is at rest: converged.

    ``cause_id`` is the same in all routers that the same news reached. ``routers`` counts those that moved where no
    single one is meant: in a path, beyond those with records of their own; in converged, all since the first sign.
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
    """An entity was created, updated or deleted, or that was refused (``status`` as answered).

    ``attrs`` are the names of what changed, ``values`` their new values without secrets; the hashes tell two states of
    the whole entity apart.
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
    """The configuration was read at start or again. ``by``: start, signal or management."""

    path_hash: str
    ok: bool
    changed: int
    errors: int
    by: str


class PluginFault(Record, tag="plugin.fault"):
    """A plugin raised in a hook, or answered it with rubbish, ``count`` times since the last record of this kind.

    ``verdict``: denied, or ignored where nothing depends on the answer. ``plugin`` is absent where several might have
    given the answer, ``exception`` where none was raised. The log says where it was.
    """

    hook: str
    verdict: str
    count: int
    plugin: str | None = None
    exception: str | None = None


class RecordsDropped(Record, tag="records.dropped"):
    """The numbers ``from_n`` to ``to_n`` are missing, and why: disk-full, io-error, queue-full or retention.

    ``boot`` is there if they were of another start of the router. By retention whole segments are deleted; then the
    records are not counted by kind.
    """

    reason: str
    from_n: int
    to_n: int
    count: int
    by_kind: dict[str, int]
    boot: int | None = None


class ClockStep(Record, tag="clock.step"):
    """The clock of the day was set: offsets from the monotonic clock, before and after."""

    old_offset: int
    new_offset: int


class MessageSampled(PeerRecord, tag="message.sampled"):
    """A message of a vhost that has one in ``one_in`` recorded. ``size``: octets of the body, as far as it was there.

    ``body`` is in base64, ``cut`` where it is not all of it. ``hashed`` are the fields whose values are keyed hashes in
    it, or ``*`` where there is no body but its ``digest``.
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
    """A condition that needs the operator: raised or cleared (``state``). ``severity``: warning or critical."""

    name: str
    severity: str
    subject: str
    state: str
    value: str | None = None
    limit: str | None = None


#: All kinds, by their names.
KINDS: Final[dict[str, type[Record]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        ConnectionOpened,
        ConnectionClosed,
        SaslOutcome,
        TlsOutcome,
        PolicyDecision,
        PolicyLoaded,
        LinkAttached,
        LinkDetached,
        DeliveryInterval,
        LatencySketch,
        LinkStalled,
        TopologyChange,
        ManagementChange,
        ConfigReloaded,
        PluginFault,
        RecordsDropped,
        ClockStep,
        Alarm,
        MessageSampled,
    )
}
#: Kinds that measure or show, as far as they are asked for; all others are evidence.
TELEMETRY: Final = frozenset({"delivery.interval", "latency.sketch", "message.sampled"})
AUDIT: Final = frozenset(KINDS) - TELEMETRY

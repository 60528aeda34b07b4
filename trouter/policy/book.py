"""The book: all that counts against a limit of the policy, for vhosts, groups, users and hosts (security.md 4.10, 8.5).

A connection enters the book once and leaves it once; its Share holds all that it has counted. `VhostConnections`
counts the connections of one vhost. A Meter counts for one rule of quotas: a vhost, group, user or host. Messages and
bytes are limited by credit: a link of a connection with such quotas requests credit for its sender from the Share, and
is called again when there is more. Nothing here waits or has a clock.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from trouter._buckets import Bucket
from trouter.engine.ports import Budget
from trouter.net.tallies import Tallies

from .compiled import ConnectionLimits
from .counts import Meter, Paced, SharedConnections, VhostConnections
from .kinds import Reason
from .quota_rules import (
    ADDRESSES,
    ATTACHES_RATE,
    BUFFERED,
    BYTES_RATE,
    CONNECTIONS_RATE,
    LINKS,
    MESSAGES_RATE,
    PACED,
    QuotaRule,
)

#: Octets of a session without messages; `make bench` (chapter sessions) measures it.
SESSION_BYTES: Final = 1500
#: Seconds without the quota being met after which an alarm is over.
CLEAR_S: Final = 10.0
#: Limit of the meters without a connection that are kept; the oldest are forgotten first.
MAX_IDLE: Final = 10_000
#: Links that are called again in one tick.
PORTION: Final = 1000
#: The dicts of the shares without quotas; it stays empty.
_EMPTY: Final[dict[Any, Any]] = {}
#: Assumed bytes of a message before the first one of a connection.
FIRST_GUESS: Final = 1024


class QuotaAlarm(NamedTuple):
    """A notice that a quota is met (``raised``), or has not been for ``CLEAR_S``."""

    rule: QuotaRule
    measure: str
    #: The user or the host; empty for all.
    who: str
    raised: bool

    @property
    def limit(self) -> int:
        return int(getattr(self.rule.limits, self.measure))


class QuotaAnswer(NamedTuple):
    """What the quotas say to one more connection, link or session. Nothing is counted until ``Book.note_answer``."""

    #: The quotas that it meets, those that only raise an alarm included.
    met: list[tuple[Meter, str]]
    #: The rule that denies it; empty if it may be.
    rule: str
    #: The rates that count it if it may be.
    rates: list[Bucket]
    now_s: float


class Book:
    """The counts of a router. ``now`` returns the time in seconds; ``notify`` is called with each alarm."""

    def __init__(
        self,
        now: Callable[[], float],
        new_buffer: Callable[[], Budget],
        notify: Callable[[QuotaAlarm], None],
        tallies: Tallies | None = None,
    ) -> None:
        """``tallies``: the counts of all workers; None for a router of one process."""
        self.now = now
        self._tallies = tallies
        self._shared = None if tallies is None else SharedConnections(tallies)
        self._new_buffer = new_buffer
        self._notify = notify
        self._vhosts: dict[str, VhostConnections] = {}
        self._meters: dict[tuple[str, str, str], Meter] = {}
        self._idle: OrderedDict[tuple[str, str, str], Meter] = OrderedDict()
        self._alarmed: dict[Meter, None] = {}
        #: The connections that meters count.
        self._shares: dict[Share, None] = {}
        self._waiting: dict[Paced, Share] = {}

    def __len__(self) -> int:
        """Return the number of meters."""
        return len(self._meters)

    @property
    def busy(self) -> bool:
        """True if quotas apply to any connection, so that ``grant_waiting`` should be called often."""
        return bool(self._shares)

    @property
    def is_shared(self) -> bool:
        """True if other workers count too."""
        return self._tallies is not None

    # --- connections

    def connections_of(self, vhost: str) -> VhostConnections:
        """Return the open connections of a vhost."""
        return self._vhosts.get(vhost) or VhostConnections()

    def limits_reached(self, vhost: str, limits: ConnectionLimits, user: str, host: str) -> tuple[Reason, ...]:
        """Return every limit of a vhost that one more connection of this user and host would exceed.

        Among workers its place is taken at once if there is none; ``release_place`` gives it back.
        """
        if self._shared is not None:
            return self._shared.take_place(vhost, limits, user, host)
        return self.connections_of(vhost).limits_reached(limits, user, host)

    def release_place(self) -> None:
        """Give back the place that ``limits_reached`` has taken, unless its connection is counted."""
        if self._shared is not None:
            self._shared.release_place()

    def quotas_at_open(self, rules: tuple[QuotaRule, ...], user: str, host: str) -> QuotaAnswer:
        """Return what the quotas say to one more connection of this user and host."""
        now_s = self.now()
        for rule in rules:
            kept = self._meters.get(self._meter_key(rule, rule.counted_name(user, host)))
            if kept is None and self._tallies is not None and rule.limits.max_buffered_bytes is not None:
                kept = self._obtain_meter(rule, user, host, now_s)  # other workers may hold much
            if kept is not None and rule.enforced and kept.overfull:
                return QuotaAnswer([(kept, BUFFERED)], rule.rule_id(BUFFERED), [], now_s)
        limited = (rule for rule in rules if rule.limits.max_connections_per_second)
        return self.judge_quotas(
            [self._obtain_meter(rule, user, host, now_s) for rule in limited], (CONNECTIONS_RATE,), None
        )

    def count_connection(
        self,
        name: str,
        vhost: str,
        rules: tuple[QuotaRule, ...],
        user: str,
        host: str,
        received: Callable[[], int],
        number: int = 0,
    ) -> Share:
        """Count a connection until ``leave``: in its vhost, if it has one, and in the meters of its rules.

        ``received`` returns the bytes received on it. Of two connections with one name, one has its ``number`` too.
        """
        share = Share(self, name, number, user, host)
        self._enter_vhost(share, vhost)
        self._enter_meters(share, rules, received)
        return share

    def move_connection(
        self, share: Share, vhost: str, rules: tuple[QuotaRule, ...], received: Callable[[], int]
    ) -> None:
        """Count a connection in another vhost or by other rules; what is the same stays counted as it is."""
        if share.vhost != vhost:
            self._leave_vhost(share)
            self._enter_vhost(share, vhost)
        if share.rules != rules:
            self._leave_meters(share)
            self._enter_meters(share, rules, received)

    def release_share(self, share: Share) -> None:
        """Give back all that a connection has counted; a second call does nothing."""
        self._leave_meters(share)
        self._leave_vhost(share)

    def _enter_vhost(self, share: Share, vhost: str) -> None:
        """Count it in a vhost; one client may connect to two listeners from the same port."""
        if vhost:
            connections = self._vhosts.setdefault(vhost, VhostConnections())
            name = share.name if share.name not in connections else f"{share.name}[C{share.number}]"
            connections.add_connection(name, share.user, share.host)
            share.vhost, share.counted_as = vhost, name
            if self._shared is not None:
                self._shared.add_connection(vhost, share.user, share.host)

    def _leave_vhost(self, share: Share) -> None:
        if share.vhost:
            connections = self._vhosts[share.vhost]
            connections.remove_connection(share.counted_as)
            if self._shared is not None:
                self._shared.remove_connection(share.vhost, share.user, share.host)
            if not len(connections):
                del self._vhosts[share.vhost]
            share.vhost = share.counted_as = ""

    def _enter_meters(self, share: Share, rules: tuple[QuotaRule, ...], received: Callable[[], int]) -> None:
        if not rules:
            return
        now_s = self.now()
        share.enter_meters(
            rules, tuple(self._obtain_meter(rule, share.user, share.host, now_s) for rule in rules), received
        )
        for meter in share.meters:
            meter.connections += 1
            self._idle.pop(self._meter_key(meter.rule, meter.who), None)
        self._shares[share] = None

    def _leave_meters(self, share: Share) -> None:
        if share not in self._shares:
            return
        del self._shares[share]
        now_s = self.now()
        meters = share.meters
        share.leave_meters(now_s)
        for meter in meters:
            meter.connections -= 1
            if not meter.connections:
                self._keep_idle_meter(meter, now_s)

    def _obtain_meter(self, rule: QuotaRule, user: str, host: str, now_s: float) -> Meter:
        who = rule.counted_name(user, host)
        key = self._meter_key(rule, who)
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = Meter(rule, who, self._new_buffer(), now_s, self._tallies)
            self._keep_idle_meter(meter, now_s, fresh=True)
        elif meter.rule != rule:
            for name in [name for name in meter.met_at_s if getattr(rule.limits, name) is None]:
                self._clear_alarm(meter, name)
            meter.replace_rule(rule, now_s)
        return meter

    def _keep_idle_meter(self, meter: Meter, now_s: float, *, fresh: bool = False) -> None:
        """Keep a meter without connections among the idle ones, unless a new meter would behave the same."""
        key = self._meter_key(meter.rule, meter.who)
        if not fresh and meter.is_forgettable(now_s):
            self._forget_meter(key)
            return
        self._idle[key] = meter
        while len(self._idle) > MAX_IDLE:
            self._forget_meter(next(iter(self._idle)))

    def _forget_meter(self, key: tuple[str, str, str]) -> None:
        self._idle.pop(key, None)
        meter = self._meters.pop(key)
        meter.give_up()
        for name in list(meter.met_at_s):
            self._clear_alarm(meter, name)

    @staticmethod
    def _meter_key(rule: QuotaRule, who: str) -> tuple[str, str, str]:
        return rule.owner, rule.per, who

    # --- requests

    def judge_quotas(self, meters: Sequence[Meter], names: tuple[str, ...], address: str | None) -> QuotaAnswer:
        """Return what these quotas say to one more, which uses an address if that is not None."""
        now_s = self.now()
        met = [(meter, name) for meter in meters for name in names if meter.is_met(name, address, now_s)]
        denied = next((meter.rule.rule_id(name) for meter, name in met if meter.rule.enforced), "")
        rates = [] if denied else [meter.buckets[name] for meter in meters for name in names if name in meter.buckets]
        return QuotaAnswer(met, denied, rates, now_s)

    def note_answer(self, answer: QuotaAnswer) -> None:
        """Raise the alarms of an answer; if nothing was denied, count one more in the rates."""
        for meter, name in answer.met:
            self.note_alarm(meter, name, answer.now_s)
        for bucket in answer.rates:
            bucket.take_tokens(1, answer.now_s)

    # --- alarms

    def note_alarm(self, meter: Meter, name: str, now_s: float) -> None:
        """Note that a quota is met, and notify of the alarm if it is new."""
        raised = name in meter.met_at_s
        meter.met_at_s[name] = now_s
        if not raised:
            self._alarmed[meter] = None
            self._notify(QuotaAlarm(meter.rule, name, meter.who, True))

    def _clear_alarm(self, meter: Meter, name: str) -> None:
        del meter.met_at_s[name]
        if not meter.met_at_s:
            self._alarmed.pop(meter, None)
        self._notify(QuotaAlarm(meter.rule, name, meter.who, False))

    def alarms_of(self, vhost: str) -> Iterator[str]:
        """Yield the present alarms of a vhost, each as its rule and user or host."""
        for meter in self._alarmed:
            if meter.rule.vhost == vhost:
                yield from (f"{meter.rule.rule_id(name)} {meter.who}".rstrip() for name in meter.met_at_s)

    def raised_by_vhost(self) -> Counter[str]:
        """Return the number of present alarms by vhost."""
        raised: Counter[str] = Counter()
        for meter in self._alarmed:
            raised[meter.rule.vhost] += len(meter.met_at_s)
        return raised

    # --- time

    def add_waiting_link(self, link: Paced, share: Share) -> None:
        """Call the link again when there may be more credit."""
        self._waiting[link] = share

    def forget_link(self, link: Paced) -> None:
        """Remove a link from those that wait."""
        self._waiting.pop(link, None)

    def grant_waiting(self) -> bool:
        """Grant available credit to the links that wait, in turn; return whether any link waited.

        Call ten times a second. A call serves at most ``PORTION`` links. The other workers see what is held here.
        """
        if self._tallies is not None:
            for meter in self._meters.values():
                if meter.shows_old_bytes:
                    meter.exchange_held_bytes()
        waiting = list(islice(self._waiting.items(), PORTION))
        for link, _ in waiting:
            del self._waiting[link]
        served: list[tuple[Paced, Share]] = []
        for link, share in waiting:
            before = share.granted
            link.top_up_credit()
            if link in self._waiting and share.granted != before:
                served.append((link, share))
        for link, share in served:  # links that got credit go behind those that got none
            del self._waiting[link]
            self._waiting[link] = share
        return bool(waiting)

    def check_usage(self) -> None:
        """Count the usage of all connections, and end alarms that are over; call once a second."""
        now_s = self.now()
        for share in list(self._shares):
            share.note_usage(now_s)
        if self._tallies is not None:
            for meter in self._meters.values():
                meter.check_addresses()
        for meter in list(self._alarmed):
            if BUFFERED in meter.met_at_s and meter.is_met(BUFFERED, None, now_s):
                meter.met_at_s[BUFFERED] = now_s
            for name, at_s in list(meter.met_at_s.items()):
                if now_s - at_s >= CLEAR_S:
                    self._clear_alarm(meter, name)
        for key in [key for key, meter in islice(self._idle.items(), PORTION) if meter.is_forgettable(now_s)]:
            self._forget_meter(key)


class Share:
    """All that one connection has counted. Its links call ``take`` before they grant credit. ``Book`` makes it."""

    __slots__ = (
        "_all_bytes", "_all_messages", "_book", "_paid", "_received", "_received_bytes", "_seen", "counted_as",
        "granted", "host", "kept", "links", "meters", "name", "number", "rules", "user", "vhost",
    )  # fmt: skip

    def __init__(self, book: Book, name: str, number: int, user: str, host: str) -> None:
        self.name = name
        self.number = number
        self.user = user
        self.host = host
        #: The vhost that counts it, and its name there; empty for none.
        self.vhost = ""
        self.counted_as = ""
        #: The quotas that count it, and their meters.
        self.rules: tuple[QuotaRule, ...] = ()
        self.meters: tuple[Meter, ...] = ()
        #: Key of each counted link -> its address, None without one. Shares without quotas have no dicts of their own.
        self.links: dict[Hashable, str | None] = _EMPTY
        #: Credit that ``take`` has allowed so far.
        self.granted = 0
        #: Bytes counted for its sessions.
        self.kept = 0
        self._book = book
        #: Returns the bytes received on the connection; None before its open and after its end.
        self._received: Callable[[], int] | None = None
        self._received_bytes = 0
        #: Bytes and messages received since the beginning.
        self._all_bytes = 0
        self._all_messages = 0
        #: Link on which the peer sends -> deliveries that credit was counted for, and those counted as received.
        self._paid: dict[Paced, int] = _EMPTY
        self._seen: dict[Paced, int] = _EMPTY

    def enter_meters(
        self, rules: tuple[QuotaRule, ...], meters: tuple[Meter, ...], received: Callable[[], int]
    ) -> None:
        """Count in these meters from now on."""
        self.rules, self.meters, self._received = rules, meters, received
        self._received_bytes = received()
        self._all_bytes = self._all_messages = self.granted = 0
        self.links, self._paid, self._seen = {}, {}, {}

    @property
    def paces(self) -> bool:
        """True if links have to call ``take`` for credit."""
        return any(getattr(meter.rule.limits, name) is not None for meter in self.meters for name in PACED)

    @property
    def buffers(self) -> list[Budget]:
        """The buffers of the meters that limit held bytes."""
        return [meter.buffer for meter in self.meters if meter.rule.limits.max_buffered_bytes is not None]

    # --- sessions

    def quotas_on_bytes(self, size_bytes: int) -> QuotaAnswer:
        """Return what the quotas say to more bytes that are held for a session."""
        met = [(meter, BUFFERED) for meter in self.meters if meter.free_bytes() < size_bytes]
        denied = next((meter.rule.rule_id(BUFFERED) for meter, _ in met if meter.rule.enforced), "")
        return QuotaAnswer(met, denied, [], self._book.now())

    def add_held_bytes(self, size_bytes: int) -> None:
        """Add to the bytes held for sessions; a negative number subtracts."""
        self.kept += size_bytes
        for meter in self.meters:
            meter.add_held_bytes(size_bytes)

    # --- links

    def quotas_at_attach(self, address: str | None, kept_bytes: int) -> QuotaAnswer:
        """Return what the quotas say to one more link, to the address of this key, None for none.

        ``kept_bytes`` of the attach are counted already.
        """
        over = self.quotas_on_bytes(0) if kept_bytes else None
        if over is not None and over.rule:
            return over
        names = (ATTACHES_RATE, LINKS, ADDRESSES, BUFFERED)
        answer = self._book.judge_quotas(self.meters, names, address)
        return answer if over is None else answer._replace(met=[*over.met, *answer.met])

    def count_link(self, link: Hashable, address: str | None) -> None:
        """Count a link that was accepted; without quotas nothing counts it."""
        if not self.meters:
            return
        self.links[link] = address
        for meter in self.meters:
            meter.add_link(address)

    def uncount_link(self, link: Hashable) -> None:
        """Remove a link from the counts; a second call does nothing."""
        if link not in self.links:
            return
        address = self.links.pop(link)
        for meter in self.meters:
            meter.remove_link(address)

    def end_sending(self, link: Paced) -> None:
        """Refund the unused credit of a link that is gone. A second call does nothing."""
        if link not in self._paid:
            return
        self._book.forget_link(link)
        self._note_messages(link, self._book.now())
        self._refund_credit(link, 0)
        del self._paid[link], self._seen[link]
        for meter in self.meters:
            meter.add_sender(-1)

    def leave_meters(self, now_s: float) -> None:
        """Give back all that the meters count for it, and forget them."""
        self.note_usage(now_s)
        for link in list(self._paid):
            self.end_sending(link)
        for each in list(self.links):
            self.uncount_link(each)
        self.add_held_bytes(-self.kept)
        self.rules, self.meters = (), ()
        self.links, self._paid, self._seen, self._received = _EMPTY, _EMPTY, _EMPTY, None

    # --- credit

    def take_credit(self, link: Paced, count: int) -> int:
        """Return how much of ``count`` may be granted to the sender on a link; if less, the link is called again."""
        if not self.meters:
            return count
        now_s, credit = self._book.now(), link.link.credit
        if link not in self._paid:
            self._begin_sending(link, credit)
        self.note_bytes(now_s)
        self._note_messages(link, now_s)
        self._refund_credit(link, credit)
        allowed = count
        tight: tuple[Meter, str] | None = None
        for meter in self.meters:
            if meter.rule.enforced:
                for name in PACED:
                    room = self._credit_left(meter, name, credit, now_s)
                    if room is not None and room < allowed:
                        allowed, tight = room, (meter, name)
        if allowed:
            self._paid[link] += allowed
            self.granted += allowed
            for meter in self.meters:
                if meter.rule.enforced and MESSAGES_RATE in meter.buckets:
                    meter.buckets[MESSAGES_RATE].take_tokens(allowed, now_s)
        if tight is not None:
            self._book.add_waiting_link(link, self)
            if not allowed and credit <= 0:
                self._book.note_alarm(*tight, now_s)
        return allowed

    def _begin_sending(self, link: Paced, credit: int) -> None:
        """Begin to count a link; credit that it granted before is not charged."""
        self._seen[link] = link.counters.deliveries
        self._paid[link] = link.counters.deliveries + credit
        for meter in self.meters:
            meter.add_sender(1)

    def _credit_left(self, meter: Meter, name: str, credit: int, now_s: float) -> int | None:
        """Return the credit that one quota leaves for a link that has ``credit``; None without such a quota.

        A link gets its part of the rate, at least one message, so that the other links can use theirs.
        """
        if name == BUFFERED:
            return 0 if meter.is_met(BUFFERED, None, now_s) else None
        bucket = meter.buckets.get(name)
        if bucket is None:
            return None
        part, there = max(1, bucket.rate // max(1, meter.all_senders())), bucket.tokens(now_s)
        if name == BYTES_RATE:
            if there <= 0:
                return 0
            size = (self._all_bytes + FIRST_GUESS) / (self._all_messages + 1)
            part, there = max(1, int(part / size)), max(1.0, there / size)
        return max(0, min(part - credit, int(there)))

    def _refund_credit(self, link: Paced, credit: int) -> None:
        """Give back credit that ended without a message: the sender returned it, or will never use it."""
        unused = self._paid[link] - link.counters.deliveries - credit
        if unused > 0:
            self._paid[link] -= unused
            for meter in self.meters:
                if meter.rule.enforced and MESSAGES_RATE in meter.buckets:
                    meter.buckets[MESSAGES_RATE].return_tokens(unused)

    # --- usage

    def note_usage(self, now_s: float) -> None:
        """Count the bytes and messages received since the last call."""
        self.note_bytes(now_s)
        for link in self._seen:
            self._note_messages(link, now_s)

    def note_bytes(self, now_s: float) -> None:
        """Count the bytes received since the last call."""
        received = 0 if self._received is None else self._received()
        came, self._received_bytes = received - self._received_bytes, received
        self._all_bytes += came
        for meter in self.meters:
            if BYTES_RATE in meter.buckets:
                self._charge_rate(meter, BYTES_RATE, came, now_s)

    def _note_messages(self, link: Paced, now_s: float) -> None:
        deliveries = link.counters.deliveries
        came, self._seen[link] = deliveries - self._seen[link], deliveries
        self._all_messages += came
        for meter in self.meters:
            if not meter.rule.enforced and MESSAGES_RATE in meter.buckets:
                self._charge_rate(meter, MESSAGES_RATE, came, now_s)

    def _charge_rate(self, meter: Meter, name: str, came: int, now_s: float) -> None:
        """Take ``came`` from a rate; an excess of a rate that is not enforced raises an alarm and is forgiven."""
        bucket = meter.buckets[name]
        bucket.owe_tokens(came, now_s)
        if came and bucket.tokens(now_s) < 0 and not meter.rule.enforced:
            bucket.cancel_debt()
            self._book.note_alarm(meter, name, now_s)

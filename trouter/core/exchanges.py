"""Exchanges: addresses whose messages go on to other addresses, by their subjects (docs/exchanges.md).

A message to an exchange goes to the address's consumers first, as its treatment says. Then a copy goes to each next hop
with a binding whose key matches the message's subject, and if there was no receiver at all, to the alternate address.
Copies are pre-settled; those for next hops start as if they had entered the network here. The sender gets its outcome
at once: accepted if there was any receiver, else released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trouter.wire.sections import NEED_MORE, THROUGH_PROPERTIES, InvalidMessage, MessageScan
from trouter.wire.subject import read_subject

from .addresses import EDGE, FALLBACK_NUMBER, MOBILE, ROUTER, UPLINK_KEY
from .arrival import Arrival, DeliverySource
from .counters import AddressCounters, Copies
from .egress import Egress
from .entry import AddressEntry
from .forwarders import Forwarder
from .losses import release_blocked_copy
from .message import IncomingDelivery, Message, presettled
from .network import RemoteRouter
from .patterns import KEYS, PatternTree
from .ports import MAX_INSIDE_BYTES, SharedState
from .stalls import Stalls, has_little_room
from .table import UNAVAILABLE, AddressTable

if TYPE_CHECKING:
    from .inprocess import Subscription

#: The most exchanges of this router that a message passes, each at most once.
MAX_EXCHANGES: Final = 8
#: Subjects whose bindings are cached, and the longest one, in characters.
_MAX_SUBJECTS: Final = 1000
_REMEMBERED_LENGTH: Final = 256
#: A longer first piece is cut, because each next hop gets one of its own.
_LONG_HEAD_BYTES: Final = 4096
_SHORT_HEAD_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class ExchangeRule:
    """An exchange as configured; ``method`` is one of ``patterns.KEYS``, ``alternate`` is empty for none."""

    name: str
    address: str
    phase: int = 0
    alternate: str = ""
    alternate_phase: int = 0
    method: str = "amqp"


@dataclass(frozen=True, slots=True)
class BindingRule:
    """A binding as configured: messages whose subject matches ``key`` go to the address ``next_hop``."""

    key: str
    next_hop: str
    phase: int = 0


class NextHop:
    """An address that an exchange sends to, with its entry, which it keeps."""

    __slots__ = ("address", "goes_up", "phase", "entry", "to", "uses")

    def __init__(self, address: str, phase: int, entry: AddressEntry) -> None:
        self.address = address
        self.phase = phase
        self.entry = entry
        #: The address for other routers.
        self.to = entry.text if entry.key.startswith(MOBILE) else address
        #: On an edge router, receivers of the messages may be elsewhere.
        self.goes_up = entry.key.startswith(MOBILE) or entry.key == UPLINK_KEY
        #: The number of bindings to it.
        self.uses = 0


class Binding:
    """A key and its next hop; ``matched`` counts the messages that matched."""

    __slots__ = ("hop", "matched", "rule")

    def __init__(self, rule: BindingRule, hop: NextHop) -> None:
        self.rule = rule
        self.hop = hop
        self.matched = 0


class Matched:
    """The bindings that match a subject, and their next hops without duplicates."""

    __slots__ = ("bindings", "hops")

    def __init__(self, bindings: list[Binding]) -> None:
        self.bindings = bindings
        self.hops = list(dict.fromkeys([binding.hop for binding in bindings]))


_NOTHING: Final = Matched([])
_NO_COPIES: Final = Copies(0, 0, 0)


class Exchange(Forwarder):
    """The forwarder of an exchange's address; ``inner`` is that of its consumers, and shares its lists."""

    __slots__ = (
        "_busy",
        "_entrance",
        "_hops",
        "_keys",
        "_known",
        "_scan",
        "_exchanges",
        "alternate",
        "bindings",
        "diverted",
        "dropped",
        "forwarded",
        "inner",
        "received",
        "entry",
        "rule",
    )

    def __init__(self, rule: ExchangeRule, entry: AddressEntry, exchanges: Exchanges) -> None:
        super().__init__()
        self.rule = rule
        self.entry = entry
        self.inner = entry.forwarder
        self.consumers = self.inner.consumers
        self.subscriptions = self.inner.subscriptions
        self.remotes = self.inner.remotes
        self.is_exchange = True
        self.alternate: NextHop | None = None
        self.bindings = 0
        #: Messages received; those with a receiver, those only at the alternate address, and those without any.
        self.received = 0
        self.forwarded = 0
        self.diverted = 0
        self.dropped = 0
        self._exchanges = exchanges
        #: The place where copies for next hops enter the network: here, for every sender and connection.
        self._entrance = DeliverySource(exchanges.shared)
        self._scan = MessageScan(reads_to=False)
        self._keys: PatternTree[list[Binding]] = PatternTree(KEYS[rule.method])
        self._hops: dict[tuple[str, int], NextHop] = {}
        self._known: dict[str, Matched] = {}
        #: A message is being forwarded: one that returns to its own exchange goes no further.
        self._busy = False

    # --- consumers of the address

    def add(self, outgoing: Egress) -> None:
        """See ``Forwarder.add``."""
        self.inner.add(outgoing)

    def remove(self, outgoing: Egress) -> None:
        """See ``Forwarder.remove``."""
        self.inner.remove(outgoing)

    def add_subscription(self, subscription: Subscription) -> None:
        """See ``Forwarder.add_subscription``."""
        self.inner.add_subscription(subscription)
        self.subscriptions = self.inner.subscriptions

    def remove_subscription(self, subscription: Subscription) -> None:
        """See ``Forwarder.remove_subscription``."""
        self.inner.remove_subscription(subscription)
        self.subscriptions = self.inner.subscriptions

    def add_remote(self, router: RemoteRouter) -> None:
        """See ``Forwarder.add_remote``."""
        self.inner.add_remote(router)
        self.remotes = self.inner.remotes

    def remove_remote(self, router: RemoteRouter) -> None:
        """See ``Forwarder.remove_remote``."""
        self.inner.remove_remote(router)

    # --- bindings

    def bind(self, rule: BindingRule) -> Binding:
        """Add a binding; PatternError."""
        place = rule.next_hop, rule.phase
        hop = self._hops.get(place)
        binding = Binding(rule, hop or self._exchanges.make_hop(*place))
        bindings = self._keys.get(rule.key)
        if bindings is None:
            self._keys.insert(rule.key, [binding])
        else:
            bindings.append(binding)
        if hop is None:
            self._hops[place] = binding.hop
            self._exchanges.keep_entry(binding.hop)
        binding.hop.uses += 1
        self.bindings += 1
        self._known.clear()
        return binding

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; ValueError if it was not bound."""
        hop = binding.hop
        bindings = self._keys.get(binding.rule.key) or []
        bindings.remove(binding)
        if not bindings:
            self._keys.remove(binding.rule.key)
        self.bindings -= 1
        self._known.clear()
        hop.uses -= 1
        if hop.uses == 0:
            del self._hops[hop.address, hop.phase]
            self._exchanges.release_entry(hop)

    def list_hops(self) -> list[NextHop]:
        """Return all next hops, the alternate address last."""
        alternate = [] if self.alternate is None else [self.alternate]
        return [*self._hops.values(), *alternate]

    # --- messages

    def bytes_to_gather(self, arrival: Arrival) -> int:
        """See ``Forwarder.bytes_to_gather``: wait until the next hops are known, and as long as one of them asks."""
        if self._busy:
            return 0
        result = self._match(arrival, False)
        if result is None:
            return MAX_INSIDE_BYTES
        max_bytes = self.inner.bytes_to_gather(arrival)
        self._busy = True
        try:
            alternate = [] if self.alternate is None else [self.alternate]
            for hop in (*result.hops, *alternate):
                max_bytes = max(max_bytes, hop.entry.bytes_to_gather(arrival))
        finally:
            self._busy = False
        return max_bytes

    def forward(self, arrival: Arrival) -> Copies:
        """See ``Forwarder.forward``; the sender gets an outcome if the message had a receiver."""
        exchanges = self._exchanges
        if self._busy or exchanges.depth >= MAX_EXCHANGES:
            return _NO_COPIES
        self._busy = True
        exchanges.depth += 1
        try:
            return self._distribute(arrival)
        finally:
            self._busy = False
            exchanges.depth -= 1

    def _distribute(self, arrival: Arrival) -> Copies:
        self.received += 1
        delivery = arrival.delivery
        result = self._match(arrival, delivery.complete) or _NOTHING
        message = arrival.message
        if message is None:
            message = arrival.keep()
            message.routed = False  # more copies follow the first
        if len(message.chunks) == 1 and not message.copies and len(message.chunks[0]) > _LONG_HEAD_BYTES:
            message.split_first_piece(max(message.cut_to, _SHORT_HEAD_BYTES))
        copy = _presettled(delivery)
        copies = _NO_COPIES
        if self.consumers or self.subscriptions or self.remotes or self.inner.is_exchange:
            inner = arrival.for_copies(arrival.source, copy, message)
            inner.origin, inner.trace = arrival.origin, arrival.trace
            copies = self.inner.forward(inner)
        outer = None if message.heads is None else message.heads.now
        sent = 0
        for binding in result.bindings:
            binding.matched += 1
        onward = self._enter(arrival, copy, message)
        for hop in result.hops:
            sent += self._forward_over(hop, onward, arrival.priority)
        if copies.total + sent == 0 and self.alternate is not None:
            sent = self._forward_over(self.alternate, onward, arrival.priority)
            self.diverted += sent > 0
        if message.heads is not None:
            message.heads.now = outer
        if message.copies and has_little_room(message.session, 2):
            for out in message.copies[:]:
                release_blocked_copy(out)
        if not delivery.complete and len(message.copies) > 1:
            self._exchanges.stalls.watch_message(message)
        if arrival.message is None:
            message.now_routed()
        beside = sent + copies.total - copies.here - copies.inside - copies.across
        if copies.total + sent == 0:
            self.dropped += 1
            return _NO_COPIES
        self.forwarded += 1
        if not delivery.remote_settled:
            arrival.source.accept_delivery(delivery)
        return Copies(copies.here, copies.inside, copies.across, beside)

    def _enter(self, arrival: Arrival, copy: IncomingDelivery, message: Message) -> Arrival:
        """Return the message in the hand of the exchange, as it goes to next hops."""
        self._entrance.connection_number = arrival.source.connection_number
        self._entrance.tenant = arrival.source.tenant
        return arrival.for_copies(self._entrance, copy, message)

    def _forward_over(self, hop: NextHop, arrival: Arrival, priority: int) -> int:
        """Forward the message to the consumers of another address by its treatment; return their number."""
        exchanges = self._exchanges
        entry = hop.entry
        phase = hop.phase
        if entry.count_destinations() == 0:
            fallback = entry.fallback
            if fallback is not None and fallback.count_destinations() > 0:
                entry.counters.redirected += 1
                exchanges.totals.redirected += 1
                entry, phase = fallback, FALLBACK_NUMBER
            else:
                up = exchanges.shared.uplink.entry if exchanges.shared.uplink is not None and hop.goes_up else None
                if not isinstance(up, AddressEntry):
                    return 0
                entry = up
        arrival.priority = priority if hop.entry.priority < 0 else hop.entry.priority
        message = arrival.message
        assert message is not None  # noqa: S101 - `_enter` has kept it
        message.begin_with(message.head_for(hop.to, phase))
        copies = entry.forwarder.forward(arrival)
        entry.counters.add_copies(copies)
        exchanges.totals.add_copies(copies)
        return copies.total

    def _match(self, arrival: Arrival, complete: bool) -> Matched | None:
        """Return what matches the message in hand; None if its properties are not complete yet."""
        scan = self._scan
        data = arrival.data
        try:
            if scan.scan_sections(data, arrival.start, arrival.end, THROUGH_PROPERTIES, complete) == NEED_MORE:
                return None
        except InvalidMessage:
            return _NOTHING  # treated as one without properties: other addresses do not read them at all
        if scan.properties_start < 0:
            return _NOTHING
        subject = read_subject(data, scan.properties_start, scan.properties_end)
        if subject is None:
            return _NOTHING
        result = self._known.get(subject)
        if result is None:
            result = Matched([binding for bindings in self._keys.matches(subject) for binding in bindings])
            if len(subject) <= _REMEMBERED_LENGTH:
                if len(self._known) >= _MAX_SUBJECTS:
                    self._known.clear()
                self._known[subject] = result
        return result


def _presettled(delivery: IncomingDelivery) -> IncomingDelivery:
    """Return a pre-settled delivery from which copies are made without relaying their outcomes."""
    copy = presettled(delivery.link, delivery.complete)
    copy.tag = delivery.tag
    copy.arrived_at_s = delivery.arrived_at_s
    copy.message_format = delivery.message_format
    return copy


class Exchanges:
    """The exchanges of a router."""

    def __init__(self, table: AddressTable, shared: SharedState, totals: AddressCounters) -> None:
        self._table = table
        self.shared = shared
        #: The router's address counters.
        self.totals = totals
        #: The number of exchanges that the message is passing now.
        self.depth = 0
        #: Long messages, which no single receiver may hold up.
        self.stalls = Stalls()

    def add(self, rule: ExchangeRule) -> Exchange:
        """Start to distribute the messages to an address; it is advertised to other routers."""
        entry = self._obtain_entry(rule.address, rule.phase)
        exchange = Exchange(rule, entry, self)
        entry.holders += 1
        if rule.alternate:
            exchange.alternate = self.make_hop(rule.alternate, rule.alternate_phase)
            self.keep_entry(exchange.alternate)
        entry.forward_by(exchange)
        return exchange

    def remove(self, exchange: Exchange) -> None:
        """Make the address an ordinary one again; its consumers and senders stay."""
        entry = exchange.entry
        if entry.forwarder is exchange:
            entry.forward_by(exchange.inner)
        else:
            outer = entry.forwarder
            while isinstance(outer, Exchange) and outer.inner is not exchange:
                outer = outer.inner
            if isinstance(outer, Exchange):
                outer.inner = exchange.inner
        entry.holders -= 1
        self._table.release_entry(entry)
        for hop in exchange.list_hops():
            self.release_entry(hop)

    def make_hop(self, address: str, phase: int) -> NextHop:
        """Return a new next hop for an address."""
        return NextHop(address, phase, self._obtain_entry(address, phase))

    def keep_entry(self, hop: NextHop) -> None:
        """Keep the entry of a next hop, with or without consumers."""
        hop.entry.holders += 1

    def release_entry(self, hop: NextHop) -> None:
        """Stop keeping the entry for this next hop."""
        hop.entry.holders -= 1
        self._table.release_entry(hop.entry)

    def _obtain_entry(self, text: str, phase: int) -> AddressEntry:
        """Return the entry of an address; balanced if its configured distribution is unavailable."""
        address = self._table.parse(text)
        treatment = None
        if address.letter == ROUTER or address.key == UPLINK_KEY:
            treatment = "closest"
        elif address.letter == EDGE or self._table.rule_for(address).distribution == UNAVAILABLE:
            treatment = "balanced"
        entry = self._table.obtain_entry(text, True, str(phase), treatment)
        assert entry is not None  # noqa: S101 - only the treatment unavailable gives none
        return entry

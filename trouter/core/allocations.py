"""The number and size of the router's objects, for the allocator's rows in management.

Counts are current and cost one step per link. An object's size is measured once, with what only it refers to; a buffer
is 512 bytes of messages under way.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import islice
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Final

from trouter.engine.connection import Connection
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Budget, ConnectionPort, Delivery
from trouter.engine.session import Session
from trouter.wire.performatives import Attach, Open, Source, Target

from .arrival import UNCHANGED, Arrival
from .by_address import ByAddress
from .counters import AddressCounters
from .egress import Egress
from .entry import AddressEntry
from .forwarders import Multicast
from .incoming_parts import CreditAccount
from .ingress import Ingress
from .message import IncomingDelivery, Message, OutgoingDelivery
from .ports import SharedState
from .table import AddressTable

if TYPE_CHECKING:
    from .router import Router

BUFFER_BYTES: Final = 512
#: Messages that are measured on each link, and addresses with a row of their own.
LOOKED_AT: Final = 100
MAX_ADDRESSES: Final = 20


def owners(router: Router, connections: Collection[Connection]) -> list[tuple[str, int, int]]:
    """Return (type, size of an object in bytes, number of objects) by type; ``connections`` are the open ones."""
    links = len(router.links)
    incoming = sum(not isinstance(each, Egress) for each in router.links.values())
    sizes = _sizes()
    link_bytes = sizes[Ingress] * incoming + sizes[Egress] * (links - incoming)
    return [
        ("qd_connection_t", sizes[Connection], len(connections)),
        ("qd_session_t", sizes[Session], sum(len(each.sessions()) for each in connections)),
        ("qdr_address_t", sizes[AddressEntry], len(router.table.entries)),
        ("qdr_link_t", link_bytes // links if links else sizes[Egress], links),
        ("qdr_delivery_t", sizes[OutgoingDelivery], _count_deliveries(router)),
        ("qd_message_t", sizes[Message], _count_messages(router)),
        ("qd_buffer_t", BUFFER_BYTES, -(-_count_bytes(router) // BUFFER_BYTES)),
    ]


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """The messages that wait for the receivers of an address, or of ``others`` addresses together."""

    address: str
    messages: int
    links: int
    bytes: int
    others: int = 0


def waiting_messages(router: Router) -> list[WaitingMessages]:
    """Return the messages that wait for the receivers of each address, the most bytes first.

    The first ``LOOKED_AT`` messages on a link are measured as a sample. The addresses after the ``MAX_ADDRESSES``
    largest are the last item together.
    """
    found = [each for entry in router.table.entries.values() if (each := _waiting_at(entry)).messages]
    found.sort(key=attrgetter("bytes"), reverse=True)
    rest = found[MAX_ADDRESSES:]
    if rest:
        messages, links, size_bytes = (sum(map(attrgetter(name), rest)) for name in ("messages", "links", "bytes"))
        found[MAX_ADDRESSES:] = [WaitingMessages("", messages, links, size_bytes, len(rest))]
    return found


def _waiting_at(entry: AddressEntry) -> WaitingMessages:
    consumers = entry.forwarder.consumers
    waiting = [each.backlog for each in consumers]
    seen = [out.message for each in consumers for out in islice(each.queue, LOOKED_AT) if out.message is not None]
    size_bytes = sum(message.held for message in set(seen))
    messages = max(waiting, default=0) if isinstance(entry.forwarder, Multicast) else sum(waiting)
    links = len(consumers) + len(entry.senders)
    return WaitingMessages(entry.text, messages, links, size_bytes * sum(waiting) // len(seen) if seen else 0)


def _sessions(router: Router) -> list[Session]:
    sessions = dict.fromkeys(each.link.session for each in router.links.values())
    return list(sessions)


def _count_deliveries(router: Router) -> int:
    """Count the unsettled deliveries of sessions, and those that are not begun or are settled."""
    count = sum(session.deliveries.incoming.count + session.deliveries.outgoing.count for session in _sessions(router))
    for each in router.links.values():
        if isinstance(each, Egress):
            waiting = each.waiting
            count += waiting.count
            if waiting.count > 0 and waiting.first().begun and not waiting.first().settled:
                count -= 1
        elif each.link.partial is not None and each.link.partial.remote_settled:
            count += 1
    return count


def _count_messages(router: Router) -> int:
    """Count the messages that wait on a link, and those still incoming without copies; copies count once."""
    count = 0
    for each in router.links.values():
        if not isinstance(each, Egress):
            partial = each.link.partial
            if isinstance(partial, IncomingDelivery) and partial.message is not None:
                count += not partial.message.copies
    for entry in router.table.entries.values():
        waiting = [each.backlog for each in entry.forwarder.consumers]
        shared = isinstance(entry.forwarder, Multicast)
        count += (max(waiting, default=0)) if shared else sum(waiting)
    return count


def _count_bytes(router: Router) -> int:
    """Return the bytes that sessions hold, and those in the output of connections."""
    sessions = _sessions(router)
    connections = dict.fromkeys(session.connection for session in sessions)
    return sum(session.windows.held_bytes for session in sessions) + sum(len(each.out) for each in connections)


@cache
def _sizes() -> dict[type, int]:
    """Return the size of one object of each type, in bytes, measured on a sample."""
    table, shared = AddressTable("sample"), SharedState()
    limits = EngineLimits()
    session = Session(ConnectionPort([], Budget(0)), 0, limits, [])
    link_in, link_out = IncomingLink(session, "sample"), OutgoingLink(session, "sample")
    by_address = ByAddress(table, AddressCounters(), None, strips=True, to_override="sample")
    incoming = Ingress(link_in, shared, Arrival(), CreditAccount(link_in, shared, None, 1), by_address)
    outgoing = Egress(link_out, shared, 1, True, False)
    links: tuple[Link, ...] = (link_in, link_out)
    for link, sink in zip(links, (incoming, outgoing), strict=True):
        link.sink = sink
        link.remote_attach = Attach("sample", 0, not link.incoming, source=Source("sample"), target=Target("sample"))
    message = Message(None, UNCHANGED)
    message.copies.append(OutgoingDelivery(link_out))
    message.chunks.append(b"")
    samples: dict[type, tuple[object, ...]] = {
        Ingress: (incoming, link_in),
        Egress: (outgoing, link_out),
        AddressEntry: (AddressEntry("M0sample", "sample", "balanced"),),
        OutgoingDelivery: (OutgoingDelivery(link_out),),
        Message: (message,),
        Session: (Session(session.connection, 0, limits, []),),
        Connection: (Connection(limits, Open("sample"), [], None, True),),
    }
    of_session = (session, session.connection, session.deliveries, session.links, session.windows)
    others = (limits, shared, table, table.known, *of_session, incoming.arrival, by_address.totals, message.rewriter)
    return {kind: sum(_own_bytes(part, others) for part in parts) for kind, parts in samples.items()}


#: Objects that many share, or that have a sample of their own.
_NOT_OWN: Final = (type, ModuleType, Enum, Link, Ingress, Egress, AddressEntry, Delivery, Message)


def _own_bytes(sample: object, others: Iterable[object]) -> int:
    """Return the size of an object and of all objects that only it refers to, in bytes."""
    seen = {id(each) for each in others}
    found = [sample]
    size = 0
    while found:
        each = found.pop()
        if id(each) not in seen and (each is sample or not isinstance(each, _NOT_OWN)):
            seen.add(id(each))
            size += sys.getsizeof(each)
            found += gc.get_referents(each)
    return size

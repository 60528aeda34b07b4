"""The message in hand: one that came in and passes through the router, with all that its way needs to know.

``Arrival`` goes from the link that a message came by to the forwarder of its address, and from there to the links, and
consumers inside the router, that get copies. Nobody keeps it: it is valid until the next message is taken in hand. What
is needed for longer is in its delivery, and in its ``Message`` if more of it is to come or a receiver has to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.link import OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkPort, LinkSink, SessionPort
from trouter.wire import octets
from trouter.wire.sections import MessageScan

from .counters import Counters
from .message import AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message, OutgoingDelivery
from .outcomes import ACCEPTED, BARE
from .ports import SharedState, TrunkPort

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from .message import Fanout
    from .tenants import Tenant

_FIRST_OUTCOME: Final[c_int] = 0x24
#: The priority of messages without one (inter-router.md 1.6).
DEFAULT_PRIORITY: Final = 4
_DEFAULT_PRIORITY: Final[c_int] = DEFAULT_PRIORITY
_HIGHEST_PRIORITY: Final[c_int] = 9


class DeliverySource(LinkSink):
    """The place where deliveries enter: an incoming link, or a sender inside the router."""

    __slots__ = ("shared", "counters", "connection_number", "tenant", "trunk", "via_edge", "by_name")

    def __init__(self, shared: SharedState) -> None:
        self.shared = shared
        self.counters = Counters()
        #: The connection's number in management; 0 for the router itself, or while it is unknown.
        self.connection_number: Py_ssize_t = 0
        #: The tenant of the messages, or None.
        self.tenant: Tenant | None = None
        #: The connection to a neighbouring router that it is on; None on other connections.
        self.trunk: TrunkPort | None = None
        #: The connection is between an edge router and its interior router; messages do not go back over it.
        self.via_edge = False
        #: Each message names its address, because the link has none.
        self.by_name = True

    def accept_delivery(self, delivery: IncomingDelivery) -> None:
        """Accept an unsettled delivery for all its receivers; settle it once it is complete."""
        raise LookupError

    def answer_delivery(self, delivery: IncomingDelivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Send the sender the state of its delivery; ``code`` 0 without a state only settles."""
        raise LookupError


class Arrival:
    """One message in hand: complete in ``data[start:end]``, or what has come of ``message`` so far.

    Its fields up to ``message`` are set by ``take``, the others by ``describe``, once the message is read.
    """

    __slots__ = (
        "source",
        "rewriter",
        "delivery",
        "message",
        "data",
        "start",
        "end",
        "priority",
        "phase",
        "rewrites",
        "cut_from",
        "cut_to",
        "annotations",
        "to",
        "origin",
        "trace",
    )

    def __init__(self) -> None:
        self.put_down()
        #: 0 to 9.
        self.priority: c_int = DEFAULT_PRIORITY
        #: The router where it entered ("" for this one), and the routers that it passed, as annotations name them.
        self.origin = ""
        self.trace: tuple[str, ...] = ()
        #: It has router annotations, which most receivers must not get.
        self.rewrites = False
        #: Its annotations; None if it has none.
        self.annotations: CachedAnnotations | None = None
        #: The address and phase for other routers, if they differ from the sender's.
        self.to: str | None = None
        self.phase: c_int = 0
        #: The offsets in ``data`` of its message annotations, or of the place for them.
        self.cut_from: Py_ssize_t = 0
        self.cut_to: Py_ssize_t = 0

    def take(
        self,
        source: DeliverySource,
        rewriter: AnnotationRewriter,
        delivery: IncomingDelivery,
        data: bytes,
        start: Py_ssize_t,
        end: Py_ssize_t,
    ) -> None:
        """Take the octets ``data[start:end]`` of a delivery in hand; ``rewriter`` writes its annotations.

        ``delivery.message`` is the message if these are not all of its octets.
        """
        self.source = source
        self.rewriter = rewriter
        self.delivery = delivery
        self.message: Message | None = delivery.message
        self.data = data
        self.start = start
        self.end = end

    def put_down(self) -> None:
        """Refer to nothing any more: the message goes on by itself, and its connection may end."""
        self.source = _NOWHERE
        self.rewriter = _UNCHANGED
        self.delivery = _NO_DELIVERY
        self.message = None
        self.data = b""
        self.start = 0
        self.end = 0

    def replace_data(self, data: bytes) -> None:
        """Go on with ``data`` as the octets of the message."""
        self.data = data
        self.start = 0
        self.end = len(data)

    def came_over_edge(self, connection_number: Py_ssize_t) -> bool:
        """Return whether it came over this connection between an edge router and its interior router."""
        source: DeliverySource = self.source
        return source.via_edge and source.connection_number == connection_number

    def whole(self) -> bytes:
        """Return the octets of the message that have come."""
        return octets.cut(self.data, self.start, self.end)

    def describe(self, scan: MessageScan, annotations: CachedAnnotations | None, from_neighbour: bool) -> None:
        """Note what ``scan`` has read of the message; origin and trace only if it is from another router."""
        self.to = None
        self.phase = 0
        self.annotations = annotations
        self.rewrites = annotations is not None and annotations.parsed.had_router_keys
        self.cut_from = scan.insert_at
        self.cut_to = scan.insert_at if scan.annotations_end < 0 else scan.annotations_end
        priority: c_int = scan.priority
        self.priority = _DEFAULT_PRIORITY if priority < 0 else min(priority, _HIGHEST_PRIORITY)
        if from_neighbour:
            came_by = None if annotations is None else annotations.parsed.ingress
            self.origin = "" if came_by is None else came_by
            self.trace = () if annotations is None else annotations.parsed.trace
        else:
            self.origin = ""
            self.trace = ()

    def leave_unchanged(self) -> None:
        """Note that the message goes on as it is: nothing of it is read but its header."""
        self.to = None
        self.phase = 0
        self.annotations = None
        self.rewrites = False
        self.origin = ""
        self.trace = ()

    def for_copies(self, source: DeliverySource, delivery: IncomingDelivery, message: Message) -> Arrival:
        """Return the same message, kept as ``message``, in the hand of another ``source`` and for another delivery."""
        arrival = Arrival()
        arrival.take(source, self.rewriter, delivery, self.data, self.start, self.end)
        arrival.message = message
        arrival.priority = self.priority
        arrival.annotations = self.annotations
        arrival.rewrites = self.rewrites
        arrival.to = self.to
        arrival.phase = self.phase
        arrival.cut_from = self.cut_from
        arrival.cut_to = self.cut_to
        return arrival

    # --- the message as it leaves

    def write_whole(self, strips_annotations: bool) -> bytes:
        """Return the message with the router's annotations, or without any router's."""
        annotations: CachedAnnotations | None = self.annotations
        if strips_annotations:
            section: bytes = b"" if annotations is None else annotations.plain_section()
        else:
            section = self.rewriter.onward_section(annotations, self.to, self.phase)
        return octets.replaced(self.data, self.start, self.cut_from, section, self.cut_to, self.end)

    def send(self, link: OutgoingLink, out: OutgoingDelivery, strips_annotations: bool) -> None:
        """Send as much of a complete message as ``link`` takes, from where it came to the output in one step."""
        if strips_annotations and not self.rewrites:
            out.offset = link.send(out, self.data, self.start, self.end, False) - self.start
        else:
            written: bytes = self.write_whole(strips_annotations)
            out.offset = link.send(out, written, 0, len(written), False)

    def keep(self) -> Message:
        """Return the octets in hand as a kept message, whose session holds them; for a single copy, unless told so."""
        session: SessionPort | None = self.delivery.link.session
        message: Message = Message(session, self.rewriter)
        message.append_chunk(octets.cut(self.data, self.start, self.end))
        message.complete = self.delivery.complete
        message.routed = True
        self.describe_to(message)
        return message

    def describe_to(self, message: Message) -> None:
        """Note in the kept message what it needs of this to be written with other annotations."""
        message.annotations = self.annotations
        message.rewrites = self.rewrites
        message.to = self.to
        message.phase = self.phase
        message.cut_from = self.cut_from - self.start
        message.cut_to = self.cut_to - self.start


class MessageTap(Protocol):
    """The receiver of events about incoming messages; see ``MessageLog``."""

    def note_received(self, arrival: Arrival) -> None:
        """Note that a message came, or the beginning of one in several frames."""

    def note_aborted(self, link: Link) -> None:
        """Note that the sender aborted a message."""


def notify_sender(
    out: OutgoingDelivery, sender_delivery: IncomingDelivery, code: c_int, state: bytes | None, settled: bool
) -> None:
    """Relay the state of the copy ``out`` to the sender of ``sender_delivery``.

    At once for a delivery with one copy; a multicast's sender gets the highest outcome when every copy has one, and the
    settlement when every copy is settled.
    """
    source: DeliverySource = sender_delivery.link.sink  # type: ignore[assignment]
    fanout: Fanout | None = sender_delivery.fanout
    if fanout is None:
        if settled:
            sender_delivery.single_copy = None
        source.answer_delivery(sender_delivery, code, state, settled)
        return
    counted: bool = not out.counted and (settled or code >= _FIRST_OUTCOME)
    if counted:
        out.counted = True
        fanout.add_outcome(code or ACCEPTED)
    if settled:
        fanout.copies_open -= 1
        if out in fanout.copies:
            fanout.copies.remove(out)
    if fanout.outcomes_open == 0 and (counted or fanout.copies_open == 0):
        source.answer_delivery(sender_delivery, fanout.code, BARE[fanout.code], fanout.copies_open == 0)


#: The rewriter of links whose messages go on as they are.
UNCHANGED: Final = AnnotationRewriter("", False, False, 0, None)
#: The link of messages from inside the router: it is on no session, so that nothing holds their octets.
NO_LINK: Final = LinkPort(None)  # type: ignore[arg-type]  # nothing asks for its session but to hold octets
_UNCHANGED: Final[AnnotationRewriter] = UNCHANGED
_NOWHERE: Final[DeliverySource] = DeliverySource(SharedState())
_NO_DELIVERY: Final[IncomingDelivery] = IncomingDelivery(NO_LINK)

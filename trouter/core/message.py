"""A message on its way: its deliveries, its router annotations, and its bytes while they are kept.

An incoming delivery and its copies refer to each other until the sender has its outcome. Most messages are copied from
the input to the output of another connection in one step, and are only an ``Arrival``.
A ``Message`` is one that could not be sent within the pass that brought it, or that needs other annotations. The bytes
kept there are held by the session that brought them, whose incoming window closes accordingly, and are released frame
by frame as the slowest receiver takes them.

A sender, and above all a neighbour, sends the same annotations with many messages. So each link caches what it read,
and what it writes instead (routing.md 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine import reuse
from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery, LinkPort, SessionPort, advance_incoming
from trouter.engine.states import DeliveryStep
from trouter.wire import octets
from trouter.wire.annotations import RouterAnnotations, compose_annotations, parse_annotations
from trouter.wire.sections import MessageScan

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from trouter.engine.ports import SessionWindows

#: Sections of annotations cached for a link to a neighbour, and the longest one, in bytes.
_MAX_SECTIONS: Final[Py_ssize_t] = 1024
_MAX_BYTES: Final[Py_ssize_t] = 512


class CachedAnnotations:
    """Annotations as received, and the sections that replace them for the receivers of the message."""

    __slots__ = ("section", "parsed", "onward", "_plain", "entry", "generation", "loops")

    def __init__(self, section: bytes, parsed: RouterAnnotations) -> None:
        #: As received: encoded, and parsed.
        self.section = section
        self.parsed = parsed
        #: The section for routers, as ``AnnotationRewriter.onward_section`` writes it; None before that.
        self.onward: bytes | None = None
        self._plain: bytes | None = None
        #: The ``AddressEntry`` of the address that they name, if there was one at the last lookup.
        self.entry: object = None
        #: Whether the message loops, in the shape of the network that ``generation`` counts.
        self.generation: Py_ssize_t = -1
        self.loops = False

    def plain_section(self) -> bytes:
        """Return the section for receivers: without the routers' annotations."""
        if self._plain is None:
            came: RouterAnnotations = self.parsed
            self._plain = compose_annotations(came.user, came.user_count, 0, False, None, None, ())
        return self._plain


class AnnotationRewriter:
    """Reads and writes the annotations of the messages of one link.

    here: this router's name in annotations. marks: the router adds it, as edge routers do not (inter-router.md 6.7).
    """

    __slots__ = (
        "here",
        "marks",
        "honours",
        "phase",
        "to_override",
        "via_edge",
        "only_traces",
        "keeps",
        "_own",
        "_recent",
        "_known",
    )

    def __init__(self, here: str, marks: bool, honours: bool, phase: c_int, to_override: str | None) -> None:
        self.here = here
        self.marks = marks
        #: The peer's router annotations are read.
        self.honours = honours
        #: The peer is no router: its ingress and trace are sent on, but its to and phase are ignored, because the
        #: policy decides about addresses.
        self.only_traces = False
        #: The phase and address for other routers, unless a message has others.
        self.phase = phase
        self.to_override = to_override
        #: The link comes from an edge router, where messages do not count as entering the network.
        self.via_edge = False
        #: The peer is a router: more than its last annotations are cached.
        self.keeps = False
        #: The section for messages without annotations; None before the first.
        self._own: bytes | None = None
        self._recent: CachedAnnotations | None = None
        #: Further sections that came, of a peer that is a router; None before the first.
        self._known: dict[bytes, CachedAnnotations] | None = None

    def read_section(self, scan: MessageScan, data: bytes) -> CachedAnnotations:
        """Return the annotations whose section ``scan`` has found in ``data``; InvalidAnnotation."""
        start: Py_ssize_t = scan.annotations_start
        end: Py_ssize_t = scan.annotations_end
        annotations: CachedAnnotations | None = self._recent
        if annotations is not None and octets.stands_at(annotations.section, data, start, end):
            return annotations
        section: bytes = octets.cut(data, start, end)
        annotations = self._known.get(section) if self._known is not None else None
        if annotations is None:
            came: RouterAnnotations = parse_annotations(section, 0, end - start, self.honours)
            if self.only_traces:
                came.to = None
                came.phase = 0
            annotations = CachedAnnotations(section, came)
            if self.keeps and end - start <= _MAX_BYTES:
                if self._known is None or len(self._known) >= _MAX_SECTIONS:
                    self._known = {}
                self._known[section] = annotations
        if end - start <= _MAX_BYTES:
            self._recent = annotations
        return annotations

    def onward_section(self, annotations: CachedAnnotations | None, to: str | None, phase: c_int) -> bytes:
        """Return the section for routers; ``to`` and ``phase`` override those of the message and the link."""
        if to is not None:
            return self._compose_section(annotations, to, phase)
        if annotations is None:
            if self._own is None:
                self._own = self._compose_section(None, None, 0)
            return self._own
        if annotations.onward is None:
            annotations.onward = self._compose_section(annotations, None, 0)
        return annotations.onward

    def fresh_section(self, annotations: CachedAnnotations | None, to: str, phase: c_int) -> bytes:
        """Return the section for a message to another address, as if it had entered the network here."""
        marks = (self.here,) if self.marks else ()
        here = self.here if self.marks else None
        if annotations is None:
            return compose_annotations(b"", 0, phase, False, to, here, marks)
        came: RouterAnnotations = annotations.parsed
        return compose_annotations(came.user, came.user_count, phase, came.stream, to, here, marks)

    def _compose_section(self, annotations: CachedAnnotations | None, to: str | None, phase: c_int) -> bytes:
        """Return the section: the user's entries, then phase, stream, to, ingress, trace (4.3)."""
        to = to or self.to_override
        phase = phase or self.phase
        if annotations is None:
            marks = (self.here,) if self.marks else ()
            return compose_annotations(b"", 0, phase, False, to, self.here if self.marks else None, marks)
        came: RouterAnnotations = annotations.parsed
        ingress = None
        if self.marks:
            ingress = self.here if self.via_edge else came.ingress or self.here
        return compose_annotations(
            came.user,
            came.user_count,
            phase or came.phase,
            came.stream,
            to or came.to,
            ingress,
            (*came.trace, self.here) if self.marks else (),
        )


#: The sender of a multicast gets the highest of its copies' outcomes (routing.md 2.4): released is the lowest, then
#: modified, accepted, and rejected.
_RELEASED: Final[c_int] = 0x26
_REJECTED: Final[c_int] = 0x25
_RANKS = {_RELEASED: 1, 0x27: 2, 0x24: 3, _REJECTED: 4}
#: A window of fewer frames is nearly used up: an unfinished message begins once it fills a frame.
_FEW_FRAMES: Final[Py_ssize_t] = 256
#: Smaller pieces are joined, in bytes.
_SMALL_PIECE: Final[Py_ssize_t] = 512


class Fanout:
    """The copies of one multicast delivery that are not settled, and the joint outcome of all.

    ``outcomes_open`` counts those without outcome, ``copies_open`` those unsettled; consumers inside the router are
    among them, and not in ``copies``.
    """

    __slots__ = ("copies", "outcomes_open", "copies_open", "_best")

    def __init__(self, count: Py_ssize_t) -> None:
        self.copies: list[OutgoingDelivery] = []
        self.outcomes_open = count
        self.copies_open = count
        self._best: c_int = _RELEASED

    def add_outcome(self, code: c_int) -> None:
        """Count a copy's outcome ``code``; a code that is no outcome (part 3, 3.4) counts as rejected."""
        self.outcomes_open -= 1
        rank = _RANKS.get(code)
        if rank is None:
            code, rank = _REJECTED, _RANKS[_REJECTED]
        if rank > _RANKS[self._best]:
            self._best = code

    @property
    def code(self) -> int:
        """Code of the highest outcome so far."""
        return self._best


class Outstanding:
    """The number of unsettled deliveries of one address under way on one connection to another router.

    Balanced distribution weighs it (routing.md 2.3); a copy under way refers to it until it ends.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: Py_ssize_t = 0


class TraceSpan(Protocol):
    """The span of one message at this router."""

    address: str

    def end(self, code: int) -> None:
        """End the span by the code of the message's outcome: 0 for none, negative for a lost message."""


class IncomingDelivery(Delivery):
    """A delivery that came on an incoming link, and its copies: what the core needs of it.

    Every field but the link begins as zero or None: ``deliveries.new_incoming`` relies on it.
    """

    __slots__ = ("arrived_at_s", "message", "single_copy", "fanout", "outcome", "span")

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        #: When its first frame came.
        self.arrived_at_s = 0.0
        #: The message, while more frames of it are to come.
        self.message: Message | None = None
        #: The one copy of which the sender gets the outcome, or the copies of a multicast.
        self.single_copy: OutgoingDelivery | None = None
        self.fanout: Fanout | None = None
        #: The outcome that it has, encoded (empty for none but the settlement); later ones do not replace it.
        self.outcome: bytes | None = None
        #: Its span; None for most.
        self.span: TraceSpan | None = None


def presettled(link: LinkPort, complete: bool) -> IncomingDelivery:
    """Return a delivery of the router itself, from which copies are made; no sender waits for it."""
    delivery = IncomingDelivery(link)
    advance_incoming(delivery, DeliveryStep.BEGIN)
    advance_incoming(delivery, DeliveryStep.SETTLE_THERE)
    if complete:
        advance_incoming(delivery, DeliveryStep.FINISH)
    return delivery


class OutgoingDelivery(Delivery):
    """A copy of a message for one receiver: what the core needs of it.

    Every field but the link begins as zero or None: ``deliveries.new_outgoing`` relies on it.
    """

    __slots__ = ("arrived_at_s", "sender_delivery", "message", "chunk", "offset", "outstanding", "counted")

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        #: When the first frame of the message came.
        self.arrived_at_s = 0.0
        #: The delivery whose sender waits for the outcome of this copy.
        self.sender_delivery: IncomingDelivery | None = None
        #: The message until it is sent in full, the number of the piece to send next, and the bytes sent of it.
        self.message: Message | None = None
        self.chunk: Py_ssize_t = 0
        self.offset: Py_ssize_t = 0
        #: The count of deliveries under way that includes this one.
        self.outstanding: Outstanding | None = None
        #: Its outcome is counted among those of a multicast.
        self.counted = False

    def leave_outstanding(self) -> None:
        """Count it as no longer under way to another router."""
        if self.outstanding is not None:
            self.outstanding.count -= 1
            self.outstanding = None


reuse.reuse_memory(IncomingDelivery)
reuse.reuse_memory(OutgoingDelivery)


def join_copy(delivery: IncomingDelivery, out: OutgoingDelivery) -> None:
    """Join the copy ``out`` with ``delivery``, which its sender has not settled, so that each finds the other's end."""
    out.sender_delivery = delivery
    if delivery.fanout is None:
        delivery.single_copy = out
    else:
        delivery.fanout.copies.append(out)


class Heads:
    """First pieces that differ between copies; new copies get ``now``, None for the usual one.

    ``size`` is the bytes of all of them.
    """

    __slots__ = ("now", "of", "size")

    def __init__(self) -> None:
        self.now: bytes | None = None
        self.of: dict[OutgoingDelivery, bytes] = {}
        self.size: Py_ssize_t = 0


class Message:
    """The bytes of one message, in pieces as they came; each copy has its own position in them.

    ``chunks[0]`` is piece number ``first``. The first piece holds every section up to the message annotations. A
    receiver with other annotations gets ``plain_head`` or ``annotated_head`` (with the router's) instead, which
    ``rewriter`` writes when first needed.
    """

    __slots__ = (
        "session",
        "rewriter",
        "chunks",
        "first",
        "held",
        "annotations",
        "to",
        "phase",
        "cut_from",
        "cut_to",
        "rewrites",
        "_plain_head",
        "_annotated_head",
        "heads",
        "complete",
        "aborted",
        "wanted",
        "logged",
        "discard",
        "routed",
        "copies",
    )

    def __init__(self, session: SessionPort | None, rewriter: AnnotationRewriter) -> None:
        self.session = session
        self.rewriter = rewriter
        self.chunks: list[bytes] = []
        self.first: Py_ssize_t = 0
        self.held: Py_ssize_t = 0
        #: The annotations of the message, None for none; and the address and phase that the router's shall have.
        self.annotations: CachedAnnotations | None = None
        self.to: str | None = None
        self.phase: c_int = 0
        #: The offsets of the annotations in the first piece, or of their place; and whether some are routers'.
        self.cut_from: Py_ssize_t = 0
        self.cut_to: Py_ssize_t = 0
        self.rewrites = False
        self._plain_head: bytes | None = None
        self._annotated_head: bytes | None = None
        #: The first pieces with routers' annotations for copies to other addresses.
        self.heads: Heads | None = None
        self.complete = False
        self.aborted = False
        #: Bytes to wait for before it is routed unfinished.
        self.wanted: Py_ssize_t = 0
        #: Its arrival is logged.
        self.logged = False
        #: Further pieces are discarded: no receiver wants them.
        self.discard = False
        #: All its copies exist.
        self.routed = False
        self.copies: list[OutgoingDelivery] = []

    def begin_with(self, head: bytes | None) -> None:
        """Use ``head`` as the first piece of further copies with routers' annotations; None for the usual one."""
        if self.heads is None:
            self.heads = Heads()
        if head is not None:
            if self.session is not None:
                self.session.windows.hold_bytes(len(head))
            self.held += len(head)
            self.heads.size += len(head)
        self.heads.now = head

    def split_first_piece(self, offset: Py_ssize_t) -> None:
        """Split the first piece at ``offset``, before any copy exists."""
        whole: bytes = self.chunks[0]
        self.chunks[:1] = [whole[:offset], whole[offset:]]

    def add_copy(self, copy: OutgoingDelivery) -> None:
        """Add a copy, which starts at the first piece."""
        copy.message = self
        self.copies.append(copy)
        if self.heads is not None and self.heads.now is not None:
            self.heads.of[copy] = self.heads.now

    def append_chunk(self, chunk: bytes) -> None:
        """Keep the next piece, held by the session that brought it; PeerFault beyond a limit."""
        size: Py_ssize_t = len(chunk)
        if self.discard or size == 0:
            return
        if self.session is not None:
            self.session.windows.hold_bytes(size)
        if size < _SMALL_PIECE and self._last_grows():
            self.chunks[-1] += chunk
        else:
            self.chunks.append(chunk)
        self.held += size

    def _last_grows(self) -> bool:
        """Return whether the last piece may grow: it is small, not the head, and no copy has reached it."""
        last: Py_ssize_t = self.first + len(self.chunks) - 1
        if last < 1 or not self.chunks or len(self.chunks[-1]) >= _SMALL_PIECE:
            return False
        for begun in self.copies:
            copy: OutgoingDelivery = begun
            if copy.chunk >= last:
                return False
        return True

    def replace_kept(self, whole: bytes) -> None:
        """Replace everything kept so far by ``whole``, before any copy exists."""
        grown: Py_ssize_t = len(whole) - self.held
        if self.session is not None:
            self.session.windows.hold_bytes(grown)
        self.chunks = [whole]
        self.held += grown

    def join_pieces(self) -> bytes:
        """Join the pieces kept so far into one, and return it."""
        if len(self.chunks) > 1:
            self.chunks = [b"".join(self.chunks)]
        return self.chunks[0] if self.chunks else b""

    def piece_for(self, number: Py_ssize_t, strips_annotations: bool) -> bytes | None:
        """Return piece ``number`` (0 is the head) for a receiver; None before it has come."""
        index: Py_ssize_t = number - self.first
        if index >= len(self.chunks):
            return None
        if number == 0:
            if not strips_annotations:
                return self.annotated_head()
            if self.rewrites:
                return self.plain_head()
        return self.chunks[index]

    def waits_for_rest(self, session: SessionPort) -> bool:
        """Return whether it is not to begin yet on ``session``, whose window is nearly used up.

        Frame by frame, as it comes, it might use up the rest, and some receivers open the window by one frame for each
        whole message. A stream begins, and a message whose sender has hardly any window left for the rest.
        """
        if session.windows.outgoing_frames >= _FEW_FRAMES or self.held >= session.connection.remote_max_frame_bytes:
            return False
        if self.session is None or (self.annotations is not None and self.annotations.parsed.stream):
            return False
        windows: SessionWindows = self.session.windows
        return windows.held_bytes * 2 <= windows.max_incoming_bytes

    def first_piece(self) -> bytes:
        """Return the first piece as it came; b"" once it is released."""
        return self.chunks[0] if self.first == 0 and self.chunks else b""

    def annotated_head(self) -> bytes:
        """Return the first piece with the router's annotations, while the piece is kept."""
        if self._annotated_head is None:
            section = self.rewriter.onward_section(self.annotations, self.to, self.phase)
            self._annotated_head = self._head_with(section)
        return self._annotated_head

    def plain_head(self) -> bytes:
        """Return the first piece without routers' annotations, while the piece is kept."""
        if self._plain_head is None:
            self._plain_head = self._head_with(b"" if self.annotations is None else self.annotations.plain_section())
        return self._plain_head

    def head_for(self, to: str, phase: c_int) -> bytes:
        """Return the first piece for the address ``to``, as if the message had entered the network here."""
        return self._head_with(self.rewriter.fresh_section(self.annotations, to, phase))

    def _head_with(self, section: bytes) -> bytes:
        """Return the first piece, which is kept, with these annotations in place of its own."""
        head: bytes = self.chunks[0]
        return octets.replaced(head, 0, self.cut_from, section, self.cut_to, len(head))

    def whole_message(self, strips_annotations: bool) -> bytes:
        """Return a complete message of which nothing was released."""
        head: bytes | None = self.piece_for(0, strips_annotations)
        if head is None:
            return b""
        return head if len(self.chunks) == 1 else b"".join((head, *self.chunks[1:]))

    def ends_with(self, number: Py_ssize_t) -> bool:
        """Return whether piece ``number`` is the message's last."""
        return self.complete and number - self.first >= len(self.chunks) - 1

    # --- to a receiver

    def send(self, link: OutgoingLink, copy: OutgoingDelivery, strips_annotations: bool) -> None:
        """Send as much of the message as has come and as ``link`` takes, from the position of ``copy`` on."""
        while not copy.complete:
            piece: bytes | None = self._next_piece(copy, strips_annotations)
            if piece is None:
                if self.complete and not self.discard:
                    link.send(copy, b"", 0, 0, False)
                break
            more: Py_ssize_t = self._count_joinable(copy.chunk, len(piece) - copy.offset, link.frame_room(copy))
            if more > 0:  # the joined pieces go in one frame, or stay
                joined: bytes = self._join_on(piece[copy.offset :], copy.chunk, more)
                if link.send(copy, joined, 0, len(joined), not self.ends_with(copy.chunk + more)) < len(joined):
                    break
            else:
                last: bool = self.ends_with(copy.chunk)
                size: Py_ssize_t = len(piece)
                copy.offset = link.send(copy, piece, copy.offset, size, not last)
                if copy.offset < size or (last and not copy.complete):
                    break
            copy.chunk += 1 + more
            copy.offset = 0

    def _next_piece(self, copy: OutgoingDelivery, strips_annotations: bool) -> bytes | None:
        """Return the piece at the position of ``copy``; None before it has come."""
        own: bytes | None = None
        if copy.chunk == 0 and self.heads is not None and not strips_annotations:
            own = self.heads.of.get(copy)
        return self.piece_for(copy.chunk, strips_annotations) if own is None else own

    def _count_joinable(self, number: Py_ssize_t, size: Py_ssize_t, room: Py_ssize_t) -> Py_ssize_t:
        """Return how many of the next pieces fit into ``room`` bytes with piece ``number``, which has ``size``."""
        count: Py_ssize_t = 0
        index: Py_ssize_t = number - self.first + 1
        while index < len(self.chunks):
            size += len(self.chunks[index])
            if size > room:
                break
            count += 1
            index += 1
        return count

    def _join_on(self, piece: bytes, number: Py_ssize_t, count: Py_ssize_t) -> bytes:
        """Return ``piece``, which is piece ``number`` or the rest of it, with the next ``count`` pieces."""
        index: Py_ssize_t = number - self.first + 1
        return b"".join((piece, *self.chunks[index : index + count]))

    def release_passed(self) -> None:
        """Release the pieces that every copy has passed, once all copies exist."""
        if not self.routed:
            return
        passed: Py_ssize_t = self.first + len(self.chunks)
        copy: OutgoingDelivery
        for copy in self.copies:
            if copy.chunk < passed:
                passed = copy.chunk
        if passed > self.first:
            self._drop_pieces(passed - self.first)

    def remove_copy(self, copy: OutgoingDelivery) -> None:
        """Remove a copy that has ended; release the rest if it was the last."""
        if self.heads is not None:
            self.heads.of.pop(copy, None)
        if len(self.copies) == 1:
            self.copies.clear()
        elif copy in self.copies:
            self.copies.remove(copy)
        if self.copies:
            self.release_passed()
        elif self.routed:
            self.discard_rest()
        copy.message = None  # last: the copy may hold the only reference to this message

    def now_routed(self) -> None:
        """Note that all copies exist."""
        self.routed = True
        if self.copies:
            self.release_passed()
        else:
            self.discard_rest()

    def discard_rest(self) -> None:
        """Release what is kept, and discard further pieces."""
        self.discard = True
        if self.held > 0:
            self._drop_pieces(len(self.chunks))

    def _drop_pieces(self, count: Py_ssize_t) -> None:
        if count == len(self.chunks):
            freed: Py_ssize_t = self.held
            self.chunks = []
        else:
            freed = 0
            index: Py_ssize_t
            for index in range(count):
                freed += len(self.chunks[index])
            del self.chunks[:count]
            if self.heads is not None:
                freed += self.heads.size
        self.heads = None  # the first piece is released
        self.first += count
        self.held -= freed
        if self.session is not None:
            self.session.release_bytes(freed)

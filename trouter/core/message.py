"""Deliveries that come and go, and the message between them while its bytes are kept.

An incoming delivery and its copies refer to each other until the sender has its outcome. A ``Message`` exists only if
it could not be sent within the pass that brought it, or needs other annotations; most are copied from the input to the
output of another connection in one step. The bytes kept here are held by the session that brought them, whose incoming
window closes accordingly, and are released frame by frame as the slowest receiver takes them.
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine.ports import Delivery, LinkPort, SessionPort

from .annotations import CachedAnnotations
from .outcomes import Fanout
from .outstanding import Outstanding

#: Smaller pieces are joined, in bytes.
_SMALL_PIECE = 512


class HeadWriter(Protocol):
    """Writes the annotations of a message; see ``Ingress``."""

    def write_head(self, message: Message, head: bytes, plain: bool) -> bytes:
        """Return ``head`` with the router's annotations, or (``plain``) without any router's."""

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """Return the first piece of ``message`` for the address ``to``, as if it had entered the network here."""


class IncomingDelivery(Delivery):
    """A delivery that came on an incoming link, and its copies: what the core needs of it.

    Every field but the link begins as zero or None: ``deliveries.new_incoming`` relies on it.
    """

    __slots__ = ("arrived_at_s", "copies", "fanout", "message", "outcome", "partner")

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        #: When its first frame came.
        self.arrived_at_s = 0.0
        #: The message, while more frames of it are to come.
        self.message: Message | None = None
        #: The one copy of which the sender gets the outcome; for a multicast instead all copies that are not settled
        #: yet, and their joint outcome.
        self.partner: OutgoingDelivery | None = None
        self.copies: list[OutgoingDelivery] | None = None
        self.fanout: Fanout | None = None
        #: The outcome that it has, encoded (empty for none but the settlement); later ones do not replace it.
        self.outcome: bytes | None = None


class OutgoingDelivery(Delivery):
    """A copy of a message for one receiver: what the core needs of it.

    Every field but the link begins as zero or None: ``deliveries.new_outgoing`` relies on it.
    """

    __slots__ = ("arrived_at_s", "chunk", "counted", "message", "offset", "outstanding", "partner")

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        #: When the first frame of the message came.
        self.arrived_at_s = 0.0
        #: The delivery whose sender waits for the outcome of this copy.
        self.partner: IncomingDelivery | None = None
        #: The message until it is sent in full, the number of the piece to send next, and the bytes sent of it.
        self.message: Message | None = None
        self.chunk = 0
        self.offset = 0
        #: The count of deliveries under way that includes this one.
        self.outstanding: Outstanding | None = None
        #: Its outcome is counted among those of a multicast.
        self.counted = False


class Heads:
    """First pieces that differ between copies; new copies get ``now``, None for the usual one.

    ``size`` is the bytes of all of them.
    """

    __slots__ = ("now", "of", "size")

    def __init__(self) -> None:
        self.now: bytes | None = None
        self.of: dict[OutgoingDelivery, bytes] = {}
        self.size = 0


class Message:
    """The bytes of one message, in pieces as they came; each copy has its own position in them.

    ``chunks[0]`` is piece number ``first``. The first piece holds every section up to the message annotations. A
    receiver with other annotations gets ``plain_head`` or ``annotated_head`` (with the router's) instead, which
    ``source`` writes when first needed.
    """

    __slots__ = (
        "_annotated_head",
        "_plain_head",
        "aborted",
        "chunks",
        "complete",
        "copies",
        "cut_from",
        "cut_to",
        "discard",
        "first",
        "heads",
        "held",
        "annotations",
        "phase",
        "rewrites",
        "routed",
        "session",
        "source",
        "to",
        "logged",
        "wanted",
    )

    def __init__(self, session: SessionPort | None, source: HeadWriter) -> None:
        self.session = session
        self.source = source
        self.chunks: list[bytes] = []
        self.first = 0
        self.held = 0
        #: The annotations of the message, None for none; and the address and phase that the router's shall have.
        self.annotations: CachedAnnotations | None = None
        self.to: str | None = None
        self.phase = 0
        #: The offsets of the annotations in the first piece, or of their place; and whether some are routers'.
        self.cut_from = 0
        self.cut_to = 0
        self.rewrites = False
        self._plain_head: bytes | None = None
        self._annotated_head: bytes | None = None
        #: The first pieces with routers' annotations for copies to other addresses.
        self.heads: Heads | None = None
        self.complete = False
        self.aborted = False
        #: Bytes to wait for before it is routed unfinished.
        self.wanted = 0
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
                self.session.hold(len(head))
            self.held += len(head)
            self.heads.size += len(head)
        self.heads.now = head

    def cut(self, offset: int) -> None:
        """Split the first piece at ``offset``, before any copy exists."""
        whole = self.chunks[0]
        self.chunks[:1] = [whole[:offset], whole[offset:]]

    def add(self, copy: OutgoingDelivery) -> None:
        """Add a copy, which starts at the first piece."""
        copy.message = self
        self.copies.append(copy)
        if self.heads is not None and self.heads.now is not None:
            self.heads.of[copy] = self.heads.now

    def head_of(self, copy: OutgoingDelivery, plain: bool) -> bytes | None:
        """Return the first piece for the receiver of ``copy``; None before it has come."""
        own = None if self.heads is None or plain else self.heads.of.get(copy)
        return self.piece(0, plain) if own is None else own

    def append(self, chunk: bytes) -> None:
        """Keep the next piece, held by the session that brought it; PeerFault beyond a limit."""
        size = len(chunk)
        if self.discard or size == 0:
            return
        if self.session is not None:
            self.session.hold(size)
        if size < _SMALL_PIECE and self._last_grows():
            self.chunks[-1] += chunk
        else:
            self.chunks.append(chunk)
        self.held += size

    def _last_grows(self) -> bool:
        """Return whether the last piece may grow: it is small, not the head, and no copy has reached it."""
        last = self.first + len(self.chunks) - 1
        if last < 1 or not self.chunks or len(self.chunks[-1]) >= _SMALL_PIECE:
            return False
        for each in self.copies:
            copy = each
            if copy.chunk >= last:
                return False
        return True

    def rewrite(self, whole: bytes) -> None:
        """Replace everything kept so far by ``whole``, before any copy exists."""
        grown = len(whole) - self.held
        if self.session is not None:
            self.session.hold(grown)
        self.chunks = [whole]
        self.held += grown

    def join(self) -> bytes:
        """Join the pieces kept so far into one, and return it."""
        if len(self.chunks) > 1:
            self.chunks = [b"".join(self.chunks)]
        return self.chunks[0] if self.chunks else b""

    def piece(self, number: int, plain: bool) -> bytes | None:
        """Return piece ``number`` (0 is the head) for a receiver; None before it has come."""
        index = number - self.first
        if index >= len(self.chunks):
            return None
        if number == 0:
            if not plain:
                return self.annotated_head()
            if self.rewrites:
                return self.plain_head()
        return self.chunks[index]

    def begin(self) -> bytes:
        """Return the first piece as it came; b"" once it is released."""
        return self.chunks[0] if self.first == 0 and self.chunks else b""

    def annotated_head(self) -> bytes:
        """Return the first piece with the router's annotations, while the piece is kept."""
        if self._annotated_head is None:
            self._annotated_head = self.source.write_head(self, self.chunks[0], False)
        return self._annotated_head

    def plain_head(self) -> bytes:
        """Return the first piece without routers' annotations, while the piece is kept."""
        if self._plain_head is None:
            self._plain_head = self.source.write_head(self, self.chunks[0], True)
        return self._plain_head

    def whole(self, plain: bool) -> bytes:
        """Return a complete message of which nothing was released."""
        head = self.piece(0, plain)
        if head is None:
            return b""
        return head if len(self.chunks) == 1 else b"".join((head, *self.chunks[1:]))

    def ends_with(self, number: int) -> bool:
        """Return whether piece ``number`` is the message's last."""
        return self.complete and number - self.first >= len(self.chunks) - 1

    def trim(self) -> None:
        """Release the pieces that every copy has passed, once all copies exist."""
        if not self.routed:
            return
        passed = self.first + len(self.chunks)
        for each in self.copies:
            copy = each
            if copy.chunk < passed:
                passed = copy.chunk
        if passed > self.first:
            self._drop(passed - self.first)

    def leave(self, copy: OutgoingDelivery) -> None:
        """Remove a copy that has ended; release the rest if it was the last."""
        if self.heads is not None:
            self.heads.of.pop(copy, None)
        if len(self.copies) == 1:
            self.copies.clear()
        elif copy in self.copies:
            self.copies.remove(copy)
        if self.copies:
            self.trim()
        elif self.routed:
            self.forget()
        copy.message = None  # last: the copy may hold the only reference to this message

    def now_routed(self) -> None:
        """Note that all copies exist."""
        self.routed = True
        if self.copies:
            self.trim()
        else:
            self.forget()

    def forget(self) -> None:
        """Release what is kept, and discard further pieces."""
        self.discard = True
        if self.held > 0:
            self._drop(len(self.chunks))

    def _drop(self, count: int) -> None:
        if count == len(self.chunks):
            freed = self.held
            self.chunks = []
        else:
            freed = 0
            for index in range(count):
                freed += len(self.chunks[index])
            del self.chunks[:count]
            if self.heads is not None:
                freed += self.heads.size
        self.heads = None  # the first piece is released
        self.first += count
        self.held -= freed
        if self.session is not None:
            self.session.release(freed)

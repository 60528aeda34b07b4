"""A message that could not be sent on within the pass that brought it, or that needs its annotations rewritten.

Most messages never become one of these: they are copied from the input to the
output of another connection in one step. What is kept here is charged to the
session that brought it, whose incoming window closes as the charge grows, and
is let go frame by frame as the slowest receiver takes it.
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine.ports import Delivery, SessionPort

from .annotations import CachedAnnotations

#: Pieces below this many octets are kept as one.
_SMALL_PIECE = 512


class HeadWriter(Protocol):
    """Writes what the router says of a message; see ``Ingress``."""

    def write_head(self, message: Message, head: bytes, plain: bool) -> bytes:
        """Return ``head`` with the router's own annotations, or (``plain``) without those of any router."""

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """Return the first piece of ``message`` with annotations as if it had entered the network here, for ``to``."""


class Heads:
    """First pieces that are different for different copies; copies that are made now get ``now``, None for the usual.

    ``size`` is how many octets they have together.
    """

    __slots__ = ("now", "of", "size")

    def __init__(self) -> None:
        self.now: bytes | None = None
        self.of: dict[Delivery, bytes] = {}
        self.size = 0


class Message:
    """The octets of one message, in pieces as they came; each copy sent of it keeps its own place.

    ``chunks[0]`` is piece number ``first``. The first piece holds every section up to the message annotations;
    where the receiver is to get other annotations than came, ``plain_head`` and ``annotated_head`` (with the router's
    own) stand for it, and ``source`` writes them when they are first asked for.
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
        #: The annotations that came, None for none at all; what the router's own are to say beside its name.
        self.annotations: CachedAnnotations | None = None
        self.to: str | None = None
        self.phase = 0
        #: Where annotations stand in the first piece, or would stand; and that some of them are routers'.
        self.cut_from = 0
        self.cut_to = 0
        self.rewrites = False
        self._plain_head: bytes | None = None
        self._annotated_head: bytes | None = None
        #: What stands for the first piece in copies for other addresses, where routers' annotations are sent.
        self.heads: Heads | None = None
        self.complete = False
        self.aborted = False
        #: How much of it to wait for before it is routed unfinished.
        self.wanted = 0
        #: That it came stands in the log already.
        self.logged = False
        #: Whatever still comes is thrown away: no receiver wants it.
        self.discard = False
        #: Every copy there will be exists.
        self.routed = False
        self.copies: list[Delivery] = []

    def begin_with(self, head: bytes | None) -> None:
        """Let copies from here on begin with ``head`` where routers' annotations are sent; None: as usual."""
        if self.heads is None:
            self.heads = Heads()
        if head is not None:
            if self.session is not None:
                self.session.hold(len(head))
            self.held += len(head)
            self.heads.size += len(head)
        self.heads.now = head

    def cut(self, offset: int) -> None:
        """Make the first piece end at ``offset``; before any copy is made."""
        whole = self.chunks[0]
        self.chunks[:1] = [whole[:offset], whole[offset:]]

    def add(self, copy: Delivery) -> None:
        """Add a copy, which sends from the first piece on."""
        copy.message = self
        self.copies.append(copy)
        if self.heads is not None and self.heads.now is not None:
            self.heads.of[copy] = self.heads.now

    def head_of(self, copy: Delivery, plain: bool) -> bytes | None:
        """Return the first piece in the form that the receiver of ``copy`` gets; None when nothing has come yet."""
        own = None if self.heads is None or plain else self.heads.of.get(copy)
        return self.piece(0, plain) if own is None else own

    def append(self, chunk: bytes) -> None:
        """Keep the next piece, charged to the session that brought it."""
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
        """The last piece is small, is not the head, and no copy has come to it: a piece costs more than an octet."""
        last = self.first + len(self.chunks) - 1
        if last < 1 or not self.chunks or len(self.chunks[-1]) >= _SMALL_PIECE:
            return False
        for each in self.copies:
            copy = each
            if copy.chunk >= last:
                return False
        return True

    def rewrite(self, whole: bytes) -> None:
        """Have ``whole`` for everything kept so far; before any copy is made."""
        grown = len(whole) - self.held
        if self.session is not None:
            self.session.hold(grown)
        self.chunks = [whole]
        self.held += grown

    def join(self) -> bytes:
        """Return what is kept so far as one piece, which it is from here on."""
        if len(self.chunks) > 1:
            self.chunks = [b"".join(self.chunks)]
        return self.chunks[0] if self.chunks else b""

    def piece(self, number: int, plain: bool) -> bytes | None:
        """Return piece ``number`` (0 is the head) in the form a receiver gets, None when it has not come yet."""
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
        """Return the first piece as it came, nothing once it is let go."""
        return self.chunks[0] if self.first == 0 and self.chunks else b""

    def annotated_head(self) -> bytes:
        """Return the first piece with the router's own annotations; asked for while the piece is still here."""
        if self._annotated_head is None:
            self._annotated_head = self.source.write_head(self, self.chunks[0], False)
        return self._annotated_head

    def plain_head(self) -> bytes:
        """Return the first piece without the annotations of routers; asked for as above."""
        if self._plain_head is None:
            self._plain_head = self.source.write_head(self, self.chunks[0], True)
        return self._plain_head

    def whole(self, plain: bool) -> bytes:
        """Return all of a complete message of which nothing was let go."""
        head = self.piece(0, plain)
        if head is None:
            return b""
        return head if len(self.chunks) == 1 else b"".join((head, *self.chunks[1:]))

    def ends_with(self, number: int) -> bool:
        """Return whether piece ``number`` is the last one there will be."""
        return self.complete and number - self.first >= len(self.chunks) - 1

    def trim(self) -> None:
        """Let go of the pieces that every copy has passed; none before all copies are known."""
        if not self.routed:
            return
        passed = self.first + len(self.chunks)
        for each in self.copies:
            copy = each
            if copy.chunk < passed:
                passed = copy.chunk
        if passed > self.first:
            self._drop(passed - self.first)

    def leave(self, copy: Delivery) -> None:
        """Drop a copy that is done or given up; without any copy left what remains is thrown away."""
        copy.message = None
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

    def now_routed(self) -> None:
        """Note that every copy that there will be exists."""
        self.routed = True
        if self.copies:
            self.trim()
        else:
            self.forget()

    def forget(self) -> None:
        """Throw away what is kept and whatever still comes."""
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
        self.heads = None  # the first piece is among those that go
        self.first += count
        self.held -= freed
        if self.session is not None:
            self.session.release(freed)

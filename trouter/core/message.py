"""A message that could not be sent on within the pass that brought it, or that needs its annotations rewritten.

Most messages never become one of these: they are copied from the input to the
output of another connection in one step. What is kept here is charged to the
session that brought it, whose incoming window closes as the charge grows, and
is let go frame by frame as the slowest receiver takes it.
"""

from __future__ import annotations

from trouter.engine.ports import Delivery, SessionPort


class Message:
    """The octets of one message, in pieces as they came; each copy sent of it keeps its own place.

    ``chunks[0]`` is piece number ``first``. The first piece holds every section up to the message annotations, so
    that ``plain_head`` and ``annotated_head`` (with the router's own annotations) can stand for it.
    """

    __slots__ = (
        "aborted",
        "annotated_head",
        "chunks",
        "complete",
        "copies",
        "discard",
        "first",
        "held",
        "plain_head",
        "routed",
        "session",
        "total",
    )

    def __init__(self, session: SessionPort | None) -> None:
        self.session = session
        self.chunks: list[bytes] = []
        self.first = 0
        self.held = 0
        self.total = 0
        self.plain_head: bytes | None = None
        self.annotated_head: bytes | None = None
        self.complete = False
        self.aborted = False
        #: Whatever still comes is thrown away: nobody wants it.
        self.discard = False
        #: Every copy there will be exists.
        self.routed = False
        self.copies: list[Delivery] = []

    def append(self, chunk: bytes) -> None:
        """Keep the next piece."""
        size = len(chunk)
        self.total += size
        if self.discard or size == 0:
            return
        self.chunks.append(chunk)
        self.held += size
        if self.session is not None:
            self.session.hold(size)

    def join(self) -> bytes:
        """Everything kept so far as one piece, which it is from here on."""
        if len(self.chunks) > 1:
            self.chunks = [b"".join(self.chunks)]
        return self.chunks[0] if self.chunks else b""

    def piece(self, number: int, plain: bool) -> bytes | None:
        """Piece ``number`` (0 is the head) in the form a receiver gets, None when it has not come yet."""
        index = number - self.first
        if index >= len(self.chunks):
            return None
        if number == 0:
            head = self.plain_head if plain else self.annotated_head
            if head is not None:
                return head
        return self.chunks[index]

    def ends_with(self, number: int) -> bool:
        """Piece ``number`` is the last one there will be."""
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
        self._drop(passed - self.first)

    def leave(self, copy: Delivery) -> None:
        """A copy is done or given up; without any copy left what remains is thrown away."""
        if copy in self.copies:
            self.copies.remove(copy)
        copy.message = None
        if self.copies:
            self.trim()
        elif self.routed:
            self.forget()

    def now_routed(self) -> None:
        """Every copy there will be exists."""
        self.routed = True
        if self.copies:
            self.trim()
        else:
            self.forget()

    def forget(self) -> None:
        """Throw away what is kept and whatever still comes."""
        self.discard = True
        self._drop(len(self.chunks))

    def _drop(self, count: int) -> None:
        if count <= 0:
            return
        freed = 0
        for index in range(count):
            freed += len(self.chunks[index])
        del self.chunks[:count]
        self.first += count
        self.held -= freed
        if self.session is not None:
            self.session.release(freed)

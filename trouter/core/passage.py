"""What routers say of a message in its annotations: as it comes to this router, and as it goes on (routing.md 4.3).

A sender, and a neighbour above all, says the same of one message after another. So what was read, and what is to be
written in its place, is kept for each link.
"""

from __future__ import annotations

from trouter.wire import octets
from trouter.wire.annotations import RouterAnnotations, compose_annotations, parse_annotations

#: Sections of annotations that are remembered for a link to a neighbour, and how long one may be.
_MOST = 1024
_MAX_BYTES = 512


class Passage:
    """Annotations as they came, and the sections that replace them for the receivers of the message."""

    __slots__ = ("_plain", "annotations", "generation", "loops", "onward", "record", "section")

    def __init__(self, section: bytes, annotations: RouterAnnotations) -> None:
        #: As they came, encoded; and read.
        self.section = section
        self.annotations = annotations
        #: For routers, as ``Marker.onward`` writes it; None until then.
        self.onward: bytes | None = None
        self._plain: bytes | None = None
        #: The address that they name, a ``Record``, if there was one when it was looked for last; the link's to read.
        self.record: object = None
        #: In the shape of the network that ``generation`` counts, the message has come too far.
        self.generation = -1
        self.loops = False

    def plain(self) -> bytes:
        """For receivers: the annotations that are none of routers'."""
        if self._plain is None:
            came = self.annotations
            self._plain = compose_annotations(came.user, came.user_count, 0, False, None, None, ())
        return self._plain


class Marker:
    """Reads and writes the annotations of the messages of one link.

    here: how annotations name this router. marks: it says so, which routers on the edge do not (inter-router.md 6.7).
    """

    __slots__ = (
        "_known",
        "_own",
        "_recent",
        "here",
        "honours",
        "keeps",
        "marks",
        "only_traces",
        "phase",
        "to_override",
        "via_edge",
    )

    def __init__(self, here: str, marks: bool, honours: bool, phase: int, to_override: str | None) -> None:
        self.here = here
        self.marks = marks
        #: What the peer says in the name of routers is read.
        self.honours = honours
        #: The peer is no router: what it says of where messages have been goes on, and what it says of where they are
        #: to go is not obeyed, for that is what policies are asked about.
        self.only_traces = False
        #: What messages of the link say of their address to other routers, where nothing else is said of one.
        self.phase = phase
        self.to_override = to_override
        #: The link is that of an edge router, which is no place where messages enter.
        self.via_edge = False
        #: The peer is a router: more than its last annotations are kept.
        self.keeps = False
        #: Of a message that came without annotations; None until one is asked for.
        self._own: bytes | None = None
        self._recent: Passage | None = None
        self._known: dict[bytes, Passage] = {}

    def read(self, data: bytes, start: int, end: int) -> Passage:
        """What stands in the section ``data[start:end]``; InvalidAnnotation."""
        passage = self._recent
        if passage is not None and octets.stands_at(passage.section, data, start, end):
            return passage
        section = octets.cut(data, start, end)
        passage = self._known.get(section) if self.keeps else None
        if passage is None:
            came = parse_annotations(section, 0, end - start, self.honours)
            if self.only_traces:
                came.to = None
                came.phase = 0
            passage = Passage(section, came)
            if self.keeps and end - start <= _MAX_BYTES:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[section] = passage
        if end - start <= _MAX_BYTES:
            self._recent = passage
        return passage

    def onward(self, passage: Passage | None, to: str | None, phase: int) -> bytes:
        """The section with which a message goes on to routers; ``to`` and ``phase`` where its sender wrote others."""
        if to is not None:
            return self._compose(passage, to, phase)
        if passage is None:
            if self._own is None:
                self._own = self._compose(None, None, 0)
            return self._own
        if passage.onward is None:
            passage.onward = self._compose(passage, None, 0)
        return passage.onward

    def anew(self, passage: Passage | None, to: str, phase: int) -> bytes:
        """The section with which a message goes on to another address, as if it had entered the network here."""
        marks = (self.here,) if self.marks else ()
        here = self.here if self.marks else None
        if passage is None:
            return compose_annotations(b"", 0, phase, False, to, here, marks)
        came = passage.annotations
        return compose_annotations(came.user, came.user_count, phase, came.stream, to, here, marks)

    def _compose(self, passage: Passage | None, to: str | None, phase: int) -> bytes:
        """User's first, then phase, stream, to, ingress, trace (4.3)."""
        to = to or self.to_override
        phase = phase or self.phase
        if passage is None:
            marks = (self.here,) if self.marks else ()
            return compose_annotations(b"", 0, phase, False, to, self.here if self.marks else None, marks)
        came = passage.annotations
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

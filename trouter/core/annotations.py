"""The router annotations of a message: as received, and as sent on (routing.md 4.3).

A sender, and above all a neighbour, sends the same annotations with many messages. So each link caches what it read,
and what it writes instead.
"""

from __future__ import annotations

from trouter.wire import octets
from trouter.wire.annotations import RouterAnnotations, compose_annotations, parse_annotations

#: Sections of annotations cached for a link to a neighbour, and the longest one, in bytes.
_MAX_SECTIONS = 1024
_MAX_BYTES = 512


class CachedAnnotations:
    """Annotations as received, and the sections that replace them for the receivers of the message."""

    __slots__ = ("_plain", "generation", "loops", "onward", "entry", "parsed", "section")

    def __init__(self, section: bytes, parsed: RouterAnnotations) -> None:
        #: As received: encoded, and parsed.
        self.section = section
        self.parsed = parsed
        #: The section for routers, as ``AnnotationRewriter.onward`` writes it; None before that.
        self.onward: bytes | None = None
        self._plain: bytes | None = None
        #: The ``AddressEntry`` of the address that they name, if there was one at the last lookup.
        self.entry: object = None
        #: Whether the message loops, in the shape of the network that ``generation`` counts.
        self.generation = -1
        self.loops = False

    def plain(self) -> bytes:
        """Return the section for receivers: without the routers' annotations."""
        if self._plain is None:
            came = self.parsed
            self._plain = compose_annotations(came.user, came.user_count, 0, False, None, None, ())
        return self._plain


class AnnotationRewriter:
    """Reads and writes the annotations of the messages of one link.

    here: this router's name in annotations. marks: the router adds it, as edge routers do not (inter-router.md 6.7).
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
        self._known: dict[bytes, CachedAnnotations] = {}

    def read(self, data: bytes, start: int, end: int) -> CachedAnnotations:
        """Return the annotations in the section ``data[start:end]``; InvalidAnnotation."""
        annotations = self._recent
        if annotations is not None and octets.stands_at(annotations.section, data, start, end):
            return annotations
        section = octets.cut(data, start, end)
        annotations = self._known.get(section) if self.keeps else None
        if annotations is None:
            came = parse_annotations(section, 0, end - start, self.honours)
            if self.only_traces:
                came.to = None
                came.phase = 0
            annotations = CachedAnnotations(section, came)
            if self.keeps and end - start <= _MAX_BYTES:
                if len(self._known) >= _MAX_SECTIONS:
                    self._known.clear()
                self._known[section] = annotations
        if end - start <= _MAX_BYTES:
            self._recent = annotations
        return annotations

    def onward(self, annotations: CachedAnnotations | None, to: str | None, phase: int) -> bytes:
        """Return the section for routers; ``to`` and ``phase`` override those of the message and the link."""
        if to is not None:
            return self._compose(annotations, to, phase)
        if annotations is None:
            if self._own is None:
                self._own = self._compose(None, None, 0)
            return self._own
        if annotations.onward is None:
            annotations.onward = self._compose(annotations, None, 0)
        return annotations.onward

    def anew(self, annotations: CachedAnnotations | None, to: str, phase: int) -> bytes:
        """Return the section for a message to another address, as if it had entered the network here."""
        marks = (self.here,) if self.marks else ()
        here = self.here if self.marks else None
        if annotations is None:
            return compose_annotations(b"", 0, phase, False, to, here, marks)
        came = annotations.parsed
        return compose_annotations(came.user, came.user_count, phase, came.stream, to, here, marks)

    def _compose(self, annotations: CachedAnnotations | None, to: str | None, phase: int) -> bytes:
        """Return the section: the user's entries, then phase, stream, to, ingress, trace (4.3)."""
        to = to or self.to_override
        phase = phase or self.phase
        if annotations is None:
            marks = (self.here,) if self.marks else ()
            return compose_annotations(b"", 0, phase, False, to, self.here if self.marks else None, marks)
        came = annotations.parsed
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

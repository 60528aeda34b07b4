cimport cython

from trouter.engine cimport reuse
from trouter.engine.ports cimport Delivery, SessionPort, SessionWindows, advance_incoming
from trouter.wire cimport octets
from trouter.wire.annotations cimport RouterAnnotations, compose_annotations, parse_annotations
from trouter.wire.sections cimport MessageScan


cdef Py_ssize_t _MAX_SECTIONS
cdef Py_ssize_t _MAX_BYTES
cdef int _RELEASED
cdef int _REJECTED


@cython.final
cdef class CachedAnnotations:
    cdef public bytes section
    cdef public RouterAnnotations parsed
    cdef public bytes onward
    cdef bytes _plain
    cdef public object entry
    cdef public Py_ssize_t generation
    cdef public bint loops

    @cython.locals(came=RouterAnnotations)
    cpdef bytes plain_section(self)


@cython.final
cdef class AnnotationRewriter:
    cdef public str here
    cdef public bint marks
    cdef public bint honours
    cdef public int phase
    cdef public str to_override
    cdef public bint via_edge
    cdef public bint only_traces
    cdef public bint keeps
    cdef bytes _own
    cdef CachedAnnotations _recent
    cdef dict _known

    @cython.locals(annotations=CachedAnnotations, section=bytes, came=RouterAnnotations, start=Py_ssize_t, end=Py_ssize_t)
    cpdef CachedAnnotations read_section(self, MessageScan scan, bytes data)
    @cython.locals(came=RouterAnnotations)
    cpdef bytes fresh_section(self, CachedAnnotations annotations, str to, int phase)
    cpdef bytes onward_section(self, CachedAnnotations annotations, str to, int phase)
    @cython.locals(came=RouterAnnotations)
    cdef bytes _compose_section(self, CachedAnnotations annotations, str to, int phase)


@cython.final
cdef class Fanout:
    cdef public list copies
    cdef public Py_ssize_t outcomes_open
    cdef public Py_ssize_t copies_open
    cdef int _best

    cpdef add_outcome(self, int code)


@cython.final
cdef class Outstanding:
    cdef public Py_ssize_t count


@cython.final
cdef class IncomingDelivery(Delivery):
    cdef public double arrived_at_s
    cdef public Message message
    cdef public OutgoingDelivery single_copy
    cdef public Fanout fanout
    cdef public bytes outcome
    cdef public object span


@cython.final
cdef class OutgoingDelivery(Delivery):
    cdef public double arrived_at_s
    cdef public IncomingDelivery sender_delivery
    cdef public Message message
    cdef public Py_ssize_t chunk
    cdef public Py_ssize_t offset
    cdef public Outstanding outstanding
    cdef public bint counted


@cython.freelist(2048)
cdef class Message:
    cdef public SessionPort session
    cdef public AnnotationRewriter rewriter
    cdef public list chunks
    cdef public Py_ssize_t first
    cdef public Py_ssize_t held
    cdef public CachedAnnotations annotations
    cdef public str to
    cdef public int phase
    cdef public Py_ssize_t cut_from
    cdef public Py_ssize_t cut_to
    cdef public bint rewrites
    cdef bytes _plain_head
    cdef bytes _annotated_head
    cdef public object heads
    cdef public bint complete
    cdef public bint aborted
    cdef public Py_ssize_t wanted
    cdef public bint logged
    cdef public bint discard
    cdef public bint routed
    cdef public list copies

    cpdef begin_with(self, bytes head)
    @cython.locals(whole_message=bytes)
    cpdef split_first_piece(self, Py_ssize_t offset)
    cpdef add_copy(self, OutgoingDelivery copy)
    cpdef bytes head_of(self, OutgoingDelivery copy, bint strips_annotations)
    @cython.locals(size=Py_ssize_t)
    cpdef append_chunk(self, bytes chunk)
    @cython.locals(last=Py_ssize_t, copy=OutgoingDelivery)
    cdef bint _last_grows(self)
    @cython.locals(grown=Py_ssize_t)
    cpdef replace_kept(self, bytes whole_message)
    cpdef bytes join_pieces(self)
    @cython.locals(count=Py_ssize_t, index=Py_ssize_t)
    cdef Py_ssize_t count_joinable(self, Py_ssize_t number, Py_ssize_t size, Py_ssize_t room) except -1
    @cython.locals(index=Py_ssize_t)
    cdef bytes join_on(self, bytes piece, Py_ssize_t number, Py_ssize_t count)
    @cython.locals(windows=SessionWindows)
    cdef bint waits_for_rest(self, SessionPort session) except -1
    cpdef bytes first_piece(self)
    @cython.locals(index=Py_ssize_t)
    cpdef bytes piece_for(self, Py_ssize_t number, bint strips_annotations)
    cpdef bytes annotated_head(self)
    cpdef bytes plain_head(self)
    cpdef bytes head_for(self, str to, int phase)
    @cython.locals(head=bytes)
    cdef bytes _head_with(self, bytes section)
    cpdef bytes whole_message(self, bint strips_annotations)
    cpdef bint ends_with(self, Py_ssize_t number)
    @cython.locals(passed=Py_ssize_t, copy=OutgoingDelivery)
    cpdef release_passed(self)
    cpdef remove_copy(self, OutgoingDelivery copy)
    cpdef now_routed(self)
    cpdef discard_rest(self)
    @cython.locals(freed=Py_ssize_t, index=Py_ssize_t)
    cdef _drop_pieces(self, Py_ssize_t count)


cdef Py_ssize_t _FEW_FRAMES


cpdef join_copy(IncomingDelivery delivery, OutgoingDelivery out)

cimport cython

from trouter.core.counters cimport Counters
from trouter.core.message cimport AnnotationRewriter, CachedAnnotations, Fanout, IncomingDelivery, Message, OutgoingDelivery
from trouter.core.ports cimport SharedState
from trouter.engine.link cimport OutgoingLink
from trouter.engine.ports cimport LinkPort, LinkSink, SessionPort
from trouter.wire cimport octets
from trouter.wire.annotations cimport RouterAnnotations
from trouter.wire.sections cimport MessageScan

cdef int _FIRST_OUTCOME
cdef int _DEFAULT_PRIORITY
cdef int _HIGHEST_PRIORITY
cdef AnnotationRewriter _UNCHANGED
cdef DeliverySource _NOWHERE
cdef IncomingDelivery _NO_DELIVERY


cdef class DeliverySource(LinkSink):
    cdef public SharedState shared
    cdef public Counters counters
    cdef public Py_ssize_t connection_number
    cdef public object tenant
    cdef public object trunk
    cdef public bint via_edge
    cdef public bint by_name

    cpdef accept_delivery(self, IncomingDelivery delivery)
    cpdef answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled)


@cython.final
cdef class Arrival:
    cdef public DeliverySource source
    cdef public AnnotationRewriter rewriter
    cdef public IncomingDelivery delivery
    cdef public Message message
    cdef public bytes data
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef public int priority
    cdef public int phase
    cdef public bint rewrites
    cdef public Py_ssize_t cut_from
    cdef public Py_ssize_t cut_to
    cdef public CachedAnnotations annotations
    cdef public str to
    cdef public str origin
    cdef public tuple trace

    cpdef take(self, DeliverySource source, AnnotationRewriter rewriter, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef put_down(self)
    cpdef replace_data(self, bytes data)
    cpdef bint came_over_edge(self, Py_ssize_t connection_number)
    cpdef bytes whole(self)
    @cython.locals(priority=int)
    cpdef describe(self, MessageScan scan, CachedAnnotations annotations, bint from_neighbour)
    cpdef leave_unchanged(self)
    cpdef Arrival for_copies(self, DeliverySource source, IncomingDelivery delivery, Message message)
    @cython.locals(annotations=CachedAnnotations, section=bytes)
    cpdef bytes write_whole(self, bint strips_annotations)
    @cython.locals(written=bytes)
    cpdef send(self, OutgoingLink link, OutgoingDelivery out, bint strips_annotations)
    @cython.locals(session=SessionPort, message=Message)
    cpdef Message keep(self)
    cpdef describe_to(self, Message message)


@cython.locals(source=DeliverySource, fanout=Fanout, counted=bint)
cpdef notify_sender(OutgoingDelivery out, IncomingDelivery sender_delivery, int code, bytes state, bint settled)

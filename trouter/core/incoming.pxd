cimport cython

from trouter.core cimport deliveries
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters, Copies
from trouter.core.entry cimport AddressEntry
from trouter.core.forwarders cimport Forwarder
from trouter.core.incoming_parts cimport CreditAccount, Frames, Settlement, is_gathering
from trouter.core.message cimport AnnotationRewriter, Arrival, CachedAnnotations, IncomingDelivery, Message
from trouter.core.network cimport Network
from trouter.core.ports cimport DeliverySource
from trouter.core.tracing cimport Span, Tracing
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport Delivery, LinkPort
from trouter.wire cimport octets
from trouter.wire.sections cimport MessageScan

cdef Py_ssize_t _MAX_HEAD_BYTES
cdef int _THROUGH_ANNOTATIONS
cdef int _THROUGH_PROPERTIES


cdef class IncomingEndpoint(DeliverySource):
    cdef public IncomingLink link
    cdef public AddressEntry entry
    cdef public CreditAccount account
    cdef public Frames frames
    cdef public Settlement settlement
    cdef public object tap
    cdef public MessageCheck check
    cdef public AnnotationRewriter rewriter
    cdef public object table
    cdef dict _known
    cdef int _known_phase
    cdef public bint is_fallback
    cdef public AddressCounters totals
    cdef public Py_ssize_t identity
    cdef public double attached_at_s
    cdef public object pace
    cdef public tuple source

    cpdef comes_from(self, trunk)
    cpdef comes_from_edge(self)
    cpdef destination_appeared(self)
    cpdef bint is_gathering(self) except -1
    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery, message=Message, account=CreditAccount, was_settled=bint, ready=bint, whole=bytes, traced=bytes)
    cpdef on_transfer(self, LinkPort link, Delivery arrived, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(tracing=Tracing, place=Py_ssize_t, span=Span)
    cdef bytes _begin_span(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef _note_received(self, Message message, bytes whole)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_aborted(self, LinkPort link, Delivery arrived)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_disposition(self, Delivery arrived)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_refused(self, LinkPort link, Delivery arrived)
    cpdef lose_link(self, list own=*)
    cpdef accept_delivery(self, IncomingDelivery delivery)
    cpdef answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled)
    @cython.locals(read=bytes, arrival=Arrival, entry=AddressEntry, annotations=CachedAnnotations, presettled=bint, forwarder=Forwarder, copies=Copies)
    cdef _route_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(scan=MessageScan, check=MessageCheck, annotations=CachedAnnotations, depth=int, inspected=bytes)
    cdef bytes _read_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(max_bytes=Py_ssize_t)
    cdef bint _waits_for_more(self, AddressEntry entry, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1
    @cython.locals(fallback=AddressEntry, kept=Message, copies=Copies)
    cdef bint _forward_to_fallback(self, IncomingDelivery delivery, AddressEntry entry, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1
    cdef _count_entered(self, AddressEntry entry)
    @cython.locals(network=Network, rewriter=AnnotationRewriter, trace=tuple)
    cdef bint _came_too_far(self, CachedAnnotations annotations)
    @cython.locals(scan=MessageScan, text=bytes, entry=AddressEntry, phase=int, check=MessageCheck)
    cdef AddressEntry _find_entry(self, IncomingDelivery delivery, Message message, bytes data, CachedAnnotations annotations)
    cdef AddressEntry _look_up_way(self, IncomingDelivery delivery, Message message, bytes text)
    @cython.locals(message=Message)
    cpdef Message build_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(message=Message)
    cdef Message _keep_message(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(annotations=CachedAnnotations, section=bytes)
    cpdef bytes write_head(self, Message message, bytes head, bint strips_annotations)
    @cython.locals(head=bytes, section=bytes)
    cpdef bytes write_onward(self, Message message, str to, int phase)
    @cython.locals(arrival=Arrival, annotations=CachedAnnotations, section=bytes)
    cpdef bytes write_whole(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint strips_annotations)

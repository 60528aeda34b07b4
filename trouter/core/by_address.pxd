cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters, Copies
from trouter.core.entry cimport AddressEntry
from trouter.core.forwarders cimport Forwarder
from trouter.core.ingress cimport Destination, Ingress
from trouter.core.message cimport AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message
from trouter.core.network cimport Network
from trouter.core.tracing cimport Span, Tracing
from trouter.wire cimport octets
from trouter.wire.sections cimport MessageScan

cdef Py_ssize_t _MAX_HEAD_BYTES
cdef int _THROUGH_ANNOTATIONS
cdef int _THROUGH_PROPERTIES


cdef class ByAddress(Destination):
    cdef public object table
    cdef public AddressCounters totals
    cdef public bint is_fallback
    cdef dict _known
    cdef int _known_phase

    cpdef come_from_neighbour(self)
    @cython.locals(presettled=bint)
    cpdef pass_on(self, Ingress ingress, Arrival arrival)
    @cython.locals(tracing=Tracing, place=Py_ssize_t, span=Span)
    cdef _begin_span(self, Ingress ingress, Arrival arrival)
    @cython.locals(complete=bint, depth=int)
    cdef bint _read_message(self, Ingress ingress, Arrival arrival) except -1
    @cython.locals(max_bytes=Py_ssize_t)
    cdef bint _waits_for_more(self, Ingress ingress, Arrival arrival, AddressEntry entry) except -1
    cdef bint _forward_to_fallback(self, Arrival arrival, AddressEntry entry) except -1
    cdef _count_entered(self, Ingress ingress, AddressEntry entry)
    @cython.locals(network=Network, trace=tuple)
    cdef bint _came_too_far(self, Ingress ingress, CachedAnnotations annotations) except -1
    @cython.locals(phase=int, entry=AddressEntry, text=bytes)
    cdef AddressEntry _find_entry(self, Ingress ingress, Arrival arrival)
    cdef AddressEntry _answer_unreachable(self, Ingress ingress, Arrival arrival, bytes text)
    cdef AddressEntry _look_up_way(self, Ingress ingress, Arrival arrival, bytes text)

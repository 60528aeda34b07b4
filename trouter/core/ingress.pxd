cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters, Copies
from trouter.core.intake cimport Intake
from trouter.core.message cimport IncomingDelivery, Message
from trouter.core.network cimport Network
from trouter.core.annotations cimport AnnotationRewriter, CachedAnnotations
from trouter.core.entry cimport AddressEntry
from trouter.wire cimport octets
from trouter.wire.sections cimport MessageScan

cdef Py_ssize_t _MAX_HEAD_BYTES
cdef int _THROUGH_ANNOTATIONS
cdef int _THROUGH_PROPERTIES


cdef class Ingress(Intake):
    cdef public Py_ssize_t identity
    cdef public double attached_at_s
    cdef public object pace
    cdef public object table
    cdef dict _known
    cdef int _known_phase
    cdef public bint is_fallback
    cdef public AddressCounters totals
    cdef MessageScan _scan
    cdef public AnnotationRewriter rewriter

    cpdef comes_from(self, trunk)
    cpdef comes_from_edge(self)
    @cython.locals(scan=MessageScan, entry=AddressEntry, annotations=CachedAnnotations, depth=int, inspected=bytes, max_bytes=Py_ssize_t)
    cdef _route(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    cdef _await_head(self, IncomingDelivery delivery, Message message)
    cdef _count(self, AddressEntry entry)
    @cython.locals(scan=MessageScan)
    cdef bytes _inspect(self, MessageCheck check, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, Message message)
    cdef bytes _stamp(self, MessageCheck check, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, bint complete)
    @cython.locals(network=Network, rewriter=AnnotationRewriter, trace=tuple)
    cdef bint _came_too_far(self, CachedAnnotations annotations)
    @cython.locals(scan=MessageScan, text=bytes, entry=AddressEntry, phase=int, check=MessageCheck)
    cdef AddressEntry _find(self, IncomingDelivery delivery, Message message, bytes data, CachedAnnotations annotations)
    cdef AddressEntry _look_up(self, IncomingDelivery delivery, Message message, bytes text)
    @cython.locals(presettled=bint, copies=Copies)
    cdef _forward(self, IncomingDelivery delivery, AddressEntry entry, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(message=Message)
    cpdef Message build_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(message=Message)
    cdef Message _keep(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(annotations=CachedAnnotations, section=bytes)
    cpdef bytes write_head(self, Message message, bytes head, bint plain)
    @cython.locals(head=bytes, section=bytes)
    cpdef bytes write_onward(self, Message message, str to, int phase)
    @cython.locals(arrival=Arrival, annotations=CachedAnnotations, section=bytes)
    cpdef bytes write(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint plain)

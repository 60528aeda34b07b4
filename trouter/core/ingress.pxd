cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters
from trouter.core.intake cimport Intake
from trouter.core.message cimport Message
from trouter.core.network cimport Network
from trouter.core.passage cimport Marker, Passage
from trouter.core.record cimport Record
from trouter.engine.ports cimport Delivery
from trouter.wire cimport octets
from trouter.wire.sections cimport MessageScan

cdef Py_ssize_t _MAX_HEAD_BYTES
cdef int _THROUGH_ANNOTATIONS
cdef int _THROUGH_PROPERTIES
cdef int _DEFAULT_PRIORITY
cdef int _HIGHEST_PRIORITY


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
    cdef public Marker marker

    cpdef comes_from(self, trunk)
    cpdef comes_from_edge(self)
    @cython.locals(arrival=Arrival, scan=MessageScan, record=Record, passage=Passage, depth=int, check=MessageCheck, priority=int, inspected=bytes, most=Py_ssize_t)
    cdef _route(self, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(scan=MessageScan)
    cdef bytes _inspect(self, MessageCheck check, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, Message message)
    cdef bytes _stamp(self, MessageCheck check, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, bint complete)
    @cython.locals(network=Network, marker=Marker, trace=tuple)
    cdef bint _came_too_far(self, Passage passage)
    @cython.locals(scan=MessageScan, text=bytes, record=Record, phase=int, check=MessageCheck)
    cdef Record _find(self, Delivery delivery, Message message, bytes data, Passage passage)
    cdef Record _look_up(self, Delivery delivery, Message message, bytes text)
    @cython.locals(presettled=bint, count=Py_ssize_t, inside=Py_ssize_t, through=Py_ssize_t)
    cdef _forward(self, Delivery delivery, Record record, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(message=Message)
    cpdef Message build_message(self, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(message=Message)
    cdef Message _keep(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(passage=Passage, section=bytes)
    cpdef bytes write_head(self, Message message, bytes head, bint plain)
    @cython.locals(head=bytes, section=bytes)
    cpdef bytes write_onward(self, Message message, str to, int phase)
    @cython.locals(arrival=Arrival, passage=Passage, section=bytes)
    cpdef bytes write(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint plain)

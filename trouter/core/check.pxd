cimport cython

from trouter.core.arrival cimport Arrival
from trouter.wire cimport octets
from trouter.wire.order cimport SectionOrder
from trouter.wire.sections cimport MessageScan


@cython.final
cdef class MessageCheck:
    cdef public bytes user
    cdef public bytes stamp
    cdef public object notify
    cdef public SectionOrder order
    cdef object _may_send
    cdef dict _known

    @cython.locals(user_id=bytes, data=bytes)
    cpdef bint inspect_message(self, MessageScan scan, Arrival arrival, int depth) except -1
    cpdef bint allows_address(self, bytes address) except -1
    cdef bint _judge_address(self, bytes address) except -1

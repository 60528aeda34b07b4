cimport cython

from trouter.core.message cimport Message
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

    cpdef bytes inspect_message(self, MessageScan scan, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, bint complete, Message message)
    cpdef bint is_own(self, bytes data, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef bint allows_address(self, bytes address) except -1
    cdef bint _judge_address(self, bytes address) except -1

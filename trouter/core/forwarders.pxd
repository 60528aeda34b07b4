cimport cython

from trouter.core.egress cimport Egress
from trouter.core.message cimport Message
from trouter.core.ports cimport InEndpoint
from trouter.engine.ports cimport Delivery

cdef Py_ssize_t _LOOKS


cdef class Forwarder:
    cdef public list consumers
    cdef public list subscriptions
    cdef public Py_ssize_t inside
    cdef Py_ssize_t _turn
    cdef Py_ssize_t _turn_inside

    cpdef add(self, Egress egress)
    cpdef remove(self, Egress egress)
    cpdef int forward(self, InEndpoint source, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1
    @cython.locals(out=Delivery)
    cdef int _to_inside(self, InEndpoint source, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1


cdef class Closest(Forwarder):
    @cython.locals(count=Py_ssize_t, egress=Egress, out=Delivery)
    cpdef int forward(self, InEndpoint source, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1


cdef class Balanced(Forwarder):
    @cython.locals(count=Py_ssize_t, chosen=Egress, out=Delivery)
    cpdef int forward(self, InEndpoint source, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1
    @cython.locals(best=Egress, egress=Egress, best_load=Py_ssize_t, load=Py_ssize_t, best_eligible=bint, eligible=bint, position=Py_ssize_t, looks=Py_ssize_t)
    cdef Egress _least_loaded(self, Py_ssize_t count)


cdef class Multicast(Forwarder):
    @cython.locals(count=Py_ssize_t, unsettled=bint, egress=Egress, out=Delivery)
    cpdef int forward(self, InEndpoint source, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message) except -1

cimport cython

from trouter.core.counters cimport Copies
from trouter.core.egress cimport Egress
from trouter.core.message cimport IncomingDelivery, Message, OutgoingDelivery, Outstanding
from trouter.core.network cimport Network, RemoteRouter, Trunk
from trouter.core.ports cimport InEndpoint

cdef Py_ssize_t _LOOKS
cdef Py_ssize_t _MAX_ORIGINS
cdef Copies _NONE
cdef Copies _ONE_HERE
cdef Copies _ONE_INSIDE
cdef Copies _ONE_ACROSS


cdef class Forwarder:
    cdef public list consumers
    cdef public list subscriptions
    cdef public list remotes
    cdef public bint standing
    cdef Py_ssize_t _turn
    cdef Py_ssize_t _turn_inside
    cdef Py_ssize_t _turn_across
    cdef Py_ssize_t _generation
    cdef list _nearest
    cdef dict _across
    cdef dict _candidates

    @cython.locals(count=Py_ssize_t)
    cpdef Py_ssize_t count_destinations(self)
    cpdef add(self, Egress egress)
    cpdef remove(self, Egress egress)
    cpdef add_remote(self, RemoteRouter router)
    cpdef remove_remote(self, RemoteRouter router)
    cdef _work_out(self, Network network)
    cpdef Copies forward_message(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    cpdef Py_ssize_t bytes_to_gather(self, bytes data, Py_ssize_t start, Py_ssize_t end) except -1
    cdef Copies _to_inside(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(network=Network, count=Py_ssize_t, looks=Py_ssize_t, router=RemoteRouter, egress=Egress)
    cdef Copies _to_nearest(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)


cdef Egress _way(Trunk trunk, InEndpoint source, Message message)


cdef class Closest(Forwarder):
    @cython.locals(egress=Egress)
    cpdef Copies forward_message(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(count=Py_ssize_t, looks=Py_ssize_t, egress=Egress)
    cdef Egress _next_here(self, InEndpoint source)


cdef class Balanced(Forwarder):
    @cython.locals(chosen=Egress)
    cpdef Copies forward_message(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(best=Egress, egress=Egress, best_load=Py_ssize_t, load=Py_ssize_t, best_eligible=bint, eligible=bint, position=Py_ssize_t, looks=Py_ssize_t)
    cdef Egress _least_loaded(self, InEndpoint source, Py_ssize_t count)
    @cython.locals(count=Py_ssize_t, egress=Egress)
    cdef Egress _best_here(self, InEndpoint source)
    cdef list _find_candidates(self, InEndpoint source)
    @cython.locals(best=Egress, way=Trunk, trunk=Trunk, best_load=Py_ssize_t, load=Py_ssize_t, best_eligible=bint, eligible=bint, router=RemoteRouter, outstanding=Outstanding, under_way=Outstanding, out=OutgoingDelivery)
    cdef Copies _weigh(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)


cdef class Multicast(Forwarder):
    @cython.locals(network=Network, trunks=list, ways=list, trunk=Trunk, egress=Egress)
    cdef list _find_across(self, InEndpoint source, Message message)
    @cython.locals(egress=Egress)
    cdef bint _goes_up(self, Egress uplink)
    @cython.locals(copies=Copies, egress=Egress, uplink=Egress, out=OutgoingDelivery, across=list, here=list)
    cpdef Copies forward_message(self, InEndpoint source, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)

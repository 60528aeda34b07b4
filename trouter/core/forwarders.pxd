cimport cython

from trouter.core.arrival cimport Arrival, DeliverySource
from trouter.core.counters cimport Copies
from trouter.core.outgoing cimport OutgoingEndpoint
from trouter.core.message cimport Message, OutgoingDelivery, Outstanding
from trouter.core.network cimport Network, RemoteRouter, Trunk

cdef Py_ssize_t _LOOKS
cdef Py_ssize_t _MAX_ORIGINS
cdef Copies _NONE
cdef Copies _ONE_HERE
cdef Copies _ONE_INSIDE
cdef Copies _ONE_ACROSS


cdef list _NO_SUBSCRIPTIONS
cdef list _NO_ROUTERS
cdef dict _NO_WAYS
cdef dict _NO_CANDIDATES


cdef class Forwarder:
    cdef OutgoingEndpoint _sole
    cdef public list remotes
    cdef public list siblings
    cdef public list subscriptions
    cdef public list consumers
    cdef public bint is_exchange
    cdef Py_ssize_t _turn
    cdef Py_ssize_t _turn_inside
    cdef Py_ssize_t _turn_across
    cdef Py_ssize_t _generation
    cdef list _nearest
    cdef dict _across
    cdef dict _candidates

    @cython.locals(count=Py_ssize_t)
    cpdef Py_ssize_t count_destinations(self)
    cpdef bint has_destinations(self)
    cpdef add(self, OutgoingEndpoint outgoing)
    cpdef remove(self, OutgoingEndpoint outgoing)
    cdef _note_sole(self)
    cpdef add_remote(self, RemoteRouter router)
    cpdef remove_remote(self, RemoteRouter router)
    cdef _work_out(self, Network network)
    cpdef Copies forward(self, Arrival arrival)
    cpdef Py_ssize_t bytes_to_gather(self, Arrival arrival) except -1
    cdef Copies _to_inside(self, Arrival arrival)
    @cython.locals(network=Network, count=Py_ssize_t, looks=Py_ssize_t, router=RemoteRouter, outgoing=OutgoingEndpoint)
    cdef Copies _to_nearest(self, Arrival arrival)


cdef OutgoingEndpoint _way(Trunk trunk, Arrival arrival)


cdef class Closest(Forwarder):
    @cython.locals(outgoing=OutgoingEndpoint)
    cpdef Copies forward(self, Arrival arrival)
    @cython.locals(count=Py_ssize_t, looks=Py_ssize_t, outgoing=OutgoingEndpoint)
    cdef OutgoingEndpoint _next_here(self, Arrival arrival)
    @cython.locals(origin=Trunk, sibling=RemoteRouter, place=Py_ssize_t)
    cdef OutgoingEndpoint _next_sibling(self, Arrival arrival)


cdef class Balanced(Forwarder):
    @cython.locals(chosen=OutgoingEndpoint)
    cpdef Copies forward(self, Arrival arrival)
    @cython.locals(best=OutgoingEndpoint, outgoing=OutgoingEndpoint, best_load=Py_ssize_t, load=Py_ssize_t, best_eligible=bint, eligible=bint, position=Py_ssize_t, looks=Py_ssize_t)
    cdef OutgoingEndpoint _least_loaded(self, Arrival arrival, Py_ssize_t count)
    @cython.locals(count=Py_ssize_t, outgoing=OutgoingEndpoint)
    cdef OutgoingEndpoint _best_here(self, Arrival arrival)
    cdef list _find_candidates(self, Arrival arrival)
    @cython.locals(best=OutgoingEndpoint, way=Trunk, trunk=Trunk, best_load=Py_ssize_t, load=Py_ssize_t, best_eligible=bint, eligible=bint, router=RemoteRouter, outstanding=Outstanding, under_way=Outstanding, out=OutgoingDelivery)
    cdef Copies _weigh(self, Arrival arrival)


cdef class Multicast(Forwarder):
    @cython.locals(network=Network, trunks=list, ways=list, trunk=Trunk, outgoing=OutgoingEndpoint)
    cdef list _find_across(self, Arrival arrival)
    @cython.locals(outgoing=OutgoingEndpoint)
    cdef bint _goes_up(self, OutgoingEndpoint uplink)
    @cython.locals(copies=Copies, outgoing=OutgoingEndpoint, uplink=OutgoingEndpoint, out=OutgoingDelivery, across=list, here=list)
    cpdef Copies forward(self, Arrival arrival)

cimport cython

from trouter.core.outgoing cimport OutgoingEndpoint
from trouter.core.message cimport Outstanding

cdef Py_ssize_t _LAST
cdef Py_ssize_t _MAX_ORIGINS


@cython.final
cdef class Trunk:
    cdef public Py_ssize_t number
    cdef public object engine
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t cost
    cdef public str neighbour
    cdef public str name
    cdef public bint to_sibling
    cdef public str remote_container
    cdef public object control_in
    cdef public OutgoingEndpoint control_out
    cdef public Py_ssize_t data_in
    cdef public Py_ssize_t came
    cdef public object log
    cdef public object stream_pool
    cdef list _senders
    cdef dict _places
    cdef list _ladder
    cdef public dict outstanding

    cpdef OutgoingEndpoint link_for(self, Py_ssize_t priority)
    cpdef Outstanding outstanding_of(self, object forwarder)


@cython.final
cdef class RemoteRouter:
    cdef public str id
    cdef public bint sibling
    cdef public Py_ssize_t index
    cdef public Trunk trunk
    cdef public Py_ssize_t cost
    cdef public dict addresses


@cython.final
cdef class Network:
    cdef public object table
    cdef public frozenset siblings
    cdef public dict routers
    cdef public Py_ssize_t radius
    cdef public Py_ssize_t generation
    cdef list _freed
    cdef dict _trunks
    cdef public dict stream_pools
    cdef object _ways
    cdef dict _beyond
    cdef public object local_listeners
    cdef list _route_listeners
    cdef list _trunk_listeners

    cpdef frozenset routers_beyond(self, str origin)

cdef bint _is_incoming(endpoint)
cdef bint _is_outgoing(endpoint)

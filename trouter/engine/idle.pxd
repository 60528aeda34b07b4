cimport cython

@cython.final
cdef class IdleTimeouts:
    cdef public double local_timeout_s
    cdef public double remote_timeout_s
    cdef public bint received
    cdef double _received_at_s

cdef class WaitingPlace:
    cdef object _runner
    cdef object _serve_round
    cdef object _own
    cdef bint _woken
    cdef readonly int descriptor

    cpdef get_events(self, double timeout)
    cdef double _until_others_s(self) except? -1

cdef class Fanout:
    cdef public Py_ssize_t outcomes_open
    cdef public Py_ssize_t copies_open
    cdef int _best

    cpdef add_outcome(self, int code)

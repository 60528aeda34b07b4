cimport cython

cdef Py_ssize_t _FAMILIES
cdef Py_ssize_t _KINDS
cdef Py_ssize_t _BOUNDS
cdef Py_ssize_t _SLOTS
cdef Py_ssize_t _FIRST


cdef class Latency:
    cdef double[13] _bounds
    cdef Py_ssize_t[350] _counts
    cdef double[25] _sums

    @cython.locals(kind=Py_ssize_t, slot=Py_ssize_t, row=Py_ssize_t)
    cpdef count(self, Py_ssize_t family, int code, double age_s)


cdef class Outcomes:
    cdef public Latency latency
    cdef Py_ssize_t[5] presettled
    cdef Py_ssize_t[5] dropped

cimport cython

cdef Py_ssize_t _BITS
cdef long long _SMALL

@cython.locals(shift=int)
cpdef Py_ssize_t bucket_of(long long value) except -1

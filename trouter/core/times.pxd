cimport cython

from trouter.core.record cimport Record

cdef long long _SMALL
cdef int _SMALL_BITS


cdef class Times:
    cdef public dict buckets
    cdef public long long smallest
    cdef public long long largest

    @cython.locals(bucket=cython.longlong, shift=int)
    cpdef add(self, long long microseconds)


cdef class TimesByAddress:
    cdef public Py_ssize_t most
    cdef list _records

    @cython.locals(times=Times)
    cpdef count(self, Record record, double age_s)

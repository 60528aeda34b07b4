cimport cython

from trouter.records.sketch cimport bucket_of


@cython.final
cdef class Times:
    cdef public list counts
    cdef public long long smallest
    cdef public long long largest

    @cython.locals(bucket=Py_ssize_t, counts=list)
    cpdef add_latency(self, long long microseconds)


@cython.final
cdef class TimesByAddress:
    cdef public Py_ssize_t max_addresses
    cdef list _entries

    @cython.locals(times=Times)
    cpdef count_delivery(self, entry, double age_s)

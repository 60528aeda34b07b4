cimport cython

cdef Py_ssize_t _MAX_ORIGINS


@cython.final
cdef class Counters:
    cdef public Py_ssize_t deliveries
    cdef public Py_ssize_t presettled
    cdef public Py_ssize_t dropped_presettled
    cdef public Py_ssize_t accepted
    cdef public Py_ssize_t rejected
    cdef public Py_ssize_t released
    cdef public Py_ssize_t modified
    cdef public Py_ssize_t undeliverable
    cdef public Py_ssize_t delayed_1s
    cdef public Py_ssize_t delayed_10s

    cpdef count_outcome(self, int code, double age_s)


@cython.final
cdef class AddressCounters:
    cdef public Py_ssize_t ingress
    cdef public Py_ssize_t egress
    cdef public Py_ssize_t transit
    cdef public Py_ssize_t to_container
    cdef public Py_ssize_t from_container
    cdef public Py_ssize_t redirected
    cdef public Py_ssize_t ingress_container
    cdef public Py_ssize_t egress_container

    cpdef add_copies(self, Copies copies)


@cython.final
cdef class Copies:
    cdef public Py_ssize_t here
    cdef public Py_ssize_t inside
    cdef public Py_ssize_t across
    cdef public Py_ssize_t total


@cython.final
cdef class OriginTally:
    cdef public Py_ssize_t count


@cython.final
cdef class Origins:
    cdef public dict tallies
    cdef str _last
    cdef OriginTally _last_tally

    @cython.locals(tally=OriginTally)
    cpdef count_origin(self, str origin)


cdef Py_ssize_t _FAMILIES
cdef Py_ssize_t _KINDS
cdef Py_ssize_t _BOUNDS
cdef Py_ssize_t _SLOTS
cdef Py_ssize_t _FIRST


@cython.final
cdef class Latency:
    cdef double[13] _bounds
    cdef Py_ssize_t[350] _counts
    cdef double[25] _sums

    @cython.locals(kind=Py_ssize_t, slot=Py_ssize_t, row=Py_ssize_t)
    cpdef count_delivery(self, Py_ssize_t address_class, int code, double age_s)


@cython.final
cdef class Outcomes:
    cdef public Latency latency
    cdef Py_ssize_t[5] presettled
    cdef Py_ssize_t[5] dropped

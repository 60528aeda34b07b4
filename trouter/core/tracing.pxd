cimport cython

from trouter.wire cimport octets
from trouter.wire.trace_context cimport TraceContextScan

cdef Py_ssize_t _UNREADABLE, _HALF, _FLAGS
cdef dict _OUTCOMES


cdef class Span:
    cdef object _began_ns
    cdef Tracing _tracing
    cdef tuple _source
    cdef public bytes trace_id
    cdef public bytes parent
    cdef public bytes state
    cdef public bytes span_id
    cdef public str address

    cpdef end(self, int code)


cdef class Tracing:
    cdef bytes _bound
    cdef list _ended
    cdef Py_ssize_t _left
    cdef Py_ssize_t _one_in
    cdef object _notify
    cdef readonly object describe_source
    cdef TraceContextScan _scan
    cdef readonly bint propagates
    cdef public Py_ssize_t dropped

    @cython.locals(place=Py_ssize_t, flags=Py_ssize_t)
    cpdef Py_ssize_t find_context(self, arrival) except? -3
    @cython.locals(context=bytes)
    cpdef Span begin_span(self, arrival, Py_ssize_t place, tuple source)
    cpdef bytes write_context(self, Span span, arrival)
    cpdef keep_ended(self, tuple span)
    cpdef list take_ended(self)

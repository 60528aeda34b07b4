cimport cython

from trouter.core.counters cimport Latency, Outcomes
from trouter.wire.sections cimport MessageScan


@cython.final
cdef class SharedState:
    cdef public bint stopping
    cdef public bint leaving
    cdef public object network
    cdef public object uplink
    cdef public object times
    cdef public object tracing
    cdef public MessageScan scan
    cdef public MessageScan anonymous_scan
    cdef public double now_s
    cdef public Py_ssize_t overdrawn
    cdef public list overdrawing
    cdef public dict owed_accounts
    cdef public object owed_listeners
    cdef public Outcomes outcomes
    cdef public Latency latency

    cpdef note_owed(self, incoming)

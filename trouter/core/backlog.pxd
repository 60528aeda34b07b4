cimport cython

from trouter.core.counters cimport Counters
from trouter.core.message cimport OutgoingDelivery
from trouter.core.ports cimport Pulse
from trouter.engine.link cimport OutgoingLink
from trouter.engine.ports cimport LinkSink


cdef class Backlog(LinkSink):
    cdef public OutgoingLink link
    cdef public Pulse pulse
    cdef public object queue
    cdef public Py_ssize_t backlog
    cdef Py_ssize_t _dropped
    cdef list _presettled
    cdef public Counters counters
    cdef public Py_ssize_t family
    cdef public object pool

    cdef bint _is_next(self, OutgoingDelivery out)
    cdef _take_next(self)
    @cython.locals(out=OutgoingDelivery)
    cdef _pass_dropped(self)
    cdef _take_out(self, OutgoingDelivery out)
    @cython.locals(waiting=OutgoingDelivery)
    cdef _drop_presettled(self)
    cdef _may_drop(self, OutgoingDelivery out)
    cdef _count_dropped(self)

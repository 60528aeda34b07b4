cimport cython

from trouter.core.counters cimport Counters
from trouter.core.ports cimport Pulse
from trouter.engine.link cimport OutgoingLink
from trouter.engine.ports cimport Delivery, LinkSink


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

    cdef bint _is_next(self, Delivery out)
    cdef _take_next(self)
    @cython.locals(out=Delivery)
    cdef _pass_dropped(self)
    cdef _take_out(self, Delivery out)
    @cython.locals(waiting=Delivery)
    cdef _drop_presettled(self)
    cdef _may_drop(self, Delivery out)
    cdef _count_dropped(self)

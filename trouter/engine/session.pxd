cimport cython

from trouter.engine.ports cimport ConnectionPort, Delivery, LinkPort, SessionPort, SessionWindows
from trouter.engine.session_links cimport SessionLinks
from trouter.engine.unsettled cimport SessionDeliveries
from trouter.wire.outgoing cimport write_flow, write_link_flow
from trouter.wire.transfers cimport FlowReader

cdef Py_ssize_t _MAX_WINDOW
cdef list _NO_LINKS


cdef class Session(SessionPort):
    cdef public object limits
    cdef public SessionLinks links
    cdef public SessionDeliveries deliveries
    cdef public object state
    cdef public bint silent
    cdef public bint reported
    cdef public int remote_channel
    cdef public list waiting_links
    cdef public object holder
    cdef list _links_due
    cdef list _sessions_due
    cdef bint _marked
    cdef bint _flow_due

    @cython.locals(windows=SessionWindows, links=SessionLinks, link=LinkPort)
    cdef LinkPort admit_transfer(self, Py_ssize_t remote_handle)
    @cython.locals(windows=SessionWindows, shut=bint, link=LinkPort)
    cdef int receive_flow(self, FlowReader flow) except -1
    @cython.locals(windows=SessionWindows)
    cdef int write_link_flow(self, Py_ssize_t handle, Py_ssize_t delivery_count, Py_ssize_t credit, bint drain) except -1
    cpdef settle_incoming(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef settle_outgoing(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef release_bytes(self, Py_ssize_t count)
    cdef int request_flow(self, LinkPort link) except -1
    cdef int request_flush(self) except -1
    @cython.locals(windows=SessionWindows, link=LinkPort, due=list)
    cpdef flush(self)
    cdef int wait_for_room(self, LinkPort link) except -1
    @cython.locals(link=LinkPort, waiting=list, position=Py_ssize_t, full=bint)
    cpdef resume_links(self)

cimport cython

from trouter.engine.ports cimport LinkPort
from trouter.engine.session cimport Session
from trouter.engine.unsettled cimport SessionDeliveries


cdef class Link(LinkPort):
    # what each message reads or counts, in one cache line with the two fields of LinkPort
    cdef SessionDeliveries _deliveries
    cdef public bint attached
    cdef public bint flow_due
    cdef public Py_ssize_t handle
    cdef public Py_ssize_t credit
    cdef public Py_ssize_t delivery_count
    cdef public Py_ssize_t payload_bytes
    cdef public str name
    cdef public bint incoming
    cdef public Py_ssize_t remote_handle
    cdef public object remote_attach
    cdef public Py_ssize_t kept_bytes
    cdef public object state
    cdef public bint closed
    cdef public bint reported
    cdef public bint awaited
    cdef public object holder

    @cython.locals(session=Session)
    cpdef request_flow(self)
    @cython.locals(session=Session)
    cdef bint _write_flow(self, bint drain)

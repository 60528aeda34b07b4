cimport cython

from trouter.engine.ports cimport ConnectionPort, LinkPort
from trouter.wire.transfers cimport FlowReader, TransferReader

cdef list _NO_HANDLES


@cython.final
cdef class SessionLinks:
    cdef ConnectionPort _connection
    cdef list _spare_handles
    cdef public dict by_name
    cdef public dict by_handle
    cdef public dict by_remote_handle
    cdef public Py_ssize_t handle_max
    cdef public Py_ssize_t remote_handle_max
    cdef public Py_ssize_t refused_count
    cdef public LinkPort last_link
    cdef public Py_ssize_t last_handle

    cpdef LinkPort find_link(self, Py_ssize_t remote_handle, str performative)


cdef class RefusedLink(LinkPort):
    cdef public bint incoming
    cdef SessionLinks _links
    cdef Py_ssize_t _handle

    cpdef receive_transfer(self, TransferReader transfer, bytes data, Py_ssize_t end)
    cpdef receive_flow(self, FlowReader flow)

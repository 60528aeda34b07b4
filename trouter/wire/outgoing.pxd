cimport cython

from trouter.wire cimport octets

cdef int _ID
cdef int _TAG
cdef int _SETTLED
cdef int _MORE
cdef int _MORE_AGAIN


@cython.final
cdef class TransferWriter:
    cdef int _channel
    cdef Py_ssize_t _handle
    cdef bytearray _first
    cdef bytearray _again

    @cython.locals(head=bytearray)
    cpdef write_first_frame(self, bytearray out, Py_ssize_t delivery_id, Py_ssize_t number, bint settled, bint more, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(head=bytearray)
    cpdef write_next_frame(self, bytearray out, bint more, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(size=Py_ssize_t, body=bytes)
    cpdef write_general_frame(self, bytearray out, Py_ssize_t delivery_id, bytes tag, Py_ssize_t message_format, bint settled, bint more, bytes state, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef write_abort(self, bytearray out)


cpdef write_disposition(bytearray out, int channel, bint role, Py_ssize_t first, Py_ssize_t last, bint settled, bytes state)
cpdef write_flow(bytearray out, int channel, Py_ssize_t next_incoming_id, Py_ssize_t incoming_window, Py_ssize_t next_outgoing_id, Py_ssize_t outgoing_window)
cpdef write_link_flow(bytearray out, int channel, Py_ssize_t next_incoming_id, Py_ssize_t incoming_window, Py_ssize_t next_outgoing_id, Py_ssize_t outgoing_window, Py_ssize_t handle, Py_ssize_t delivery_count, Py_ssize_t link_credit, bint drain)

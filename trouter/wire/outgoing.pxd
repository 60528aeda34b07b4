cimport cython

from trouter.wire cimport octets

cdef Py_ssize_t _CHANNEL
cdef Py_ssize_t _HANDLE
cdef Py_ssize_t _ID
cdef Py_ssize_t _TAG
cdef Py_ssize_t _SETTLED
cdef Py_ssize_t _MORE
cdef Py_ssize_t _MORE_AGAIN
cdef Py_ssize_t _FIRST_OVERHEAD
cdef Py_ssize_t _AGAIN_OVERHEAD
cdef Py_ssize_t _LIST_BYTES
cdef Py_ssize_t _LIST_COUNT
cdef Py_ssize_t _ROLE
cdef Py_ssize_t _FIRST_ID
cdef Py_ssize_t _LAST_ID
cdef Py_ssize_t _RANGE_SETTLED
cdef Py_ssize_t _DISPOSITION_BYTES
cdef Py_ssize_t _MAX_SHORT_STATE
cdef bytes _DISPOSITION
cdef bytes _FIRST
cdef bytes _AGAIN


@cython.locals(at=Py_ssize_t, body=Py_ssize_t)
cpdef write_first_frame(bytearray out, int channel, Py_ssize_t handle, Py_ssize_t delivery_id, Py_ssize_t number, bint settled, bint more, bytes data, Py_ssize_t start, Py_ssize_t end)
@cython.locals(at=Py_ssize_t, body=Py_ssize_t)
cpdef write_next_frame(bytearray out, int channel, Py_ssize_t handle, bint more, bytes data, Py_ssize_t start, Py_ssize_t end)
@cython.locals(size=Py_ssize_t, body=bytes)
cpdef write_general_frame(bytearray out, int channel, Py_ssize_t handle, Py_ssize_t delivery_id, bytes tag, Py_ssize_t message_format, bint settled, bint more, bytes state, bytes data, Py_ssize_t start, Py_ssize_t end)
cpdef write_abort(bytearray out, int channel, Py_ssize_t handle)
@cython.locals(size=Py_ssize_t, at=Py_ssize_t)
cpdef write_disposition(bytearray out, int channel, bint role, Py_ssize_t first, Py_ssize_t last, bint settled, bytes state)
cpdef write_flow(bytearray out, int channel, Py_ssize_t next_incoming_id, Py_ssize_t incoming_window, Py_ssize_t next_outgoing_id, Py_ssize_t outgoing_window)
cpdef write_link_flow(bytearray out, int channel, Py_ssize_t next_incoming_id, Py_ssize_t incoming_window, Py_ssize_t next_outgoing_id, Py_ssize_t outgoing_window, Py_ssize_t handle, Py_ssize_t delivery_count, Py_ssize_t link_credit, bint drain)

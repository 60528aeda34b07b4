cdef Py_ssize_t _MASK32


cdef class Settlements:
    cdef bint _role
    cdef Py_ssize_t _first
    cdef Py_ssize_t _last
    cdef bint _settled
    cdef bytes _state
    cdef public bint pending

    cpdef add(self, bytearray out, int channel, Py_ssize_t delivery_id, bytes state, bint settled)
    cpdef write(self, bytearray out, int channel)

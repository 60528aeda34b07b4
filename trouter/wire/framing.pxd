cimport cython

from trouter.wire cimport octets

cdef Py_ssize_t _HEADER_BYTES

@cython.final
cdef class FrameReader:
    cdef public Py_ssize_t max_frame_bytes
    cdef public bytes data
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef public int channel
    cdef public int frame_type
    cdef bytes _input
    cdef Py_ssize_t _offset
    cdef bytearray _carry
    cdef Py_ssize_t _wanted

    cpdef add_bytes(self, bytes data)
    cpdef Py_ssize_t count_pending_bytes(self)
    cpdef bytes peek_bytes(self, Py_ssize_t count)
    cpdef bytes take_bytes(self, Py_ssize_t count)
    @cython.locals(offset=Py_ssize_t, left=Py_ssize_t, size=Py_ssize_t)
    cpdef int next_frame(self) except -1
    @cython.locals(missing=Py_ssize_t, taken=Py_ssize_t, size=Py_ssize_t)
    cdef int _finish_carried(self) except -1
    cdef _drop_input(self)
    @cython.locals(raw=cython.p_uchar, size=Py_ssize_t, data_offset=Py_ssize_t)
    cdef Py_ssize_t _read_header(self, bytes data, Py_ssize_t offset) except -1

cimport cython

from trouter.wire.codec cimport be32

cdef Py_ssize_t _FIRST, _DATA, _SEQUENCE, _FOOTER, _MAX_HEAD_BYTES
cdef bytes _ZERO_WIDE


cdef class SectionOrder:
    cdef Py_ssize_t _left
    cdef Py_ssize_t _values
    cdef Py_ssize_t _last
    cdef bytes _cut

    cpdef begin_message(self)
    cpdef check_message(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(offset=Py_ssize_t, behind=Py_ssize_t)
    cpdef check_bytes(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint complete)
    @cython.locals(octets=cython.p_uchar, offset=Py_ssize_t, last=Py_ssize_t, code=Py_ssize_t, kind=Py_ssize_t)
    cdef bint _is_plain(self, bytes data, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(constructor=Py_ssize_t, code=Py_ssize_t, behind=Py_ssize_t, name=Py_ssize_t)
    cdef Py_ssize_t _read_descriptor(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except? -3
    @cython.locals(last=Py_ssize_t, again=bint)
    cdef object _check_order(self, Py_ssize_t code, Py_ssize_t offset)
    @cython.locals(constructor=Py_ssize_t, kind=Py_ssize_t)
    cdef Py_ssize_t _read_value_head(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except? -3

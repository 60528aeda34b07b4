cimport cython

from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _MAX_TEXT_BYTES, _MAX_NESTING, _LIST0
cdef list _KINDS
cdef list _TEXTS
cdef dict _WITHOUT_OCTETS


cdef class ValueReader:
    cdef Py_ssize_t _zero_width_left
    cdef readonly bytes kind
    cdef readonly bytes text

    @cython.locals(code=Py_ssize_t, behind=Py_ssize_t, out=bytearray, text=bytes, number=Py_ssize_t)
    cpdef Py_ssize_t read(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    cpdef Py_ssize_t json(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(code=Py_ssize_t)
    cdef Py_ssize_t _json(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth) except -1
    @cython.locals(kind=bytes, behind=Py_ssize_t, text=str)
    cdef Py_ssize_t _content(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth, Py_ssize_t code) except -1
    @cython.locals(width=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _compound(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth, Py_ssize_t code) except -1
    @cython.locals(index=Py_ssize_t)
    cdef Py_ssize_t _list(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth, Py_ssize_t count) except -1
    @cython.locals(index=Py_ssize_t)
    cdef Py_ssize_t _map(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth, Py_ssize_t count) except -1
    @cython.locals(descriptors=bytearray, code=Py_ssize_t, kind=bytes, index=Py_ssize_t)
    cdef Py_ssize_t _array(self, bytearray out, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth, Py_ssize_t count) except -1

@cython.locals(group=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _behind(bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t code) except -1
@cython.locals(group=Py_ssize_t, start=Py_ssize_t)
cdef str _scalar(bytes data, Py_ssize_t offset, Py_ssize_t behind, Py_ssize_t code)

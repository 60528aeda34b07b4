cimport cython

from trouter.wire cimport octets
from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _CONTEXT, _ABSENT, _UNREADABLE, _ANNOTATIONS, _PROPERTIES, _SEARCHED
cdef bytes _PARENT


cdef class TraceContextScan:
    cdef Py_ssize_t _annotations_start
    cdef Py_ssize_t _annotations_end
    cdef Py_ssize_t _insert_at
    cdef Py_ssize_t _items
    cdef Py_ssize_t _behind
    cdef bint _writable

    @cython.locals(offset=Py_ssize_t, before=Py_ssize_t, code=Py_ssize_t, kind=Py_ssize_t, size=Py_ssize_t, behind=Py_ssize_t, items=Py_ssize_t, last=Py_ssize_t, place=Py_ssize_t)
    cpdef Py_ssize_t find_context(self, bytes data, Py_ssize_t start, Py_ssize_t end) except? -3
    cdef Py_ssize_t _value_behind(self, bytes data, Py_ssize_t place) except? -3
    cpdef bytes read_context(self, bytes data, Py_ssize_t place)
    @cython.locals(index=Py_ssize_t, zeros=Py_ssize_t, octet=Py_ssize_t)
    cdef bint _has_form(self, bytes data, Py_ssize_t place) except -1
    @cython.locals(offset=Py_ssize_t, value=Py_ssize_t)
    cdef bint _is_value(self, bytes data, Py_ssize_t place) except -1
    cpdef bytes read_state(self, bytes data)
    cpdef bytes write_context(self, bytes data, Py_ssize_t start, Py_ssize_t end, bytes context, bytes state)

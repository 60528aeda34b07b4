cimport cython

from trouter_pipeline.columns cimport Numbers, Texts
from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _MASK32, _MAX_MS
cdef frozenset _KIND_NAMES

cpdef bytes typed_key(bytes key, bytes kind, bytes usual)
@cython.locals(code=Py_ssize_t)
cpdef Py_ssize_t content_of(bytes data, Py_ssize_t offset, Py_ssize_t behind, str name, Py_ssize_t short) except -1
@cython.locals(behind=Py_ssize_t, code=Py_ssize_t, text=bytes)
cpdef Py_ssize_t put_text(Texts column, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end, str name) except -1
@cython.locals(behind=Py_ssize_t, code=Py_ssize_t)
cpdef Py_ssize_t put_flag(Numbers column, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end, str name) except -1
@cython.locals(behind=Py_ssize_t, code=Py_ssize_t)
cpdef Py_ssize_t put_whole(Numbers column, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end, str name, bint wide) except -1
@cython.locals(behind=Py_ssize_t, high=Py_ssize_t, ms=Py_ssize_t)
cpdef Py_ssize_t put_time(Numbers column, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end, str name) except -1

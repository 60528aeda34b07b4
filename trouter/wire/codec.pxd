cimport cython

cdef Py_ssize_t _UNKNOWN, _BOOLEAN, _PREFIXED, _LIST0, _MAX_NESTING, _NULL, _TRUE, _FALSE
cdef bytes _SHAPES
cdef list _FROM_OCTETS, _OF_ONE_OCTET
cdef dict _CONSTANTS, _SMALL, _LARGE, _SHORT

@cython.final
cdef class Reader:
    cdef bytes data
    cdef readonly Py_ssize_t offset
    cdef Py_ssize_t end
    cdef Py_ssize_t zero_width_left
    cdef Py_ssize_t _nodes
    cdef Py_ssize_t _nodes_left

    @cython.locals(code=Py_ssize_t)
    cpdef object read_value(self, Py_ssize_t depth)
    cdef _count_values(self, Py_ssize_t values)
    cdef Py_ssize_t _read_code(self) except -1
    @cython.locals(offset=Py_ssize_t)
    cdef Py_ssize_t _read_number(self, Py_ssize_t width) except -1
    @cython.locals(start=Py_ssize_t, width=Py_ssize_t)
    cdef object _read_content(self, Py_ssize_t code, Py_ssize_t depth)
    @cython.locals(size=Py_ssize_t, outer_end=Py_ssize_t, count=Py_ssize_t)
    cdef object _read_compound(self, Py_ssize_t code, Py_ssize_t width, Py_ssize_t depth)
    @cython.locals(_=Py_ssize_t)
    cdef list _read_list(self, Py_ssize_t count, Py_ssize_t depth)
    @cython.locals(_=Py_ssize_t, start=Py_ssize_t)
    cdef object _read_map(self, Py_ssize_t count, Py_ssize_t depth)
    @cython.locals(_=Py_ssize_t, code=Py_ssize_t)
    cdef object _read_array(self, Py_ssize_t count, Py_ssize_t depth)

@cython.locals(number=Py_ssize_t)
cpdef Py_ssize_t be32(bytes data, Py_ssize_t offset) except? -1
cpdef Py_ssize_t skip(bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
@cython.locals(code=Py_ssize_t, width=Py_ssize_t)
cdef Py_ssize_t _skip(bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t depth) except -1

cdef bint _hashes_well(list pairs)

cpdef bytes encode(object value)
@cython.locals(octets=bytes, small=list)
cdef object _write(bytearray out, object value, Py_ssize_t depth)
@cython.locals(start=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
cdef object _write_list(bytearray out, list items, Py_ssize_t depth)
@cython.locals(body=bytearray, count=Py_ssize_t)
cdef tuple _prepare(object primitive, object value, Py_ssize_t depth)
cdef object _write_content(bytearray out, object primitive, object encoding, object content, Py_ssize_t count)
cdef object _write_array(bytearray out, object array, Py_ssize_t depth)

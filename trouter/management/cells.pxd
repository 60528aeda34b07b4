cimport cython

cdef list _ULONGS
cdef list _UINTS
cdef list _STR8
cdef bytes _NULL
cdef bytes _TRUE
cdef bytes _FALSE
cdef bytes _EMPTY

@cython.locals(parts=list, content=bytes, size=Py_ssize_t, count=Py_ssize_t)
cpdef bytes encode_row(object cells)

@cython.locals(encoded=bytes)
cdef bytes _cell(object cell)

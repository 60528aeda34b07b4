cimport cython

cdef int _AS_IT_IS
cdef int _UINT
cdef int _ULONG
cdef int _LONG
cdef long long _MAX_UINT


cdef class Cell:
    cdef object read
    cdef int form

    cpdef value(self, owner, thing)


cdef class Rows:
    cdef object _owner
    cdef dict _cells

    @cython.locals(cell=Cell)
    cpdef dict row(self, thing)
    @cython.locals(cell=Cell)
    cpdef list cells(self, thing, names)
    @cython.locals(cell=Cell)
    cpdef value(self, thing, name)

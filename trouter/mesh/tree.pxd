cimport cython


cdef Py_ssize_t _BITS
cdef Py_ssize_t _MASK


cdef class Tree:
    cdef readonly Py_ssize_t count
    cdef long long[::1] _starts
    cdef long long[::1] _ends
    cdef long long[::1] _costs
    cdef public long long[::1] cost
    cdef public long long[::1] hops
    cdef public long long[::1] first
    cdef long long[::1] _beyond
    cdef long long[::1] _done
    cdef long long[::1] _heap
    cdef Py_ssize_t _heaped

    @cython.locals(
        found=list, router=Py_ssize_t, behind=Py_ssize_t, passed=bint, is_behind=Py_ssize_t, cost="long long",
        place=Py_ssize_t, end=Py_ssize_t, through="long long"
    )
    cpdef list grow(self, Py_ssize_t root, Py_ssize_t middle, bint whole)
    @cython.locals(place=Py_ssize_t, above=Py_ssize_t)
    cdef void _push(self, long long item)
    @cython.locals(
        least="long long", item="long long", last=Py_ssize_t, place=Py_ssize_t, below=Py_ssize_t
    )
    cdef long long _pop(self)

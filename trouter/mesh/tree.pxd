cimport cython


cdef int _HEAPS
cdef int _ROUND
cdef int _NONE


cdef class Tree:
    cdef readonly Py_ssize_t count
    cdef int[::1] _starts
    cdef int[::1] _ends
    cdef int[::1] _costs
    cdef public long long[::1] cost
    cdef public int[::1] hops
    cdef public int[::1] first
    cdef int[::1] _previous
    cdef int[::1] _beyond
    cdef int[::1] _who
    cdef long long[::1] _keys
    cdef int[::1] _following
    cdef int[::1] _heaps
    cdef bint _near

    @cython.locals(
        starts="int[::1]", ends="int[::1]", costs="int[::1]", cost="long long[::1]", hops="int[::1]", first="int[::1]",
        previous="int[::1]", beyond="int[::1]", who="int[::1]", keys="long long[::1]", following="int[::1]",
        heaps="int[::1]", found=list, router=Py_ssize_t, heap=int, candidates=int, near=bint, now="long long", here=int,
        behind=Py_ssize_t, passed=bint, candidate=int, is_behind=int, place=Py_ssize_t, end=Py_ssize_t, through="long long",
        known="long long"
    )
    cpdef list compute_ways(self, Py_ssize_t root, Py_ssize_t middle, bint whole)
    @cython.locals(cost="long long[::1]", beyond="int[::1]", heaps="int[::1]", router=Py_ssize_t, heap=int)
    cdef _reset_to_root(self, Py_ssize_t root)
    @cython.locals(heaps="int[::1]", cost="long long")
    cdef long long _next_cost(self, long long now) except? -1
    @cython.locals(
        heaps="int[::1]", keys="long long[::1]", following="int[::1]", heap=int, candidate=int, behind=int,
        least="long long"
    )
    cdef long long _spread_heap(self) except? -1


@cython.locals(bits=int)
cdef int _bits(long long differs) noexcept

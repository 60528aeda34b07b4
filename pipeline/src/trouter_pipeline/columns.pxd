cimport cython

from trouter.wire cimport octets


@cython.locals(end="int")
cdef Py_ssize_t skip(int[::1] offsets, Py_ssize_t filled, Py_ssize_t row) except -1


cdef class Numbers:
    cdef Py_ssize_t _capacity
    cdef readonly bint used
    cdef readonly long long[::1] values
    cdef readonly unsigned char[::1] valid

    cpdef int put(self, Py_ssize_t row, long long value) except -1
    cpdef int undo(self, Py_ssize_t row) except -1


cdef class Texts:
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _end
    cdef public Py_ssize_t expected_bytes
    cdef Py_ssize_t _filled
    cdef readonly bint used
    cdef readonly bytearray data
    cdef readonly int[::1] offsets
    cdef readonly unsigned char[::1] valid

    @cython.locals(after=Py_ssize_t)
    cpdef int put(self, Py_ssize_t row, bytes data, Py_ssize_t start, Py_ssize_t end) except -1
    cdef _grow(self, Py_ssize_t wanted)
    cpdef int undo(self, Py_ssize_t row) except -1
    cpdef int finish(self, Py_ssize_t rows) except -1


cdef class Items:
    cdef readonly bytearray data
    cdef readonly object offsets
    cdef readonly bytearray valid

    cpdef int add(self, bytes data, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef int add_null(self) except -1
    cpdef int cut(self, Py_ssize_t count) except -1


cdef class Lists:
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _filled
    cdef readonly bint used
    cdef readonly int[::1] offsets
    cdef readonly unsigned char[::1] valid
    cdef readonly Items keys
    cdef readonly Items kinds
    cdef readonly Items values

    cpdef int begin(self, Py_ssize_t row) except -1
    cpdef int end(self, Py_ssize_t row) except -1
    cpdef int undo(self, Py_ssize_t row) except -1
    cpdef int finish(self, Py_ssize_t rows) except -1

cimport cython

from trouter.engine.ports cimport Delivery, SessionPort


@cython.freelist(64)
cdef class Message:
    cdef public SessionPort session
    cdef public list chunks
    cdef public Py_ssize_t first
    cdef public Py_ssize_t held
    cdef public Py_ssize_t total
    cdef public bytes plain_head
    cdef public bytes annotated_head
    cdef public bint complete
    cdef public bint aborted
    cdef public bint discard
    cdef public bint routed
    cdef public list copies

    @cython.locals(size=Py_ssize_t)
    cpdef append(self, bytes chunk)
    cpdef bytes join(self)
    @cython.locals(index=Py_ssize_t, head=bytes)
    cpdef bytes piece(self, Py_ssize_t number, bint plain)
    cpdef bint ends_with(self, Py_ssize_t number)
    @cython.locals(passed=Py_ssize_t, copy=Delivery)
    cpdef trim(self)
    cpdef leave(self, Delivery copy)
    cpdef now_routed(self)
    cpdef forget(self)
    @cython.locals(freed=Py_ssize_t, index=Py_ssize_t, chunk=bytes)
    cdef _drop(self, Py_ssize_t count)

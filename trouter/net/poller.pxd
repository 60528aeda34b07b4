
cimport cython

from trouter.net.hub cimport Hub




cdef class Poller:
    cdef Hub _hub
    cdef object _epoll
    cdef dict _readers

    cpdef watch(self, object sock, object reader, int events)
    cpdef bint _serve_round(self, double timeout_s) except -1
    @cython.locals(events=int)
    cpdef _serve(self, list ready)


cimport cython

from trouter.engine.connection cimport Connection


@cython.final
cdef class Stream:
    cdef readonly object _sock
    cdef object _channel
    cdef Connection _engine
    cdef Py_ssize_t _max_bytes
    cdef object _record
    cdef object _lifetime
    cdef object _poller
    cdef object _waiting
    cdef int _watched
    cdef bint _blocked
    cdef public bint gone

    @cython.locals(engine=Connection)
    cpdef on_readable(self)
    cpdef on_events(self, int events)
    cpdef _watch_socket(self, int events)
    cpdef _wake_waiting(self)
    @cython.locals(engine=Connection, out=bytearray, sent=Py_ssize_t)
    cpdef write_nowait(self)
    @cython.locals(engine=Connection, out=bytearray)
    cpdef _write_more(self)
    @cython.locals(sent=Py_ssize_t)
    cpdef Py_ssize_t _send_bytes(self, bytearray out) except -1

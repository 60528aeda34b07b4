cimport cython

from trouter.engine.ports cimport ConnectionPort
from trouter.engine.session cimport Session
from trouter.wire.framing cimport FrameReader


cdef class ConnectionBase(ConnectionPort):
    cdef public object limits
    cdef public object local_open
    cdef public object remote_open
    cdef public Py_ssize_t open_bytes
    cdef public object state
    cdef public list events
    cdef public object oversize_error
    cdef public object sasl
    cdef public bint failed
    cdef public bint has_more
    cdef FrameReader _reader
    cdef dict _sessions
    cdef public dict sessions_by_remote_channel
    cdef list _spare_channels
    cdef list _sessions_due
    cdef Py_ssize_t _turn
    cdef Session _last_session
    cdef bint _received
    cdef bint _closed_reported
    cdef double _received_at_s

    @cython.locals(session=Session, due=list)
    cpdef flush(self)

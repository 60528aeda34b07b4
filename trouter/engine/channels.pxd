cimport cython

from trouter.engine.session cimport Session

cdef list _NO_CHANNELS


@cython.final
cdef class Channels:
    cdef public dict by_channel
    cdef public dict by_remote_channel
    cdef public Session last_session
    cdef public Py_ssize_t channel_max
    cdef list _spare_channels
    cdef Py_ssize_t _turn


cimport cython

from trouter.engine.connection cimport Connection
from trouter.wire.transfers cimport FrequentFrames


@cython.final
cdef class Hub:
    cdef public object router
    cdef public list outbox
    cdef public FrequentFrames frequent_frames

    cpdef update_clock(self)
    @cython.locals(outbox=list, touched=list, connection=Connection)
    cpdef flush(self)

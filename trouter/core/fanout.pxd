cimport cython

from trouter.core.ports cimport InEndpoint
from trouter.engine.ports cimport Delivery

cdef int _FIRST_OUTCOME


cdef class Fanout:
    cdef public Py_ssize_t outcomes_open
    cdef public Py_ssize_t copies_open
    cdef int _best

    cpdef add_outcome(self, int code)


cpdef join_copy(Delivery partner, Delivery out)


@cython.locals(source=InEndpoint, fanout=Fanout, counted=bint)
cpdef notify_sender(Delivery out, Delivery partner, int code, bytes state, bint settled)

cimport cython

from trouter.core.message cimport Message
from trouter.core.annotations cimport CachedAnnotations
from trouter.wire.sections cimport MessageScan

cdef int _DEFAULT_PRIORITY
cdef int _HIGHEST_PRIORITY


cdef class Arrival:
    cdef public int priority
    cdef public str origin
    cdef public tuple trace
    cdef public bint rewrites
    cdef public CachedAnnotations annotations
    cdef public str to
    cdef public int phase
    cdef public Py_ssize_t cut_from
    cdef public Py_ssize_t cut_to

    @cython.locals(priority=int)
    cdef begin(self, MessageScan scan, CachedAnnotations annotations, bint from_neighbour)
    cdef describe(self, Message message, str to, int phase, Py_ssize_t start)

from trouter.core.message cimport Message
from trouter.core.annotations cimport CachedAnnotations


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

    cdef describe(self, Message message, str to, int phase, Py_ssize_t start)

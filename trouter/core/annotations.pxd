cimport cython

from trouter.wire cimport octets
from trouter.wire.annotations cimport RouterAnnotations, compose_annotations, parse_annotations

cdef Py_ssize_t _MAX_SECTIONS
cdef Py_ssize_t _MAX_BYTES


cdef class CachedAnnotations:
    cdef public bytes section
    cdef public RouterAnnotations parsed
    cdef public bytes onward
    cdef bytes _plain
    cdef public object entry
    cdef public Py_ssize_t generation
    cdef public bint loops

    @cython.locals(came=RouterAnnotations)
    cpdef bytes plain(self)


cdef class AnnotationRewriter:
    cdef public str here
    cdef public bint marks
    cdef public bint honours
    cdef public int phase
    cdef public str to_override
    cdef public bint via_edge
    cdef public bint only_traces
    cdef public bint keeps
    cdef bytes _own
    cdef CachedAnnotations _recent
    cdef dict _known

    @cython.locals(annotations=CachedAnnotations, section=bytes, came=RouterAnnotations)
    cpdef CachedAnnotations read(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(came=RouterAnnotations)
    cpdef bytes anew(self, CachedAnnotations annotations, str to, int phase)
    cpdef bytes onward(self, CachedAnnotations annotations, str to, int phase)
    @cython.locals(came=RouterAnnotations)
    cdef bytes _compose(self, CachedAnnotations annotations, str to, int phase)

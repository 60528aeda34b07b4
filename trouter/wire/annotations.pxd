cimport cython

from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _NOT_OURS, _DROPPED, _PHASE, _STREAM, _TO, _INGRESS, _TRACE, _MAX_PHASE
cdef dict _KEYS
cdef list _OCTET
cdef bytes _PHASE_KEY, _STREAM_ENTRY, _TO_KEY, _INGRESS_KEY, _TRACE_KEY

@cython.final
cdef class RouterAnnotations:
    cdef public Py_ssize_t phase
    cdef public bint stream
    cdef public bint had_router_keys
    cdef public Py_ssize_t user_count
    cdef public str to
    cdef public str ingress
    cdef public tuple trace
    cdef public bytes user

    cdef object _set_entry(self, Py_ssize_t key, bytes data, Py_ssize_t start, Py_ssize_t end)

cpdef RouterAnnotations parse_annotations(bytes data, Py_ssize_t start, Py_ssize_t end, bint honour)
@cython.locals(offset=Py_ssize_t, constructor=Py_ssize_t, count=Py_ssize_t, run=Py_ssize_t, value=Py_ssize_t,
               behind=Py_ssize_t, key=Py_ssize_t)
cdef object _parse(RouterAnnotations found, bytes data, Py_ssize_t start, Py_ssize_t end, bint honour)
@cython.locals(constructor=Py_ssize_t)
cdef Py_ssize_t _key(bytes data, Py_ssize_t start, Py_ssize_t end) except? -2
@cython.locals(constructor=Py_ssize_t)
cdef str _text(bytes data, Py_ssize_t start, Py_ssize_t end, str complaint)
@cython.locals(constructor=Py_ssize_t, count=Py_ssize_t, behind=Py_ssize_t, entries=list)
cdef tuple _texts(bytes data, Py_ssize_t start, Py_ssize_t end)
@cython.locals(constructor=Py_ssize_t, count=Py_ssize_t)
cdef tuple _trace_start(bytes data, Py_ssize_t start, Py_ssize_t end)
cdef Py_ssize_t _whole(bytes data, Py_ssize_t start, Py_ssize_t end, str complaint) except? -2

cpdef bytes compose_annotations(bytes user, Py_ssize_t user_count, Py_ssize_t phase, bint stream, str to, str ingress,
                                object trace)
@cython.locals(pieces=list, count=Py_ssize_t)
cpdef tuple router_entries(Py_ssize_t phase, bint stream, str to, str ingress, object trace)
@cython.locals(items=Py_ssize_t, size=Py_ssize_t)
cpdef bytes join_annotations(bytes user, Py_ssize_t user_count, bytes entries, Py_ssize_t count)
@cython.locals(octets=bytes, size=Py_ssize_t)
cdef bytes _string(str text)
@cython.locals(body=bytes, size=Py_ssize_t, count=Py_ssize_t)
cdef bytes _strings(object texts)

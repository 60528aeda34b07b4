cimport cython

from trouter.wire cimport octets
from trouter.wire.codec cimport be32

cdef Py_ssize_t _HEAD_BYTES
cdef Py_ssize_t _GUARD_BYTES
cdef bytes _BLANK
cdef int _SETTLED
cdef Py_ssize_t _MASK32


cdef class FrameWriter:
    cdef public Py_ssize_t next
    cdef public bytearray gathered
    cdef public Py_ssize_t whole
    cdef public Py_ssize_t count
    cdef bint _open

    @cython.locals(out=bytearray, at=Py_ssize_t, size=Py_ssize_t)
    cpdef begin(self, Py_ssize_t message_format, bytes tag, Py_ssize_t ingest_us)
    cpdef extend(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(out=bytearray, sequence=Py_ssize_t)
    cpdef Py_ssize_t finish(self, bint presettled) except -1
    cpdef cancel(self)
    @cython.locals(taken=bytearray, at=Py_ssize_t, end=Py_ssize_t, whole=Py_ssize_t)
    cpdef bytearray take(self)


@cython.locals(at=Py_ssize_t, size=Py_ssize_t, length=Py_ssize_t, end=Py_ssize_t, found=Py_ssize_t)
cpdef tuple good_frames(bytes data, Py_ssize_t sequence, Py_ssize_t until, bint checked)


cpdef Py_ssize_t wanted_octets(bytes data, Py_ssize_t at) except -1


cdef Py_ssize_t _length_at(bytearray gathered, Py_ssize_t at) except -1

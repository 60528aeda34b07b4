cimport cython

from trouter.client cimport sink
from trouter.client.sink cimport Delivery, IncomingLink, LinkPort, LinkSink, SessionPort
from trouter_pipeline.spool.frames cimport FrameWriter

cdef int _ACCEPTED
cdef int _REJECTED
cdef bytes _ACCEPTED_STATE


cdef class Batch:
    cdef public list unsettled
    cdef public Py_ssize_t credit
    cdef public Py_ssize_t octets
    cdef public Py_ssize_t presettled
    cdef public Py_ssize_t refused
    cdef public Py_ssize_t aborted
    cdef public SessionPort session


cdef class Intake(LinkSink):
    cdef public bint due
    cdef public bint drained
    cdef public object stir
    cdef public Batch batch
    cdef FrameWriter _frames
    cdef Py_ssize_t _max_message_bytes
    cdef Py_ssize_t _group_bytes
    cdef Py_ssize_t _group_count
    cdef Delivery _open
    cdef Delivery _refused
    cdef bytes _refused_state

    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(frames=FrameWriter, batch=Batch, incoming=IncomingLink)
    cpdef on_transfer(self, LinkPort link, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef on_aborted(self, LinkPort link, Delivery delivery)
    cpdef on_drained(self, LinkPort link)
    cpdef Batch take(self)
    @cython.locals(delivery=Delivery)
    cpdef accept(self, Batch batch)
    cpdef cut(self)
    cdef _refuse(self, Delivery delivery)

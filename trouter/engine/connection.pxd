cimport cython

from trouter.engine.channels cimport Channels
from trouter.engine.idle cimport IdleTimeouts
from trouter.engine.link_base cimport Link
from trouter.engine.ports cimport ConnectionPort, LinkPort
from trouter.engine.session cimport Session
from trouter.wire.framing cimport FrameReader
from trouter.wire.transfers cimport DispositionReader, FlowReader, FrequentFrames, TransferReader, read_descriptor

cdef int _ATTACH
cdef int _TRANSFER
cdef int _FLOW
cdef int _DISPOSITION
cdef Py_ssize_t _MAX_OUTGOING_FRAME


@cython.final
cdef class Connection(ConnectionPort):
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
    cdef public Channels channels
    cdef public IdleTimeouts idle
    cdef FrameReader _reader
    cdef list _sessions_due
    cdef bint _closed_reported
    cdef Py_ssize_t _max_events
    cdef Py_ssize_t _max_work
    cdef FrequentFrames _frequent
    cdef int _undecodable

    @cython.locals(session=Session, due=list)
    @cython.locals(reader=FrameReader, events=list)
    cpdef receive_data(self, bytes data)
    cdef bint _is_ready(self) except -1
    @cython.locals(data=bytes, code=int, session=Session, transfer=TransferReader, disposition=DispositionReader, flow=FlowReader)
    cdef _receive_frame(self, FrameReader reader)

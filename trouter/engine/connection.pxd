cimport cython

from trouter.engine.connection_base cimport ConnectionBase
from trouter.engine.link_base cimport Link
from trouter.engine.session cimport Session
from trouter.wire.framing cimport FrameReader
from trouter.wire.transfers cimport DispositionReader, FlowReader, TransferReader, read_descriptor

cdef int _ATTACH
cdef int _TRANSFER
cdef int _FLOW
cdef int _DISPOSITION
cdef Py_ssize_t _MAX_OUTGOING_FRAME


cdef class Connection(ConnectionBase):
    cdef Py_ssize_t _max_events
    cdef TransferReader _transfer
    cdef DispositionReader _disposition
    cdef FlowReader _flow

    cpdef receive_data(self, bytes data)
    @cython.locals(reader=FrameReader, events=list)
    cdef _work(self)
    @cython.locals(data=bytes, code=int, session=Session, transfer=TransferReader, disposition=DispositionReader, flow=FlowReader)
    cdef _receive_frame(self, FrameReader reader)

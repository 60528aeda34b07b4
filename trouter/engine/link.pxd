cimport cython

from trouter.engine.link_base cimport Link
from trouter.engine.ports cimport ConnectionPort, Delivery, LinkSink, SessionPort, SessionWindows, advance_incoming, advance_outgoing
from trouter.engine.session cimport Session
from trouter.wire.outgoing cimport write_abort, write_first_frame, write_general_frame, write_next_frame
from trouter.wire.transfers cimport FlowReader, TransferReader

cdef Py_ssize_t _MASK32
cdef int _BEGIN
cdef int _FINISH
cdef int _ABORT
cdef int _SETTLE_THERE
cdef Py_ssize_t _HALF
cdef Py_ssize_t _FIRST_OVERHEAD
cdef Py_ssize_t _AGAIN_OVERHEAD
cdef Py_ssize_t _GENERAL_OVERHEAD
cdef Py_ssize_t _MAX_TRANSFER_STATE
cdef int _SMALL_FRAME_BITS


cdef class IncomingLink(Link):
    cdef public bint draining
    cdef public bint keeps_tags
    cdef public Py_ssize_t max_message_bytes
    cdef public Py_ssize_t max_credit
    cdef public Py_ssize_t overdraft
    cdef public Py_ssize_t overdrawn
    cdef public Delivery partial
    cdef Py_ssize_t _frames
    cdef Py_ssize_t _max_frames
    cdef bint _refusing

    cpdef grant(self, Py_ssize_t count)
    cpdef drain(self)
    @cython.locals(delivery=Delivery, start=Py_ssize_t)
    cpdef receive_transfer(self, TransferReader transfer, bytes data, Py_ssize_t end)
    @cython.locals(delivery=Delivery)
    cdef Delivery _begin_delivery(self, TransferReader transfer)
    @cython.locals(max_frames=Py_ssize_t)
    cdef _count_frame(self, Delivery delivery)
    cdef _discard_frame(self, Delivery delivery, TransferReader transfer, Py_ssize_t end)
    cdef _store_state(self, Delivery delivery, TransferReader transfer)
    cdef _end_drain(self)
    cdef _accept_overdrawn(self)
    cdef _abort_delivery(self, Delivery delivery)
    @cython.locals(used=Py_ssize_t)
    cpdef receive_flow(self, FlowReader flow)
    cpdef bint write_flow(self)


cdef class OutgoingLink(Link):
    cdef public bint drain
    cdef public bint waiting
    cdef bint _abort_due

    cpdef bint is_ready(self)
    cpdef receive_transfer(self, TransferReader transfer, bytes data, Py_ssize_t end)
    @cython.locals(overhead=Py_ssize_t)
    cpdef Py_ssize_t frame_room(self, Delivery delivery) except? -1
    @cython.locals(windows=SessionWindows, connection=ConnectionPort, out=bytearray, plain=bint, room=Py_ssize_t, stop=Py_ssize_t, frame_more=bint)
    cpdef Py_ssize_t send(self, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, bint more) except -1
    cpdef abort_delivery(self, Delivery delivery)
    @cython.locals(session=SessionPort)
    cdef _write_aborted(self)
    cpdef return_credit(self)
    @cython.locals(session=Session)
    cdef _wait_for_room(self)
    cdef Py_ssize_t _general_overhead(self, Delivery delivery) except -1
    cdef _send_general(self, Delivery delivery, bint more, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(ahead=Py_ssize_t, credit=Py_ssize_t)
    cpdef receive_flow(self, FlowReader flow)
    cpdef resume_sending(self)
    cpdef bint write_flow(self)

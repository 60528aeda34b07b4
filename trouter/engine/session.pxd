cimport cython

from trouter.engine.ports cimport Budget, ConnectionPort, Delivery, LinkPort, SessionPort, advance_incoming, advance_outgoing
from trouter.engine.ring cimport DeliveryRing
from trouter.wire.outgoing cimport write_disposition, write_flow, write_link_flow
from trouter.wire.transfers cimport DispositionReader, FlowReader

cdef Py_ssize_t _MASK32
cdef int _DECIDE
cdef int _SETTLE_HERE
cdef int _SETTLE_THERE
cdef int _FIRST_OUTCOME
cdef Py_ssize_t _HALF
cdef Py_ssize_t _MAX_WINDOW
cdef Py_ssize_t _DISPOSITION_OVERHEAD
cdef Py_ssize_t _FITS_ANYWHERE


cdef class Settlements:
    cdef bint _role
    cdef Py_ssize_t _first
    cdef Py_ssize_t _last
    cdef bint _settled
    cdef bytes _state
    cdef public bint pending

    cpdef add_settlement(self, bytearray out, int channel, Py_ssize_t delivery_id, bytes state, bint settled)
    cpdef write_disposition(self, bytearray out, int channel)


cdef class Session(SessionPort):
    cdef public object limits
    cdef public object state
    cdef public bint silent
    cdef public bint reported
    cdef public int remote_channel
    cdef public Py_ssize_t handle_max
    cdef public Py_ssize_t remote_handle_max
    cdef public Py_ssize_t window_frames
    cdef public Py_ssize_t promised_bytes
    cdef public Py_ssize_t incoming_window
    cdef public Py_ssize_t next_incoming_id
    cdef public Py_ssize_t sent_frames
    cdef public Py_ssize_t next_outgoing_id
    cdef public Py_ssize_t next_delivery_id
    cdef public DeliveryRing incoming
    cdef public DeliveryRing outgoing
    cdef public dict links
    cdef public dict links_by_handle
    cdef public dict links_by_remote_handle
    cdef public Py_ssize_t refused_count
    cdef public list waiting_links
    cdef public list due_links
    cdef public object context
    cdef Settlements _receiver_settlements
    cdef Settlements _sender_settlements
    cdef list _sessions_due
    cdef list _spare_handles
    cdef LinkPort _last_link
    cdef Py_ssize_t _last_handle
    cdef bint _marked
    cdef bint _flow_due
    cdef Py_ssize_t _last_incoming_delivery

    @cython.locals(link=LinkPort)
    cpdef LinkPort admit_transfer(self, Py_ssize_t handle)
    @cython.locals(distance=Py_ssize_t)
    cdef int check_delivery_id(self, Py_ssize_t delivery_id) except -1
    @cython.locals(first=Py_ssize_t, last=Py_ssize_t, ring=DeliveryRing, delivery=Delivery)
    cpdef receive_disposition(self, DispositionReader disposition)
    cdef _apply_disposition(self, DeliveryRing ring, Delivery delivery, DispositionReader disposition)
    @cython.locals(opened=bint, window=Py_ssize_t, unseen=Py_ssize_t, link=LinkPort)
    cpdef receive_flow(self, FlowReader flow)
    cpdef settle_incoming(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef settle_outgoing(self, Delivery delivery, int code, bytes state, bint settled)
    cdef bytes _fitting_state(self, int code, bytes state)
    cdef int add_incoming(self, Delivery delivery) except -1
    cdef int add_outgoing(self, Delivery delivery) except -1
    cdef int forget_incoming(self, Delivery delivery) except -1
    cpdef forget_outgoing(self, Delivery delivery)
    cpdef list deliveries_of(self, LinkPort link, bint incoming)
    cdef int spend_frame(self) except -1
    cdef int wait_for_room(self, LinkPort link) except -1
    cdef int request_flow(self, LinkPort link) except -1
    cdef int write_link_flow(self, Py_ssize_t handle, Py_ssize_t delivery_count, Py_ssize_t credit, bint drain) except -1
    cpdef Py_ssize_t advertised_window(self)
    @cython.locals(connection=ConnectionPort, budget=Budget)
    cpdef hold_bytes(self, Py_ssize_t count)
    @cython.locals(connection=ConnectionPort)
    cpdef release_bytes(self, Py_ssize_t count)
    @cython.locals(connection=ConnectionPort)
    cpdef keep_bytes(self, Py_ssize_t count)
    cpdef count_in_budgets(self, list shares)
    @cython.locals(budget=Budget)
    cdef _count_in_shares(self, Py_ssize_t count)
    @cython.locals(budget=Budget)
    cdef bint _shares_run_out(self) except -1
    cpdef request_flush(self)
    @cython.locals(link=LinkPort, due=list)
    cpdef flush(self)
    cpdef write_settlements(self)
    @cython.locals(room=Py_ssize_t, connection=ConnectionPort, budget=Budget, scarce=bint)
    cdef _reopen_window(self)
    @cython.locals(link=LinkPort, waiting=list, position=Py_ssize_t, full=bint)
    cpdef resume_links(self)

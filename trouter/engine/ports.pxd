cimport cython

from trouter.wire.transfers cimport FlowReader, TransferReader


cdef unsigned char[112] _INCOMING
cdef unsigned char[112] _OUTGOING
cdef int[70] _FLAGS
cdef Py_ssize_t _MASK32
cdef Py_ssize_t _HALF
cdef Py_ssize_t _MAX_WINDOW
cdef int _SETTLE_HERE
cdef int _DROP


@cython.final
cdef class Budget:
    cdef public Py_ssize_t held
    cdef public Py_ssize_t limit


cdef class ConnectionPort:
    cdef public Budget budget
    cdef public bytearray out
    cdef public list outbox
    cdef public object owner
    cdef public bint touched
    cdef public bint paused
    cdef public bint wrote
    cdef public bint silent
    cdef public Py_ssize_t link_count
    cdef public Py_ssize_t refused_count
    cdef public Py_ssize_t kept_bytes
    cdef public Py_ssize_t buffered_bytes
    cdef public Py_ssize_t buffer_limit
    cdef public Py_ssize_t promised_bytes
    cdef public Py_ssize_t overrun_frames
    cdef public Py_ssize_t overrun_limit
    cdef public Py_ssize_t remote_max_frame_bytes
    cdef public Py_ssize_t high_water
    cdef public Py_ssize_t work

    cpdef touch(self)
    cpdef flush(self)
    cpdef write(self, int channel, performative)
    cpdef report(self, event)


@cython.final
cdef class SessionWindows:
    cdef ConnectionPort _connection
    cdef public Py_ssize_t incoming_frames
    cdef public Py_ssize_t max_incoming_frames
    cdef public Py_ssize_t max_incoming_bytes
    cdef public Py_ssize_t outgoing_frames
    cdef public Py_ssize_t next_incoming_id
    cdef public Py_ssize_t next_outgoing_id
    cdef public Py_ssize_t sent_frames
    cdef public Py_ssize_t promised_bytes
    cdef public Py_ssize_t held_bytes
    cdef public Py_ssize_t kept_bytes
    cdef public list shares

    cdef bint count_received_frame(self) noexcept
    @cython.locals(connection=ConnectionPort)
    cdef int check_overrun(self, bint begun) except -1
    cpdef int forget_overrun(self) except -1
    cpdef Py_ssize_t advertised_frames(self)
    @cython.locals(room=Py_ssize_t, connection=ConnectionPort, budget=Budget, scarce=bint)
    cdef bint reopen(self) except -1
    @cython.locals(window=Py_ssize_t, unseen=Py_ssize_t)
    cdef int receive_flow(self, FlowReader flow) except -1
    cdef int spend_frame(self) noexcept
    @cython.locals(connection=ConnectionPort, budget=Budget)
    cpdef int hold_bytes(self, Py_ssize_t count) except -1
    @cython.locals(connection=ConnectionPort)
    cdef bint release_bytes(self, Py_ssize_t count) except -1
    @cython.locals(connection=ConnectionPort)
    cpdef int keep_bytes(self, Py_ssize_t count) except -1
    @cython.locals(budget=Budget)
    cdef int _count_in_shares(self, Py_ssize_t count) except -1
    @cython.locals(budget=Budget)
    cdef bint _shares_run_out(self) except -1


cdef class SessionPort:
    cdef public ConnectionPort connection
    cdef public int channel
    cdef public SessionWindows windows
    cdef public bint mapped
    cdef public int urgency

    cpdef settle_incoming(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef settle_outgoing(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef release_bytes(self, Py_ssize_t count)


cdef class LinkPort:
    cdef public SessionPort session
    cdef public LinkSink sink

    cpdef receive_transfer(self, TransferReader transfer, bytes data, Py_ssize_t end)
    cpdef receive_flow(self, FlowReader flow)
    cpdef bint write_flow(self)
    cpdef resume_sending(self)


@cython.freelist(2048)
cdef class Delivery:
    cdef public LinkPort link
    cdef public unsigned int delivery_id
    cdef public unsigned int message_format
    cdef public Py_ssize_t number
    cdef public bytes tag
    cdef readonly int state
    cdef readonly bint begun
    cdef readonly bint complete
    cdef readonly bint aborted
    cdef readonly bint settled
    cdef readonly bint remote_settled
    cdef public int remote_code
    cdef public bytes remote_state
    cdef public bytes transfer_state
    cdef public int state_code
    cdef public Py_ssize_t payload_bytes

    cpdef mark_settled(self)
    cpdef drop_unsent(self)


@cython.locals(state=Py_ssize_t)
cpdef int advance_incoming(Delivery delivery, Py_ssize_t step) except -1
@cython.locals(state=Py_ssize_t)
cpdef int advance_outgoing(Delivery delivery, Py_ssize_t step) except -1
@cython.locals(row=Py_ssize_t)
cdef int _enter(Delivery delivery, Py_ssize_t state) noexcept
cdef int _refuse(Delivery delivery, Py_ssize_t step) except -1


cdef class LinkSink:
    cpdef Delivery make_delivery(self, LinkPort link)
    cpdef on_transfer(self, LinkPort link, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef on_aborted(self, LinkPort link, Delivery delivery)
    cpdef on_disposition(self, Delivery delivery)
    cpdef on_credit(self, LinkPort link)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    cpdef on_refused(self, LinkPort link, Delivery delivery)


cdef LinkSink NO_SINK

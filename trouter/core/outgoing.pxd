cimport cython

from trouter.core cimport deliveries
from trouter.core.arrival cimport Arrival, notify_sender
from trouter.core.counters cimport AddressCounters, Counters, Origins
from trouter.core.message cimport IncomingDelivery, Message, OutgoingDelivery, Outstanding, join_copy
from trouter.core.ports cimport SharedState
from trouter.engine.link cimport OutgoingLink
from trouter.engine.ports cimport Delivery, LinkPort, LinkSink, SessionPort

cdef int _FIRST_OUTCOME
cdef int _LAST_OUTCOME


@cython.final
cdef class Backlog:
    cdef public object queue
    cdef public Py_ssize_t count
    cdef Py_ssize_t _dropped
    cdef list _presettled

    cpdef OutgoingDelivery first(self)
    cdef bint begins_with(self, OutgoingDelivery out) except -1
    cdef append(self, OutgoingDelivery out)
    cdef bint remove(self, OutgoingDelivery out) except -1
    cdef list clear(self)
    @cython.locals(out=OutgoingDelivery)
    cdef _pass_dropped(self)
    cdef note_droppable(self, OutgoingDelivery out)
    cdef forget_droppable(self)
    @cython.locals(waiting=OutgoingDelivery, dropped=Py_ssize_t)
    cdef Py_ssize_t drop_presettled(self) except -1


cdef Backlog _NO_BACKLOG


cdef class Streaming:
    cdef public object lender
    cdef public object owner
    cdef public Outstanding unsettled

    @cython.locals(stream=OutgoingEndpoint, out=OutgoingDelivery)
    cdef OutgoingDelivery lend(self, Arrival arrival)
    cdef return_link(self, OutgoingEndpoint outgoing)
    cpdef forget_link(self, OutgoingEndpoint outgoing)


cdef class OutgoingEndpoint(LinkSink):
    # what each message reads or counts, in two cache lines
    cdef public OutgoingLink link
    cdef public SharedState shared
    cdef public Backlog waiting
    cdef public Counters counters
    cdef public Streaming streaming
    cdef public object log
    cdef public AddressCounters totals
    cdef public object trunk
    cdef public bint strips_annotations
    cdef public bint sends_settled
    cdef public Py_ssize_t next_tag
    cdef public Py_ssize_t unsettled
    cdef public Py_ssize_t max_unsettled
    cdef public Py_ssize_t entered_here
    cdef public Py_ssize_t address_class
    cdef public Py_ssize_t capacity
    cdef public object entry
    cdef public Py_ssize_t identity
    cdef public Py_ssize_t connection_number
    cdef public double attached_at_s
    cdef public object pace
    cdef public double no_credit_since_s
    cdef public Origins origins

    cpdef Py_ssize_t count_load(self)
    @cython.locals(out=OutgoingDelivery)
    cpdef OutgoingDelivery offer(self, Arrival arrival)
    cdef Backlog _own_backlog(self)
    cdef _count_offered(self, Arrival arrival)
    @cython.locals(message=Message)
    cpdef continue_with(self, OutgoingDelivery out, Arrival arrival)
    cdef bint _may_begin(self, OutgoingLink link)
    cdef bint _may_send(self, OutgoingDelivery out, Message message) except -1
    cdef _settled_one(self)
    cpdef send_more(self, OutgoingDelivery out)
    @cython.locals(sender=OutgoingLink, idle=bint)
    cpdef on_credit(self, LinkPort link)
    @cython.locals(out=OutgoingDelivery, message=Message, sender=OutgoingLink, waiting=Backlog)
    cdef send_waiting(self)
    cdef note_credit(self)
    cdef _remove_waiting(self, OutgoingDelivery out)
    cdef _count_dropped(self, Py_ssize_t count)
    @cython.locals(link=OutgoingLink, piece=bytes, joined=bytes, last=bint, size=Py_ssize_t, more=Py_ssize_t)
    cdef _send_available(self, OutgoingDelivery out, Message message)
    @cython.locals(sender_delivery=IncomingDelivery)
    cdef _note_sent(self, OutgoingDelivery out)
    @cython.locals(out=OutgoingDelivery, sender_delivery=IncomingDelivery, settled=bint)
    cpdef on_disposition(self, Delivery delivery)
    cdef _abort_decided(self, OutgoingDelivery out)
    cdef _settle_with_receiver(self, OutgoingDelivery out, int code, bytes state)
    cpdef relay_sender_state(self, OutgoingDelivery out, int code, bytes state, bint settled)
    cpdef abort_delivery(self, OutgoingDelivery out)
    @cython.locals(session=SessionPort, code=int, state=bytes, out=OutgoingDelivery)
    cpdef lose_link(self, list own=*)
    cpdef fail_sent(self)
    cdef _release_to_sender(self, OutgoingDelivery out)
    @cython.locals(ahead=Message)
    cpdef release_blocked_copy(self, OutgoingDelivery out)
    @cython.locals(sender_delivery=IncomingDelivery)
    cdef _notify_lost(self, OutgoingDelivery out, int code, bytes state)


cdef _leave_outstanding(OutgoingDelivery out)
@cython.locals(message=Message, copy=OutgoingDelivery)
cdef bint _may_do_without(OutgoingDelivery out) except -1

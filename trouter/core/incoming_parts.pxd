cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.counters cimport Counters
from trouter.core.outgoing cimport OutgoingEndpoint
from trouter.core.entry cimport AddressEntry
from trouter.core.message cimport AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message, OutgoingDelivery
from trouter.core.ports cimport SharedState
from trouter.core.times cimport TimesByAddress
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport SessionPort
from trouter.wire cimport octets
from trouter.wire.order cimport SectionOrder

cdef Py_ssize_t _STREAM_AT


cdef class CreditAccount:
    cdef public IncomingLink link
    cdef public SharedState shared
    cdef public AddressEntry entry
    cdef public Counters counters
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t kept_credit
    cdef public Py_ssize_t deliveries_when_owed
    cdef public Py_ssize_t unsettled
    cdef public object gate
    cdef public double no_credit_since_s
    cdef public bint of_container
    cdef public bint between_routers
    cdef public bint goes_on

    cpdef grant_first_credit(self)
    cpdef grant_kept(self)
    cpdef note_drained(self)
    cpdef note_overdrawn(self)
    cdef begin_delivery(self, IncomingDelivery delivery)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t, waits=bint)
    cpdef top_up_credit(self)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t, came=Py_ssize_t)
    cpdef bint return_owed(self) except -1
    cpdef grant_credit(self, Py_ssize_t count)


@cython.final
cdef class Settlement:
    cdef public CreditAccount account
    cdef public SharedState shared
    cdef public Py_ssize_t address_class
    cdef public bint of_router

    @cython.locals(account=CreditAccount)
    cdef release_undeliverable(self, IncomingDelivery delivery)
    cpdef refuse_delivery(self, IncomingDelivery delivery, int code, bytes state)
    cpdef answer_uncounted(self, IncomingDelivery delivery, int code)
    cdef _give_outcome(self, IncomingDelivery delivery, int code, bytes state)
    cdef _finish_delivery(self, IncomingDelivery delivery, int code, bytes state)
    cdef bint accept_delivery(self, IncomingDelivery delivery) except -1
    cdef bint answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled) except -1
    @cython.locals(settled=bint)
    cpdef bint relay_disposition(self, IncomingDelivery delivery) except -1
    cdef bint end_frame(self, IncomingDelivery delivery, bint was_settled) except -1
    @cython.locals(out=OutgoingDelivery, outgoing=OutgoingEndpoint)
    cdef _relay_state(self, IncomingDelivery delivery, int code, bytes state, bint settled)
    cdef bint abort_delivery(self, IncomingDelivery delivery) except -1
    @cython.locals(link=IncomingLink, session=SessionPort, delivery=IncomingDelivery)
    cpdef lose_deliveries(self, list own)
    cpdef count_refused(self, IncomingDelivery delivery)
    @cython.locals(shared=SharedState, account=CreditAccount, age_s=double, times=TimesByAddress)
    cdef _count_end(self, IncomingDelivery delivery, int code)
    cdef count_presettled(self, IncomingDelivery delivery)
    cdef _count_dropped(self, IncomingDelivery delivery)


@cython.final
cdef class Frames:
    cdef IncomingLink _link
    cdef SectionOrder _order
    cdef Py_ssize_t _window_bytes
    cdef public bint of_router
    cdef public bint routes_at_once
    cdef public Py_ssize_t max_read_bytes

    @cython.locals(message=Message)
    cdef begin_message(self, IncomingDelivery delivery, AnnotationRewriter rewriter, bint is_checked)
    cdef bint add_frame(self, Arrival arrival) except -1
    cdef _check_order(self, Arrival arrival, Message message)
    @cython.locals(only=OutgoingDelivery, sole=OutgoingEndpoint, copy=OutgoingDelivery, outgoing=OutgoingEndpoint)
    cdef _send_frame_on(self, Arrival arrival, Message message)
    @cython.locals(copy=OutgoingDelivery, outgoing=OutgoingEndpoint)
    cdef release_blocked_copies(self, Message message)
    cdef bint _must_not_wait(self, Message message)
    @cython.locals(more=Py_ssize_t)
    cdef bint wait_for_more(self, Message message, Py_ssize_t max_bytes) except -1
    cdef bint must_gather(self, Message message, CachedAnnotations annotations) except -1


@cython.locals(partial=IncomingDelivery)
cpdef bint is_gathering(IncomingLink link) except -1


@cython.locals(message=Message, out=OutgoingDelivery, outgoing=OutgoingEndpoint)
cpdef abort_copies(IncomingDelivery delivery)

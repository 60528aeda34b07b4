cimport cython

from trouter.core cimport deliveries
from trouter.core.arrival cimport Arrival, DeliverySource
from trouter.core.check cimport MessageCheck
from trouter.core.incoming_parts cimport CreditAccount, Frames, Settlement, is_gathering
from trouter.core.message cimport AnnotationRewriter, IncomingDelivery, Message
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport Delivery, LinkPort


cdef class Destination:
    cdef public AnnotationRewriter rewriter

    cpdef pass_on(self, Ingress ingress, Arrival arrival)
    cpdef come_from_neighbour(self)


cdef class Ingress(DeliverySource):
    cdef public IncomingLink link
    cdef public Arrival arrival
    cdef public CreditAccount account
    cdef public Destination destination
    cdef public Frames frames
    cdef public Settlement settlement
    cdef public object tap
    cdef public MessageCheck check
    cdef public tuple span_source
    cdef public Py_ssize_t identity
    cdef public double attached_at_s
    cdef public object pace

    cpdef bint is_gathering(self) except -1
    cpdef come_from(self, trunk)
    cpdef destination_appeared(self)
    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery, message=Message, was_settled=bint)
    cpdef on_transfer(self, LinkPort link, Delivery arrived, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef bint _is_ready(self, Arrival arrival) except -1
    cpdef note_received(self, Arrival arrival)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_aborted(self, LinkPort link, Delivery arrived)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_disposition(self, Delivery arrived)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_refused(self, LinkPort link, Delivery arrived)
    cpdef lose_link(self, list own=*)
    cpdef accept_delivery(self, IncomingDelivery delivery)
    cpdef answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled)

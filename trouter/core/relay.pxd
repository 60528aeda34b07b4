cimport cython

from trouter.core cimport deliveries
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters
from trouter.core.outgoing cimport Backlog, OutgoingEndpoint
from trouter.core.entry cimport AddressEntry
from trouter.core.incoming_parts cimport CreditAccount, Frames, Settlement, is_gathering
from trouter.core.message cimport IncomingDelivery, Message
from trouter.core.ports cimport DeliverySource
from trouter.engine.link cimport IncomingLink, OutgoingLink
from trouter.engine.ports cimport Delivery, LinkPort
from trouter.wire cimport octets
from trouter.wire.sections cimport MessageScan

cdef int _THROUGH_HEADER
cdef int _THROUGH_PROPERTIES
cdef Py_ssize_t _MAX_HEAD_BYTES


cdef class RoutedOutgoingEndpoint(OutgoingEndpoint)


cdef class RoutedIncomingEndpoint(DeliverySource):
    cdef public IncomingLink link
    cdef public AddressEntry entry
    cdef public AddressCounters totals
    cdef public CreditAccount account
    cdef public Frames frames
    cdef public Settlement settlement
    cdef public object tap
    cdef public MessageCheck check
    cdef public Py_ssize_t identity
    cdef public double attached_at_s
    cdef public object pace
    cdef public RoutedOutgoingEndpoint outgoing
    cdef bint _drained

    cpdef join_ends(self, RoutedOutgoingEndpoint outgoing)
    cpdef part_ends(self)
    @cython.locals(link=IncomingLink, outgoing=RoutedOutgoingEndpoint, out=OutgoingLink, owed=Py_ssize_t)
    cpdef follow_receiver(self)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    cpdef bint is_gathering(self) except -1
    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery, message=Message, was_settled=bint, ready=bint, whole=bytes)
    cpdef on_transfer(self, LinkPort link, Delivery arrived, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(check=MessageCheck, scan=MessageScan, depth=int, inspected=bytes, outgoing=RoutedOutgoingEndpoint)
    cdef _pass_message_on(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(counters=AddressCounters)
    cdef _count_message(self, RoutedOutgoingEndpoint outgoing)
    @cython.locals(message=Message)
    cpdef Message build_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_aborted(self, LinkPort link, Delivery arrived)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_disposition(self, Delivery arrived)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_refused(self, LinkPort link, Delivery arrived)
    cpdef accept_delivery(self, IncomingDelivery delivery)
    cpdef answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled)
    cpdef lose_link(self, list own=*)


cdef class RoutedOutgoingEndpoint(OutgoingEndpoint):
    cdef public RoutedIncomingEndpoint incoming
    cdef public bint is_trunk
    cdef public bint closing
    cdef object _emptied

    @cython.locals(waiting=Backlog)
    cpdef Py_ssize_t count_without_credit(self)
    cpdef on_credit(self, LinkPort link)

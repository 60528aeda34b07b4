cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters
from trouter.core.entry cimport AddressEntry
from trouter.core.incoming_parts cimport CreditAccount, is_gathering
from trouter.core.ingress cimport Destination, Ingress
from trouter.core.message cimport IncomingDelivery, Message
from trouter.core.outgoing cimport Backlog, OutgoingEndpoint
from trouter.engine.link cimport IncomingLink, OutgoingLink
from trouter.engine.ports cimport LinkPort
from trouter.wire.sections cimport MessageScan

cdef int _THROUGH_HEADER
cdef int _THROUGH_PROPERTIES
cdef Py_ssize_t _MAX_HEAD_BYTES


cdef class RoutedOutgoingEndpoint(OutgoingEndpoint)


cdef class MirroredCredit(CreditAccount):
    cdef public RoutedOutgoingEndpoint outgoing
    cdef bint _drained

    cpdef join_ends(self, RoutedOutgoingEndpoint outgoing)
    cpdef part_ends(self)
    @cython.locals(owed=Py_ssize_t)
    cpdef top_up_credit(self)
    cpdef note_drained(self)


cdef class ToOtherEnd(Destination):
    cdef MirroredCredit _credit
    cdef AddressEntry _entry
    cdef AddressCounters _totals

    cpdef pass_on(self, Ingress ingress, Arrival arrival)
    @cython.locals(depth=int, complete=bint)
    cdef bint _may_pass(self, Ingress ingress, Arrival arrival) except -1
    cdef _count_message(self, Ingress ingress, RoutedOutgoingEndpoint outgoing)


cdef class RoutedOutgoingEndpoint(OutgoingEndpoint):
    cdef public MirroredCredit mirror
    cdef public bint is_trunk
    cdef public bint closing
    cdef object _emptied

    @cython.locals(waiting=Backlog)
    cpdef Py_ssize_t count_without_credit(self)
    cpdef on_credit(self, LinkPort link)

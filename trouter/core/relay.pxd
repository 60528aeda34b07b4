cimport cython

from trouter.core.check cimport MessageCheck
from trouter.core.egress cimport Egress
from trouter.core.ingress cimport Ingress
from trouter.core.message cimport IncomingDelivery, Message, OutgoingDelivery
from trouter.core.entry cimport AddressEntry
from trouter.engine.link cimport IncomingLink, OutgoingLink
from trouter.engine.ports cimport LinkPort

cdef int _THROUGH_HEADER
cdef int _THROUGH_PROPERTIES


cdef class RoutedEgress(Egress)


cdef class RoutedIngress(Ingress):
    cdef public RoutedEgress egress
    cdef bint _drained

    cpdef join(self, RoutedEgress egress)
    cpdef part(self)
    @cython.locals(link=IncomingLink, egress=RoutedEgress, out=OutgoingLink, owed=Py_ssize_t)
    cpdef follow(self)
    cpdef on_drained(self, LinkPort link)
    cdef _top_up(self)
    @cython.locals(check=MessageCheck, depth=int, inspected=bytes)
    cdef _route(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(entry=AddressEntry, egress=RoutedEgress)
    cdef _pass_on(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)


cdef class RoutedEgress(Egress):
    cdef public RoutedIngress ingress
    cdef public bint is_trunk
    cdef public object on_empty

    cpdef Py_ssize_t waiting(self)
    cdef _give_back_credit(self)

cimport cython

from trouter.core.check cimport MessageCheck
from trouter.core.egress cimport Egress
from trouter.core cimport deliveries
from trouter.core.message cimport IncomingDelivery, Message, OutgoingDelivery
from trouter.core.annotations cimport CachedAnnotations
from trouter.core.settlement cimport Settlement
from trouter.engine.ports cimport Delivery, LinkPort
from trouter.wire cimport octets
from trouter.wire.order cimport SectionOrder

cdef Py_ssize_t _STREAM_AT


cdef class Intake(Settlement):
    cdef public object log
    cdef public bint prompt
    cdef public MessageCheck check
    cdef SectionOrder _order
    cdef Py_ssize_t _window_bytes

    cdef _route(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(delivery=IncomingDelivery, message=Message)
    cpdef on_transfer(self, LinkPort link, Delivery arrived, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(whole=bytes, settled=bint, copy=OutgoingDelivery, egress=Egress)
    cdef _continue(self, IncomingDelivery delivery, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef _log_received(self, Message message, bytes whole)
    cdef bint _stands_in_order(self, IncomingDelivery delivery, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(only=OutgoingDelivery, sole=Egress, copy=OutgoingDelivery, egress=Egress)
    cdef _send_on(self, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(partial=IncomingDelivery)
    cpdef bint is_gathering(self)
    cdef bint _must_not_wait(self, Message message)
    @cython.locals(more=Py_ssize_t)
    cdef bint _waits_on(self, Message message, Py_ssize_t max_bytes)
    cdef bint _must_gather(self, Message message, CachedAnnotations annotations)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_aborted(self, LinkPort link, Delivery arrived)
    @cython.locals(message=Message, out=OutgoingDelivery, egress=Egress)
    cdef _take_back(self, IncomingDelivery delivery)
    @cython.locals(delivery=IncomingDelivery)
    cpdef lost(self, list own=*)

cimport cython

from trouter.core.credit cimport Credit
from trouter.core.egress cimport Egress
from trouter.core.message cimport IncomingDelivery, Message, OutgoingDelivery
from trouter.core.times cimport TimesByAddress
from trouter.engine.ports cimport Delivery, LinkPort


cdef class Settlement(Credit):
    cdef public Py_ssize_t family

    cdef _undeliverable(self, IncomingDelivery delivery, Message message)
    cdef _refuse(self, IncomingDelivery delivery, Message message, int code, bytes state)
    cdef _end(self, IncomingDelivery delivery, int code, bytes state)
    cdef _finish(self, IncomingDelivery delivery, int code, bytes state)
    cpdef accept(self, IncomingDelivery delivery)
    cpdef answer(self, IncomingDelivery delivery, int code, bytes state, bint settled)
    @cython.locals(delivery=IncomingDelivery, settled=bint)
    cpdef on_disposition(self, Delivery arrived)
    @cython.locals(out=OutgoingDelivery, egress=Egress)
    cdef _relay_sender(self, IncomingDelivery delivery, int code, bytes state, bint settled)
    @cython.locals(delivery=IncomingDelivery)
    cpdef on_refused(self, LinkPort link, Delivery arrived)
    @cython.locals(age_s=double, times=TimesByAddress)
    cdef _count_end(self, IncomingDelivery delivery, int code)
    cdef _count_presettled(self)
    cdef _count_dropped(self)

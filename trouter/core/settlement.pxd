cimport cython

from trouter.core.credit cimport Credit
from trouter.core.egress cimport Egress
from trouter.core.message cimport Message
from trouter.core.times cimport TimesByAddress
from trouter.engine.ports cimport Delivery, LinkPort


cdef class Settlement(Credit):
    cdef public Py_ssize_t family

    cdef _undeliverable(self, Delivery delivery, Message message)
    cdef _refuse(self, Delivery delivery, Message message, int code, bytes state)
    cdef _end(self, Delivery delivery, int code, bytes state)
    cdef _finish(self, Delivery delivery, int code, bytes state)
    cpdef accept(self, Delivery delivery)
    @cython.locals(message=Message)
    cpdef answer(self, Delivery delivery, int code, bytes state, bint settled)
    @cython.locals(settled=bint)
    cpdef on_disposition(self, Delivery delivery)
    @cython.locals(out=Delivery, egress=Egress)
    cdef _relay_sender(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef on_refused(self, LinkPort link, Delivery delivery)
    @cython.locals(age_s=double, times=TimesByAddress)
    cdef _count_end(self, Delivery delivery, int code)
    cdef _count_presettled(self)
    cdef _count_dropped(self)

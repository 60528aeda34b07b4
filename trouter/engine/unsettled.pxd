cimport cython

from trouter.engine.ports cimport ConnectionPort, Delivery, LinkPort, advance_incoming, advance_outgoing
from trouter.wire.outgoing cimport write_disposition
from trouter.wire.transfers cimport DispositionReader

cdef Py_ssize_t _MASK32
cdef Py_ssize_t _HALF
cdef Py_ssize_t _ROOMY
cdef list _NO_SLOTS
cdef int _DECIDE
cdef int _SETTLE_HERE
cdef int _SETTLE_THERE
cdef int _FIRST_OUTCOME
cdef Py_ssize_t _DISPOSITION_OVERHEAD
cdef Py_ssize_t _FITS_ANYWHERE


@cython.final
cdef class DeliveryRing:
    cdef list _slots
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _first
    cdef Py_ssize_t _width
    cdef dict _stragglers
    cdef public Py_ssize_t count

    @cython.locals(width=Py_ssize_t)
    cpdef append(self, Py_ssize_t delivery_id, Delivery delivery)
    cpdef Delivery get(self, Py_ssize_t delivery_id)
    @cython.locals(first=Py_ssize_t, width=Py_ssize_t, mask=Py_ssize_t, slots=list)
    cpdef remove(self, Py_ssize_t delivery_id)
    @cython.locals(reach=Py_ssize_t, step=Py_ssize_t, position=Py_ssize_t, stop=Py_ssize_t, key=Py_ssize_t)
    cpdef list between(self, Py_ssize_t first, Py_ssize_t last)
    cpdef list all(self)
    cdef Py_ssize_t _count_in_slots(self) noexcept
    @cython.locals(width=Py_ssize_t, size=Py_ssize_t, position=Py_ssize_t, delivery_id=Py_ssize_t, slots=list)
    cdef _make_room(self, Py_ssize_t newest)
    @cython.locals(position=Py_ssize_t, delivery_id=Py_ssize_t)
    cdef _spread(self)


@cython.final
cdef class DispositionRanges:
    cdef bint _role
    cdef Py_ssize_t _first
    cdef Py_ssize_t _last
    cdef bint _settled
    cdef bytes _state
    cdef public bint pending

    cpdef add_settlement(self, bytearray out, int channel, Py_ssize_t delivery_id, bytes state, bint settled)
    cpdef write_disposition(self, bytearray out, int channel)


@cython.final
cdef class SessionDeliveries:
    cdef ConnectionPort _connection
    cdef int _channel
    cdef Py_ssize_t _last_incoming_id
    cdef public Py_ssize_t next_outgoing_id
    cdef public DeliveryRing incoming
    cdef public DeliveryRing outgoing
    cdef DispositionRanges _receiver_settlements
    cdef DispositionRanges _sender_settlements

    @cython.locals(distance=Py_ssize_t)
    cdef int check_delivery_id(self, Py_ssize_t delivery_id) except -1
    cdef int add_incoming(self, Delivery delivery) except -1
    cdef int add_outgoing(self, Delivery delivery) except -1
    cpdef int forget_incoming(self, Delivery delivery) except -1
    cpdef int forget_outgoing(self, Delivery delivery) except -1
    cpdef list deliveries_of(self, LinkPort link, bint incoming)
    cdef int settle_incoming(self, Delivery delivery, int code, bytes state, bint settled) except -1
    cdef int settle_outgoing(self, Delivery delivery, int code, bytes state, bint settled) except -1
    cdef bytes _fitting_state(self, int code, bytes state)
    cdef int write_dispositions(self) except -1
    @cython.locals(first=Py_ssize_t, last=Py_ssize_t, ring=DeliveryRing, delivery=Delivery)
    cdef receive_disposition(self, DispositionReader disposition)
    cdef int _apply_disposition(self, DeliveryRing ring, Delivery delivery, DispositionReader disposition) except -1

cimport cython

from trouter.engine.ports cimport Delivery

cdef Py_ssize_t _MASK32
cdef Py_ssize_t _HALF
cdef Py_ssize_t _ROOMY


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
    @cython.locals(width=Py_ssize_t, live=Py_ssize_t, size=Py_ssize_t, position=Py_ssize_t, delivery_id=Py_ssize_t, slots=list)
    cdef _make_room(self, Py_ssize_t newest)
    @cython.locals(position=Py_ssize_t, delivery_id=Py_ssize_t)
    cdef _spread(self)

cimport cython

from trouter.core.ports cimport InEndpoint
from trouter.core.entry cimport AddressEntry
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport LinkPort


cdef class Credit(InEndpoint):
    cdef public IncomingLink link
    cdef public AddressEntry entry
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t pending
    cdef public Py_ssize_t noted
    cdef public Py_ssize_t unsettled
    cdef public object gate
    cdef public bint of_container
    cdef public double dry_since_s

    cpdef open(self)
    cpdef destination_appeared(self)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t)
    cdef _top_up(self)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t, came=Py_ssize_t)
    cpdef bint return_owed(self) except -1
    cpdef top_up(self)
    cdef _grant(self, Py_ssize_t count)

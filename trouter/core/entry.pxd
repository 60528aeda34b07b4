cimport cython

from trouter.core.arrival cimport Arrival
from trouter.core.counters cimport AddressCounters
from trouter.core.forwarders cimport Forwarder

cdef list _NO_SPELLINGS
cdef dict _NO_SENDERS


@cython.final
cdef class AddressEntry:
    # what each message reads, in one cache line
    cdef public Forwarder forwarder
    cdef public AddressCounters counters
    cdef public AddressEntry fallback
    cdef public int phase
    cdef public int priority
    cdef public bint gone
    cdef public bint pinned
    cdef public str key
    cdef public str text
    cdef public str treatment
    cdef public dict senders
    cdef public AddressEntry fallback_of
    cdef public Py_ssize_t holders
    cdef public Py_ssize_t remote_listeners
    cdef public object listener
    cdef public list known_as
    cdef public Py_ssize_t creator
    cdef public str space
    cdef public object times

    cpdef Py_ssize_t count_destinations(self)
    cpdef bint is_reachable(self)
    @cython.locals(taker=AddressEntry)
    cpdef Py_ssize_t bytes_to_gather(self, Arrival arrival) except -1
    cpdef add_consumer(self, outgoing)
    cpdef add_subscription(self, subscription)
    cpdef bint is_unused(self)
    cdef _notify_users(self)
    cdef _wake_senders(self)

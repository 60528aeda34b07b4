cimport cython

from trouter.engine cimport deliveries
from trouter.engine.connection cimport Connection
from trouter.engine.link cimport IncomingLink, OutgoingLink
from trouter.engine.ports cimport Delivery, LinkPort, LinkSink, SessionPort

cdef int _ACCEPTED
cdef int _REJECTED
cdef int _RELEASED
cdef int _MODIFIED
cdef bytes _ACCEPTED_STATE
cdef Py_ssize_t _BATCH_BYTES
cdef Py_ssize_t _MAX_SAMPLES


cdef class LoadTally:
    cdef public Py_ssize_t left
    cdef public bint timed
    cdef public Py_ssize_t begun
    cdef public Py_ssize_t messages
    cdef public Py_ssize_t body_bytes
    cdef public Py_ssize_t accepted
    cdef public Py_ssize_t rejected
    cdef public Py_ssize_t released
    cdef public Py_ssize_t modified
    cdef public Py_ssize_t presettled
    cdef public Py_ssize_t no_outcome
    cdef public Py_ssize_t wire_in
    cdef public Py_ssize_t wire_out
    cdef public double first_s
    cdef public double last_s
    cdef public object latencies_s

    cpdef mark(self)


cdef class SentDelivery(Delivery):
    cdef public double sent_at_s


cdef class LoadSender(LinkSink):
    cdef public Py_ssize_t in_flight
    cdef LoadTally _tally
    cdef list _messages
    cdef Py_ssize_t _window
    cdef bint _presettled
    cdef bytes _filler
    cdef Py_ssize_t _repeats
    cdef list _links
    cdef Py_ssize_t _next
    cdef SentDelivery _current
    cdef OutgoingLink _link
    cdef bytes _data
    cdef Py_ssize_t _offset
    cdef Py_ssize_t _repeats_left

    @cython.locals(link=OutgoingLink)
    cpdef bint paused(self)
    @cython.locals(tally=LoadTally, links=list, messages=list, out=bytearray, passed=Py_ssize_t, width=Py_ssize_t, link=OutgoingLink, session=SessionPort, delivery=SentDelivery, data=bytes)
    cpdef bint fill(self, Connection connection) except -1
    @cython.locals(link=OutgoingLink, delivery=SentDelivery, tally=LoadTally, data=bytes, start=Py_ssize_t, end=Py_ssize_t, more=bint)
    cdef bint _go_on(self) except -1
    @cython.locals(tally=LoadTally, code=int, sent=SentDelivery)
    cpdef on_disposition(self, Delivery delivery)
    @cython.locals(outgoing=OutgoingLink)
    cpdef on_credit(self, LinkPort link)


cdef class LoadReceiver(LinkSink):
    cdef public bint stalled
    cdef LoadTally _tally
    cdef Py_ssize_t _credit
    cdef Py_ssize_t _top_up

    cpdef Delivery make_delivery(self, LinkPort link)
    @cython.locals(tally=LoadTally, used=Py_ssize_t, incoming=IncomingLink)
    cpdef on_transfer(self, LinkPort link, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)


cdef class Wire:
    cdef public Connection connection
    cdef public object sock
    cdef public LoadSender sender
    cdef public object context
    cdef public bint lost
    cdef LoadTally _tally

    @cython.locals(tally=LoadTally, before=Py_ssize_t, body_bytes=Py_ssize_t)
    cpdef read(self)
    @cython.locals(connection=Connection, out=bytearray, tally=LoadTally, sender=LoadSender, again=bint, sent=Py_ssize_t)
    cpdef bint write(self) except -1

cimport cython

from trouter.core.counters cimport Counters, Latency, Outcomes
from trouter.core.message cimport Arrival, Fanout, IncomingDelivery, Message, OutgoingDelivery
from trouter.core.tracing cimport Tracing
from trouter.engine.ports cimport LinkSink
from trouter.wire.sections cimport MessageScan

cdef int _FIRST_OUTCOME


@cython.final
cdef class SharedState:
    cdef public bint stopping
    cdef public object network
    cdef public object uplink
    cdef public object times
    cdef public Tracing tracing
    cdef public MessageScan scan
    cdef public MessageScan anonymous_scan
    cdef public double now_s
    cdef public Py_ssize_t next_tag
    cdef public Py_ssize_t overdrawn
    cdef public list overdrawing
    cdef public dict owed_accounts
    cdef public object owed_listeners
    cdef public Outcomes outcomes
    cdef public Latency latency

    cpdef note_owed(self, incoming)


cdef class DeliverySource(LinkSink):
    cdef public SharedState shared
    cdef public Counters counters
    cdef public Py_ssize_t connection_number
    cdef public object tenant
    cdef public object trunk
    cdef public bint via_edge
    cdef public bint by_name
    cdef public Arrival arrival

    cpdef bytes write_whole(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint strips_annotations)
    cpdef Message build_message(self, IncomingDelivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef bytes write_head(self, Message message, bytes head, bint strips_annotations)
    cpdef bytes write_onward(self, Message message, str to, int phase)
    cpdef accept_delivery(self, IncomingDelivery delivery)
    cpdef answer_delivery(self, IncomingDelivery delivery, int code, bytes state, bint settled)


@cython.locals(source=DeliverySource, fanout=Fanout, counted=bint)
cpdef notify_sender(OutgoingDelivery out, IncomingDelivery sender_delivery, int code, bytes state, bint settled)

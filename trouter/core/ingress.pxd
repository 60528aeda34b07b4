cimport cython

from trouter.core.check cimport MessageCheck
from trouter.core.counters cimport AddressCounters, Counters
from trouter.core.egress cimport Egress
from trouter.core.message cimport Message
from trouter.core.network cimport Network
from trouter.core.passage cimport Marker, Passage
from trouter.core.ports cimport InEndpoint, Pulse
from trouter.core.record cimport Record
from trouter.core.times cimport TimesByAddress
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport Delivery, LinkPort
from trouter.wire cimport octets
from trouter.wire.order cimport SectionOrder
from trouter.wire.sections cimport MessageScan

cdef Py_ssize_t _STREAM_AT
cdef Py_ssize_t _MAX_HEAD_BYTES
cdef int _THROUGH_ANNOTATIONS
cdef int _THROUGH_PROPERTIES
cdef int _DEFAULT_PRIORITY
cdef int _HIGHEST_PRIORITY


cdef class Ingress(InEndpoint):
    cdef public IncomingLink link
    cdef public object log
    cdef public object gate
    cdef public Py_ssize_t identity
    cdef public double attached_at_s
    cdef public object pace
    cdef public Py_ssize_t family
    cdef public double dry_since_s
    cdef public object table
    cdef dict _known
    cdef int _known_phase
    cdef int _to_phase
    cdef public bint prompt
    cdef public Record record
    cdef public Py_ssize_t capacity
    cdef public bint is_fallback
    cdef public bint of_container
    cdef public MessageCheck check
    cdef SectionOrder _order
    cdef public AddressCounters totals
    cdef public Py_ssize_t pending
    cdef public Py_ssize_t noted
    cdef public Py_ssize_t unsettled
    cdef Py_ssize_t _window_bytes
    cdef MessageScan _scan
    cdef str _to
    cdef Py_ssize_t _cut_from
    cdef Py_ssize_t _cut_to
    cdef Passage _passage
    cdef public Marker marker

    cpdef open(self)
    cpdef destination_appeared(self)
    cpdef on_drained(self, LinkPort link)
    cpdef on_overdrawn(self, LinkPort link)
    cpdef on_refused(self, LinkPort link, Delivery delivery)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t)
    cdef _top_up(self)
    cpdef top_up(self)
    @cython.locals(link=IncomingLink, owed=Py_ssize_t, came=Py_ssize_t)
    cpdef bint return_owed(self) except -1
    cdef _grant(self, Py_ssize_t count)
    @cython.locals(message=Message)
    cpdef on_transfer(self, LinkPort link, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(whole=bytes, settled=bint, copy=Delivery, egress=Egress)
    cdef _continue(self, Delivery delivery, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(only=Delivery, sole=Egress, copy=Delivery, egress=Egress)
    cdef _send_on(self, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef bint _stands_in_order(self, Delivery delivery, Message message, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef _tell_of(self, Message message, bytes whole)
    cdef bint _must_not_wait(self, Message message)
    @cython.locals(scan=MessageScan, record=Record, passage=Passage, depth=int, check=MessageCheck, priority=int, inspected=bytes, most=Py_ssize_t)
    cdef _route(self, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    @cython.locals(scan=MessageScan)
    cdef bytes _inspect(self, MessageCheck check, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, Message message)
    @cython.locals(more=Py_ssize_t)
    cdef bint _waits_on(self, Message message, Py_ssize_t most)
    cpdef comes_from(self, trunk)
    cpdef comes_from_edge(self)
    cdef bint _must_gather(self, Message message, Passage passage)
    @cython.locals(network=Network, marker=Marker, trace=tuple)
    cdef bint _came_too_far(self, Passage passage)
    cdef bytes _stamp(self, MessageCheck check, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, bint complete)
    @cython.locals(scan=MessageScan, text=bytes, record=Record, phase=int, check=MessageCheck)
    cdef Record _find(self, Delivery delivery, Message message, bytes data, Passage passage)
    @cython.locals(presettled=bint, count=Py_ssize_t, inside=Py_ssize_t, through=Py_ssize_t)
    cdef _forward(self, Delivery delivery, Record record, bytes data, Py_ssize_t start, Py_ssize_t end, Message message)
    cdef _undeliverable(self, Delivery delivery, Message message)
    cdef _refuse(self, Delivery delivery, Message message, int code, bytes state)
    cdef _end(self, Delivery delivery, int code, bytes state)
    cdef _finish(self, Delivery delivery, int code, bytes state)
    @cython.locals(age_s=double, times=TimesByAddress)
    cdef _count_end(self, Delivery delivery, int code)
    cdef _count_presettled(self)
    cdef _count_dropped(self)
    cpdef accept(self, Delivery delivery)
    @cython.locals(message=Message)
    cpdef answer(self, Delivery delivery, int code, bytes state, bint settled)
    @cython.locals(settled=bint)
    cpdef on_disposition(self, Delivery delivery)
    @cython.locals(out=Delivery, egress=Egress)
    cdef _relay_sender(self, Delivery delivery, int code, bytes state, bint settled)
    cpdef on_aborted(self, LinkPort link, Delivery delivery)
    @cython.locals(message=Message, out=Delivery, egress=Egress)
    cdef _take_back(self, Delivery delivery)
    @cython.locals(delivery=Delivery)
    cpdef lost(self, list own=*)
    @cython.locals(message=Message)
    cpdef Message build_message(self, Delivery delivery, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(message=Message)
    cdef Message _keep(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    cdef _describe(self, Message message, str to, int phase, Py_ssize_t start)
    @cython.locals(passage=Passage, section=bytes)
    cpdef bytes write_head(self, Message message, bytes head, bint plain)
    @cython.locals(passage=Passage, section=bytes)
    cpdef bytes write(self, bytes data, Py_ssize_t start, Py_ssize_t end, bint plain)
    @cython.locals(head=bytes, section=bytes)
    cpdef bytes write_onward(self, Message message, str to, int phase)
    cdef Record _look_up(self, Delivery delivery, Message message, bytes text)

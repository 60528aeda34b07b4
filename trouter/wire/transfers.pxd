cimport cython

from trouter.wire.codec cimport be32, skip
from trouter.wire cimport octets

cdef int _ABSENT
cdef int _KEPT
cdef int _CUT

@cython.locals(raw=cython.p_uchar)
cpdef int read_descriptor(bytes data, Py_ssize_t start, Py_ssize_t end) except? -1


cdef class FieldReader:
    cdef bytes _data
    cdef Py_ssize_t _offset
    cdef Py_ssize_t _end
    cdef Py_ssize_t _list_end
    cdef Py_ssize_t _count
    cdef Py_ssize_t _index
    cdef str _name

    @cython.locals(offset=Py_ssize_t, size=Py_ssize_t, code=int)
    cdef _open_list(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(offset=Py_ssize_t, code=int)
    cdef int _next_code(self) except? -1
    @cython.locals(offset=Py_ssize_t)
    cdef Py_ssize_t _pass_bytes(self, Py_ssize_t count) except -1
    cdef object _wrong_type(self, str expected)
    @cython.locals(code=int)
    cdef Py_ssize_t _read_uint(self) except? -1
    @cython.locals(code=int, octet=int)
    cdef int _read_flag(self) except? -1
    @cython.locals(code=int)
    cdef int _read_ubyte(self) except? -1
    @cython.locals(start=Py_ssize_t)
    cdef Py_ssize_t _pass_value(self) except? -1
    cdef _close_list(self)


cdef class StateReader(FieldReader):
    cdef public bytes state
    cdef public int state_code
    cdef public int undecodable
    cdef bytes _seen

    @cython.locals(data=bytes, offset=Py_ssize_t, start=Py_ssize_t)
    cdef _read_state(self)
    @cython.locals(state=bytes)
    cdef _check_state(self)


@cython.final
cdef class TransferReader(StateReader):
    cdef public Py_ssize_t handle
    cdef public Py_ssize_t delivery_id
    cdef Py_ssize_t _tag_start
    cdef Py_ssize_t _tag_end
    cdef public Py_ssize_t message_format
    cdef public int settled
    cdef public bint more
    cdef public int rcv_settle_mode
    cdef public bint resume
    cdef public bint aborted
    cdef public bint batchable
    cdef public Py_ssize_t payload

    cpdef bint has_tag(self)
    cpdef bint has_long_tag(self)
    cpdef bytes copy_delivery_tag(self)
    @cython.locals(code=int, size=Py_ssize_t)
    cdef _read_tag(self)
    cpdef parse(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(raw=cython.p_uchar, list_end=Py_ssize_t, offset=Py_ssize_t, code=int)
    cdef bint _parse_usual(self, bytes data, Py_ssize_t start, Py_ssize_t end) except? -1


@cython.final
cdef class DispositionReader(StateReader):
    cdef public int role
    cdef public Py_ssize_t first
    cdef public Py_ssize_t last
    cdef public bint settled

    cpdef parse(self, bytes data, Py_ssize_t start, Py_ssize_t end)


@cython.final
cdef class FlowReader(FieldReader):
    cdef public Py_ssize_t next_incoming_id
    cdef public Py_ssize_t incoming_window
    cdef public Py_ssize_t next_outgoing_id
    cdef public Py_ssize_t outgoing_window
    cdef public Py_ssize_t handle
    cdef public Py_ssize_t delivery_count
    cdef public Py_ssize_t link_credit
    cdef public Py_ssize_t available
    cdef public bint drain
    cdef public bint echo

    cpdef parse(self, bytes data, Py_ssize_t start, Py_ssize_t end)


@cython.final
cdef class FrequentFrames:
    cdef public TransferReader transfer
    cdef public DispositionReader disposition
    cdef public FlowReader flow

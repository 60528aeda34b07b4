cimport cython

from trouter_pipeline.columns cimport Lists, Numbers, Texts
from trouter_pipeline.fields cimport content_of, put_flag, put_text, put_time, put_whole, typed_key
from trouter_pipeline.values cimport ValueReader
from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _MAX_ENTRIES, _MAX_ERROR, _HEAD_BYTES, _GUARD_BYTES, _MASK32
cdef Py_ssize_t _HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS, _PROPERTIES, _APPLICATION_PROPERTIES
cdef Py_ssize_t _DATA, _SEQUENCE, _VALUE, _FOOTER
cdef bytes _RANKS, _COLON, _STRING, _SYMBOL
cdef list _NAMES
cdef frozenset _IDS
cdef dict _BODY_KINDS


cdef class Rows:
    cdef readonly Py_ssize_t next
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t octets
    cdef readonly Py_ssize_t refused
    cdef readonly str first_error
    cdef readonly dict columns
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _max_message
    cdef Py_ssize_t _items
    cdef Py_ssize_t _item_count
    cdef Py_ssize_t _parts
    cdef Py_ssize_t _first
    cdef Py_ssize_t _first_end
    cdef dict _texts
    cdef ValueReader _reader
    cdef Numbers _seq
    cdef Numbers _ingest_time
    cdef Texts _delivery_tag
    cdef Numbers _message_format
    cdef Numbers _settled
    cdef Numbers _has_header
    cdef Numbers _durable
    cdef Numbers _priority
    cdef Numbers _ttl
    cdef Numbers _first_acquirer
    cdef Numbers _delivery_count
    cdef Lists _delivery_annotations
    cdef Lists _message_annotations
    cdef Texts _message_id
    cdef Texts _message_id_type
    cdef Texts _user_id
    cdef Texts _correlation_id
    cdef Texts _correlation_id_type
    cdef Numbers _expiry_time
    cdef Numbers _creation_time
    cdef Numbers _group_sequence
    cdef Lists _application_properties
    cdef Texts _body_kind
    cdef Texts _body
    cdef Lists _body_parts
    cdef Texts _body_value
    cdef Lists _footer
    cdef Texts _error
    cdef Texts _raw

    cpdef expect_like(self, Rows other)
    cpdef bint full(self) except -1
    @cython.locals(size=Py_ssize_t, end=Py_ssize_t, tag=Py_ssize_t, message=Py_ssize_t, row=Py_ssize_t)
    cpdef Py_ssize_t add(self, bytes data, Py_ssize_t offset) except -1
    cpdef object finish(self)
    cdef object _refuse(self, Py_ssize_t row, bytes data, Py_ssize_t start, Py_ssize_t end, object error)
    @cython.locals(
        last=Py_ssize_t, body=Py_ssize_t, first=Py_ssize_t, text=bytearray, start=Py_ssize_t, code=Py_ssize_t,
        rank=Py_ssize_t
    )
    cdef int _message(self, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef Py_ssize_t _data_section(self, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    cdef Py_ssize_t _fields(self, Py_ssize_t code, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    cdef int _put_text(self, Texts column, Py_ssize_t row, bytes text) except -1
    cdef Py_ssize_t _rare_section(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(code=Py_ssize_t, behind=Py_ssize_t, width=Py_ssize_t)
    cdef Py_ssize_t _open(self, bytes data, Py_ssize_t offset, Py_ssize_t end, Py_ssize_t short) except -1
    @cython.locals(behind=Py_ssize_t, place=Py_ssize_t)
    cdef Py_ssize_t _header(self, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t, place=Py_ssize_t, column=Texts, name=str)
    cdef Py_ssize_t _properties(self, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef Py_ssize_t _id(self, Texts column, Texts kinds, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef Py_ssize_t _user(self, Py_ssize_t row, bytes data, Py_ssize_t offset, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t, count=Py_ssize_t, reader=ValueReader, keys=set, _=Py_ssize_t, key=bytes)
    cdef Py_ssize_t _map(self, Py_ssize_t row, Lists column, bytes data, Py_ssize_t offset, Py_ssize_t end, bytes usual) except -1

cimport cython

from trouter.wire.codec cimport be32, skip

cdef Py_ssize_t _HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS, _PROPERTIES, _FOOTER, _OTHER, _CUT
cdef Py_ssize_t _MAX_SECTION_BYTES, _MAX_ANNOTATIONS_BYTES, _LONGEST_SYMBOL
cdef dict _SYMBOLS
cdef bytes _WIDE_ULONG

@cython.final
cdef class MessageScan:
    cdef Py_ssize_t _content
    cdef Py_ssize_t _items
    cdef Py_ssize_t _count
    cdef readonly bint reads_to
    cdef readonly Py_ssize_t priority
    cdef readonly Py_ssize_t annotations_start
    cdef readonly Py_ssize_t annotations_end
    cdef readonly Py_ssize_t insert_at
    cdef readonly Py_ssize_t properties_start
    cdef readonly Py_ssize_t properties_end
    cdef readonly Py_ssize_t to_start
    cdef readonly Py_ssize_t to_end
    cdef readonly Py_ssize_t user_id_start
    cdef readonly Py_ssize_t user_id_end

    cdef object _reset_offsets(self, Py_ssize_t start)
    @cython.locals(offset=Py_ssize_t, expected=Py_ssize_t, last=Py_ssize_t, code=Py_ssize_t, behind=Py_ssize_t)
    cpdef int scan_sections(self, bytes data, Py_ssize_t start, Py_ssize_t end, int depth, bint complete) except -1
    cpdef object read_to(self, bytes data)
    cpdef object read_user_id(self, bytes data)
    @cython.locals(octets=cython.p_uchar, code=Py_ssize_t)
    cdef Py_ssize_t _read_section_code(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except? -3
    @cython.locals(left=Py_ssize_t, constructor=Py_ssize_t, code=Py_ssize_t, name=Py_ssize_t, size=Py_ssize_t)
    cdef Py_ssize_t _read_rare_section_code(self, bytes data, Py_ssize_t offset, Py_ssize_t end) except? -3
    @cython.locals(octets=cython.p_uchar, offset=Py_ssize_t, constructor=Py_ssize_t, is_list=bint, size=Py_ssize_t)
    cdef Py_ssize_t _measure_section(self, bytes data, Py_ssize_t end, Py_ssize_t code) except? -3
    @cython.locals(offset=Py_ssize_t)
    cdef object _read_header(self, bytes data, Py_ssize_t end)
    @cython.locals(octets=cython.p_uchar, start=Py_ssize_t, behind=Py_ssize_t)
    cdef object _read_properties(self, bytes data, Py_ssize_t end)

cdef Py_ssize_t _prefix(Py_ssize_t constructor, Py_ssize_t short, Py_ssize_t long, str field, Py_ssize_t offset) except? -3

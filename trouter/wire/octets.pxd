from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy


cdef inline Py_ssize_t get_uint32(bytes data, Py_ssize_t offset) noexcept:
    cdef const unsigned char* there = <const unsigned char*>PyBytes_AS_STRING(data) + offset
    return <Py_ssize_t>there[0] << 24 | <Py_ssize_t>there[1] << 16 | <Py_ssize_t>there[2] << 8 | there[3]


cdef inline int append_slice(bytearray out, bytes data, Py_ssize_t start, Py_ssize_t end) except -1:
    cdef Py_ssize_t before = PyByteArray_GET_SIZE(out)
    PyByteArray_Resize(out, before + end - start)
    memcpy(PyByteArray_AS_STRING(out) + before, PyBytes_AS_STRING(data) + start, end - start)
    return 0


cdef inline int lengthen(bytearray out, Py_ssize_t size) except -1:
    PyByteArray_Resize(out, size)
    return 0


cdef inline int put_slice(bytearray target, Py_ssize_t offset, bytes data, Py_ssize_t start, Py_ssize_t end) noexcept:
    memcpy(PyByteArray_AS_STRING(target) + offset, PyBytes_AS_STRING(data) + start, end - start)
    return 0


cdef inline int put_uint32(bytearray target, Py_ssize_t offset, Py_ssize_t value) noexcept:
    cdef unsigned char* there = <unsigned char*>PyByteArray_AS_STRING(target) + offset
    there[0] = (value >> 24) & 0xFF
    there[1] = (value >> 16) & 0xFF
    there[2] = (value >> 8) & 0xFF
    there[3] = value & 0xFF
    return 0


cdef inline int put_tag(bytearray target, Py_ssize_t offset, Py_ssize_t number) noexcept:
    cdef unsigned char* there = <unsigned char*>PyByteArray_AS_STRING(target) + offset
    cdef int octet
    for octet in range(8):
        there[octet] = (number >> (8 * octet)) & 0xFF
    return 0


cdef inline bytes cut(bytes data, Py_ssize_t start, Py_ssize_t end):
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start)


cdef inline bint stands_at(bytes part, bytes data, Py_ssize_t start, Py_ssize_t end) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(part)
    return end - start == size and memcmp(PyBytes_AS_STRING(part), PyBytes_AS_STRING(data) + start, size) == 0


cdef inline bytes replaced(bytes data, Py_ssize_t start, Py_ssize_t gap, bytes part, Py_ssize_t behind, Py_ssize_t end):
    cdef Py_ssize_t ahead = gap - start
    cdef Py_ssize_t size = PyBytes_GET_SIZE(part)
    cdef bytes whole = PyBytes_FromStringAndSize(NULL, ahead + size + end - behind)
    cdef char* there = PyBytes_AS_STRING(whole)
    memcpy(there, PyBytes_AS_STRING(data) + start, ahead)
    memcpy(there + ahead, PyBytes_AS_STRING(part), size)
    memcpy(there + ahead + size, PyBytes_AS_STRING(data) + behind, end - behind)
    return whole


cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <string.h>
    #ifndef __APPLE__
    extern void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """
    void* memmem(const void* data, size_t size, const void* part, size_t part_size) noexcept


cdef inline Py_ssize_t find_part(bytes part, bytes data, Py_ssize_t start, Py_ssize_t end) noexcept:
    cdef char* there = PyBytes_AS_STRING(data)
    cdef char* found = <char*>memmem(there + start, end - start, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))
    return -1 if found == NULL else found - there


cdef inline int octet_at(bytes data, Py_ssize_t place) noexcept:
    return (<unsigned char*>PyBytes_AS_STRING(data))[place]


cdef inline bint is_less_at(bytes data, Py_ssize_t place, bytes part) noexcept:
    return memcmp(PyBytes_AS_STRING(data) + place, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part)) < 0

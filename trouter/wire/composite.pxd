cimport cython

cdef dict _TABLES, _CLASSES, _CODES, _PLAIN, _NESTED

cdef class Field:
    cdef readonly str name
    cdef readonly str amqp
    cdef readonly bint multiple
    cdef readonly object default
    cdef readonly bint mandatory
    cdef readonly object plain
    cdef readonly object given
    cdef readonly object low
    cdef readonly object high

cpdef bytes encode(object composite)
@cython.locals(values=list, field=Field, count=Py_ssize_t)
cdef object _described(object composite)
cdef object _to_wire(Field field, object value)
cdef object _plain_to_wire(Field field, object value)
cdef object _multiple_to_wire(Field field, object value)
cpdef object from_described(object described)
@cython.locals(table=tuple, found=dict, field=Field)
cpdef object from_values(object cls, object values)
cdef object _from_wire(object cls, Field field, object value)

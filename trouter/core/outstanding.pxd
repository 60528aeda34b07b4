cdef class Outstanding:
    cdef public Py_ssize_t count

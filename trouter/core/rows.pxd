cdef object _uint(double value)
cdef object _ulong(long long value)

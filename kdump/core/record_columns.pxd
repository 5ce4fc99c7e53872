# What other compiled modules may call without going through Python.
cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) read_rows(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, long long count, bint final,
    long long[::1] rows, Py_ssize_t at, Py_ssize_t room
) noexcept nogil
cpdef Py_ssize_t decode(columns, Py_ssize_t position, Py_ssize_t end, long long count, bint final) except -1
cpdef bint decode_all(columns, Py_ssize_t position, Py_ssize_t end, long long count) except -1

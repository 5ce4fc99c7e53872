# What other compiled modules may call without going through Python.
cdef Py_ssize_t put_time(unsigned char* out, Py_ssize_t at, long long milliseconds) noexcept nogil
cdef Py_ssize_t put_plain_bytes(
    unsigned char* out, Py_ssize_t to, unsigned char* data, Py_ssize_t at, long long size, bint is_last
) noexcept nogil
cdef Py_ssize_t put_plain_headers(
    unsigned char* out, Py_ssize_t to, unsigned char* data, Py_ssize_t position, long long count
) noexcept nogil

# What other compiled modules may call without going through Python.
cdef Py_ssize_t put_json_bytes(
    unsigned char* out, Py_ssize_t to, bint is_value, unsigned char* data, Py_ssize_t at, long long size
) noexcept nogil
cdef Py_ssize_t put_json_headers(
    unsigned char* out, Py_ssize_t to, unsigned char* data, Py_ssize_t position, long long count
) noexcept nogil

# What other compiled modules may call without going through Python.
cdef Py_ssize_t put_number(unsigned char* out, Py_ssize_t at, long long number) noexcept nogil
cdef Py_ssize_t put_text(unsigned char* out, Py_ssize_t at, unsigned char* text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t put_piece(
    unsigned char* out, Py_ssize_t at, unsigned char* text, Py_ssize_t start, Py_ssize_t stop
) noexcept nogil
cdef (long long, Py_ssize_t) header_size(unsigned char* data, Py_ssize_t position) noexcept nogil

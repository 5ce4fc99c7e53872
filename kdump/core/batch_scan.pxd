# What other compiled modules may call without going through Python.
cdef unsigned int crc(const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end, unsigned int[::1] table) noexcept

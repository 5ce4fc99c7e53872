# What other compiled modules may call without going through Python.
cdef unsigned int crc(const unsigned char* data, Py_ssize_t at, Py_ssize_t end, unsigned int* table) noexcept

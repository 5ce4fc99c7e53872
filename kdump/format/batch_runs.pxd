# What other compiled modules may call without going through Python.
cdef unsigned int crc(const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end, unsigned int[::1] table) noexcept
cdef long long int32(const unsigned char[::1] data, Py_ssize_t at) noexcept
cdef long long int64(const unsigned char[::1] data, Py_ssize_t at) noexcept

# What other compiled modules may call without going through Python.
cpdef Py_ssize_t decode(columns, Py_ssize_t position, Py_ssize_t end, long long count, bint final) except -1
cpdef bint decode_all(columns, Py_ssize_t position, Py_ssize_t end, long long count) except -1

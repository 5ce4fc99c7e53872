# What other compiled modules may call without going through Python.
cdef long long sequence_at(long long base, long long delta) noexcept nogil

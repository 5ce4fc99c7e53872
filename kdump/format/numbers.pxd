# The sums of numbers.py for compiled modules, which take them from here: those are never undefined in C.
cdef inline long long plus(long long one, long long other) noexcept nogil:
    return <long long>(<unsigned long long>one + <unsigned long long>other)

cdef inline long long minus(long long one, long long other) noexcept nogil:
    return <long long>(<unsigned long long>one - <unsigned long long>other)

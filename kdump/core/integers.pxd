# cython: boundscheck=False, wraparound=False, initializedcheck=False
from libc.string cimport memcpy

# The functions of integers.py for compiled modules; their arithmetic is never undefined in C.
cdef inline long long plus(long long one, long long other) noexcept nogil:
    return <long long>(<unsigned long long>one + <unsigned long long>other)

cdef inline long long minus(long long one, long long other) noexcept nogil:
    return <long long>(<unsigned long long>one - <unsigned long long>other)

cdef inline long long sequence_at(long long base, long long delta) noexcept nogil:
    if base < 0:
        return -1
    if base > 2147483647 - delta:
        return delta - (2147483647 - base) - 1
    return base + delta

cdef inline long long int16_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <short>(<unsigned int>data[at] << 8 | data[at + 1])

cdef inline long long uint32_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return (
        <unsigned int>data[at] << 24
        | <unsigned int>data[at + 1] << 16
        | <unsigned int>data[at + 2] << 8
        | data[at + 3]
    )

cdef inline long long int32_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <int><unsigned int>uint32_at(data, at)

cdef inline long long int64_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <long long>(<unsigned long long>uint32_at(data, at) << 32 | <unsigned long long>uint32_at(data, at + 4))

cdef inline (long long, Py_ssize_t) varint_at(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, unsigned int bits
) noexcept nogil:
    cdef unsigned long long value = 0
    cdef unsigned int shift = 0
    cdef unsigned long long byte
    while position < end and shift < bits:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if bits == 32:
                value = <unsigned int>value
            return (<long long>((value >> 1) ^ (0 - (value & 1))), position)
        shift += 7
    return (0, -1)

cdef inline (long long, Py_ssize_t) bits_at(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil:
    cdef unsigned long long value = 0
    cdef unsigned int shift = 0
    cdef unsigned long long byte
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift and (byte == 0 or (shift == 63 and byte > 1)):
                return (0, -1)
            return (<long long>value, position)
        shift += 7
    return (0, -1)

cdef inline double double_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    cdef unsigned long long bits = 0
    cdef double value
    cdef int i
    for i in range(8):
        bits |= <unsigned long long>data[at + i] << 8 * i
    memcpy(&value, &bits, 8)
    return value

cdef inline long long rounded(double value) noexcept nogil:
    return <long long>(value + 0.5)

cdef inline (long long, Py_ssize_t) valid_size_at(unsigned char* data, Py_ssize_t position) noexcept nogil:
    cdef unsigned long long size = 0
    cdef unsigned int shift = 0
    while data[position] >= 0x80:
        size |= <unsigned long long>(data[position] & 0x7F) << shift
        shift += 7
        position += 1
    size = <unsigned int>(size | <unsigned long long>data[position] << shift)
    return (<long long>(size >> 1) ^ -<long long>(size & 1), position + 1)

cdef inline Py_ssize_t size_class(long long size) noexcept nogil:
    cdef Py_ssize_t number = 0
    while size > 0 and number < 33:
        size >>= 1
        number += 1
    return number

# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# The functions of output_buffer.py for compiled modules.
from libc.string cimport memcpy

cdef enum:
    SLACK = 16

cdef inline Py_ssize_t put_number(unsigned char* out, Py_ssize_t at, long long number) noexcept nogil:
    cdef const char* pairs = (
        b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        b"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"
    )
    cdef unsigned long long rest = number
    cdef unsigned long long high
    cdef Py_ssize_t digits = 1
    cdef Py_ssize_t end
    if number < 0:
        out[at] = 45
        at += 1
        rest = 0 - rest
    high = rest
    while high >= 100000000:
        digits += 8
        high = high // 100000000
    if high >= 10000:
        digits += 4
        high = high // 10000
    if high >= 100:
        digits += 2
        high = high // 100
    end = at + digits + (high >= 10)
    at = end
    while rest >= 100:
        at -= 2
        memcpy(out + at, pairs + 2 * (rest % 100), 2)
        rest = rest // 100
    if rest >= 10:
        memcpy(out + at - 2, pairs + 2 * rest, 2)
    else:
        out[at - 1] = <unsigned char>(48 + rest)
    return end

cdef inline Py_ssize_t put_text(
    unsigned char* out, Py_ssize_t at, const unsigned char* text, Py_ssize_t size
) noexcept nogil:
    memcpy(out + at, text, size)
    return at + size

cdef inline Py_ssize_t put_piece(
    unsigned char* out, Py_ssize_t at, const unsigned char* texts, Py_ssize_t start, Py_ssize_t stop
) noexcept nogil:
    # A copy of constant size is a single instruction; most pieces are shorter.
    cdef Py_ssize_t done = SLACK
    memcpy(out + at, texts + start, SLACK)
    while done < stop - start:
        memcpy(out + at + done, texts + start + done, SLACK)
        done += SLACK
    return at + stop - start

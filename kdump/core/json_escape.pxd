# Escapes for JSON in blocks of eight bytes: SSSE3 (chosen at run time) or NEON; elsewhere json_values.py goes byte by byte.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <cpuid.h>
    #include <tmmintrin.h>
    #define KDUMP_VECTOR __attribute__((target("ssse3")))
    #define KDUMP_HAS_VECTOR kdump_has_ssse3()
    /* __builtin_cpu_supports needs a symbol of the compiler's library, which zig does not link into a module. */
    static inline int kdump_has_ssse3(void) {
        unsigned eax, ebx, ecx = 0, edx;
        return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_SSSE3);
    }
    typedef __m128i kdump_block;
    KDUMP_VECTOR static inline kdump_block kdump_load(const unsigned char *at) {
        return _mm_loadu_si128((const __m128i *)at);
    }
    /* Bit i is set if byte i of the lower half: is a quote or a backslash; is anything else that JSON changes. */
    KDUMP_VECTOR static inline void kdump_masks(kdump_block eight, unsigned *quotes, unsigned *others) {
        __m128i quote = _mm_or_si128(_mm_cmpeq_epi8(eight, _mm_set1_epi8(34)), _mm_cmpeq_epi8(eight, _mm_set1_epi8(92)));
        __m128i other = _mm_or_si128(_mm_cmplt_epi8(eight, _mm_set1_epi8(32)), _mm_cmpeq_epi8(eight, _mm_set1_epi8(127)));
        *quotes = _mm_movemask_epi8(quote) & 255;
        *others = _mm_movemask_epi8(other) & 255;
    }
    KDUMP_VECTOR static inline void kdump_store(unsigned char *out, kdump_block eight, const unsigned char *order) {
        _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(eight, kdump_load(order)));
    }
    KDUMP_VECTOR static inline kdump_block kdump_eight(uint64_t bytes) {
        return _mm_set_epi64x(0x5c5c5c5c5c5c5c5c, (int64_t)bytes);
    }
    #elif defined(__GNUC__) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #include <arm_neon.h>
    #define KDUMP_VECTOR
    #define KDUMP_HAS_VECTOR 1
    typedef uint8x16_t kdump_block;
    static inline unsigned kdump_bits(uint8x8_t found) {
        static const uint8_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
        return vaddv_u8(vand_u8(found, vld1_u8(bits)));
    }
    static inline void kdump_masks(kdump_block block, unsigned *quotes, unsigned *others) {
        uint8x8_t eight = vget_low_u8(block);
        *quotes = kdump_bits(vorr_u8(vceq_u8(eight, vdup_n_u8(34)), vceq_u8(eight, vdup_n_u8(92))));
        *others = kdump_bits(vorr_u8(vclt_u8(eight, vdup_n_u8(32)), vcge_u8(eight, vdup_n_u8(127))));
    }
    static inline void kdump_store(unsigned char *out, kdump_block eight, const unsigned char *order) {
        vst1q_u8(out, vqtbl1q_u8(eight, vld1q_u8(order)));
    }
    static inline kdump_block kdump_eight(uint64_t bytes) {
        return vcombine_u8(vcreate_u8(bytes), vdup_n_u8(92));
    }
    #endif

    #ifdef KDUMP_VECTOR
    /* By the quotes of a block: which of its bytes are written, a backslash (number 8) before each quote. */
    static unsigned char kdump_orders[256][16];
    static unsigned char kdump_sizes[256];

    KDUMP_VECTOR static Py_ssize_t kdump_escape(
        unsigned char *out, Py_ssize_t *to, const unsigned char *data, Py_ssize_t at, Py_ssize_t end
    ) {
        unsigned char *put = out + *to;
        unsigned quotes, others, count;
        uint64_t bytes;
        while (at < end) {
            /* The last block overlaps the one before; what it has beyond the end is thrown away as spaces. */
            count = end - at < 8 ? (unsigned)(end - at) : 8;
            memcpy(&bytes, data + at + count - 8, 8);
            if (count < 8)
                bytes = bytes >> (64 - 8 * count) | UINT64_C(0x2020202020202020) << 8 * count;
            kdump_block block = kdump_eight(bytes);
            kdump_masks(block, &quotes, &others);
            if (others) {
                count = (unsigned)__builtin_ctz(others);
                quotes &= (1u << count) - 1;
            }
            kdump_store(put, block, kdump_orders[quotes]);
            put += count + kdump_sizes[quotes];
            at += count;
            if (others)
                break;
        }
        *to = put - out;
        return at;
    }

    static int kdump_prepare(void) {
        unsigned quotes, byte, size;
        for (quotes = 0; quotes < 256; quotes++) {
            for (size = 0, byte = 0; byte < 8; byte++) {
                if (quotes >> byte & 1)
                    kdump_orders[quotes][size++] = 8;
                kdump_orders[quotes][size++] = byte;
            }
            kdump_sizes[quotes] = size - 8;
        }
        return KDUMP_HAS_VECTOR ? 1 : 0;
    }
    #else
    #define kdump_prepare() 0
    #define kdump_escape(out, to, data, at, end) (at)
    #endif
    """
    # Return whether this processor escapes in blocks. Once, before `escape_blocks`.
    bint prepare_blocks "kdump_prepare"() noexcept nogil
    # Write data[at:end] without its quotes at out[to[0]:], up to the first byte that is no ASCII text. There must be
    # eight bytes of data before `end`, and SLACK bytes in `out` after what is written. Raises to[0] by what is written;
    # returns the position of that byte, or `end`.
    Py_ssize_t escape_blocks "kdump_escape"(
        unsigned char* out, Py_ssize_t* to, const unsigned char* data, Py_ssize_t at, Py_ssize_t end
    ) noexcept nogil

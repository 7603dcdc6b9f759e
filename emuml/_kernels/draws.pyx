# Twin: emuml/_kernels/reference.py (the functions of the same names)
"""Draws by position: Philox4x64-10 words, and uniforms and unit exponentials made of one word each.

A draw is a pure function of (key, position): stateless, order-independent, equal on every machine. Only integer
arithmetic and IEEE + - * / are used, no libm, so the build must not contract ``a*b + c`` (``-ffp-contract=off``).
Source of the generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Nothing is checked here: callers hand over contiguous arrays of equal length.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stdint.h>

    /* High half of a 64 x 64 bit product, from 32-bit halves: for compilers without a 128-bit integer. */
    static inline uint64_t emuml_high_portable(uint64_t a, uint64_t b) {
        uint64_t a_low = a & 0xFFFFFFFFu, a_high = a >> 32, b_low = b & 0xFFFFFFFFu, b_high = b >> 32;
        uint64_t low = a_low * b_low, cross = a_high * b_low, other = a_low * b_high;
        uint64_t middle = (low >> 32) + (cross & 0xFFFFFFFFu) + other;  /* cannot overflow: < 2^64 */
        return a_high * b_high + (cross >> 32) + (middle >> 32);
    }

    #ifdef __SIZEOF_INT128__
    static inline uint64_t emuml_high(uint64_t a, uint64_t b) {
        return (uint64_t)(((unsigned __int128)a * b) >> 64);
    }
    #else
    #define emuml_high emuml_high_portable
    #endif
    """
    uint64_t emuml_high(uint64_t a, uint64_t b) noexcept nogil
    uint64_t emuml_high_portable(uint64_t a, uint64_t b) noexcept nogil


cdef inline uint64_t first_word(uint64_t low, uint64_t high, uint64_t position) noexcept nogil:
    # numpy increments the 256-bit counter before it makes a block, so position k is Philox counter k + 1.
    cdef uint64_t a = position + 1, b = a == 0, c = 0, d = 0
    cdef uint64_t first, second
    cdef int turn
    for turn in range(10):
        first = emuml_high(<uint64_t>0xD2E7470EE14C6C93, a)
        second = emuml_high(<uint64_t>0xCA5A826395121157, c)
        a, b, c, d = (
            second ^ b ^ low,
            c * <uint64_t>0xCA5A826395121157,
            first ^ d ^ high,
            a * <uint64_t>0xD2E7470EE14C6C93,
        )
        low += <uint64_t>0x9E3779B97F4A7C15
        high += <uint64_t>0xBB67AE8584CAA73B
    return a


cdef inline double uniform_of(uint64_t word) noexcept nogil:
    return <double><int64_t>(word >> 11) * 1.1102230246251565e-16  # 2**-53


cdef inline double exponential_of(uint64_t word) noexcept nogil:
    # -log(1 - u) with 1 - u = whole * 2**-53 exactly; the method is explained at the twin.
    cdef double whole = <double>(<int64_t>9007199254740992 - <int64_t>(word >> 11))
    cdef double x, f, s, z, w, odd, even, r, halvings
    cdef uint64_t bits
    cdef int64_t above
    memcpy(&bits, &whole, 8)
    halvings = <double>(1076 - <int64_t>(bits >> 52))
    bits = (bits & <uint64_t>0x000FFFFFFFFFFFFF) | <uint64_t>0x3FF0000000000000
    memcpy(&x, &bits, 8)
    above = x > 1.4142135623730951
    x *= 1.0 - 0.5 * <double>above
    halvings -= <double>above
    f = x - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = 0.6666666666666666 + w * (0.2857142857142857 + w * (
        0.18181818181818182 + w * (0.13333333333333333 + w * 0.10526315789473684)))
    even = 0.4 + w * (0.2222222222222222 + w * (
        0.15384615384615385 + w * (0.11764705882352941 + w * 0.09523809523809523)))
    r = z * (odd + z * even)
    return halvings * 0.6931471805598903 - (f - (s * (f - r) + halvings * 5.497923018708371e-14))


def multiply_high(uint64_t a, uint64_t b, bint portable):
    """Return the high 64 bits of ``a * b``, by the compiler's wide integer or from 32-bit halves."""
    return emuml_high_portable(a, b) if portable else emuml_high(a, b)


def word(uint64_t low, uint64_t high, uint64_t position):
    """Return the draw at ``position`` as a 64-bit word; ``low`` and ``high`` are the halves of the key."""
    return first_word(low, high, position)


def uniform(uint64_t low, uint64_t high, uint64_t position):
    """Return the draw at ``position`` as a uniform number in [0, 1)."""
    return uniform_of(first_word(low, high, position))


def unit_exponential(uint64_t low, uint64_t high, uint64_t position):
    """Return the draw at ``position`` as an exponential number of mean 1."""
    return exponential_of(first_word(low, high, position))


def words(uint64_t low, uint64_t high, const uint64_t[::1] positions, uint64_t[::1] out):
    """Write the words at ``positions`` to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(positions.shape[0]):
            out[index] = first_word(low, high, positions[index])


def uniforms(uint64_t low, uint64_t high, const uint64_t[::1] positions, double[::1] out):
    """Write the uniform numbers at ``positions`` to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(positions.shape[0]):
            out[index] = uniform_of(first_word(low, high, positions[index]))


def unit_exponentials(uint64_t low, uint64_t high, const uint64_t[::1] positions, double[::1] out):
    """Write the unit exponentials at ``positions`` to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(positions.shape[0]):
            out[index] = exponential_of(first_word(low, high, positions[index]))


def exponentials_of(const uint64_t[::1] words, double[::1] out):
    """Write the unit exponentials that given words stand for to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(words.shape[0]):
            out[index] = exponential_of(words[index])


def subset(uint64_t low, uint64_t high, Py_ssize_t size, uint8_t[::1] taken):
    """Set ``size`` entries of ``taken`` (all 0 before) to 1, every subset being equally likely."""
    cdef Py_ssize_t draw, last, chosen
    with nogil:
        for draw in range(size):
            last = taken.shape[0] - size + draw
            chosen = <Py_ssize_t>emuml_high(first_word(low, high, <uint64_t>draw), <uint64_t>last + 1)
            if taken[chosen]:
                chosen = last
            taken[chosen] = 1

"""Draws by position for kernels: Philox words, and uniforms and unit exponentials made of one word each.

Only integer arithmetic and IEEE + - * / are used, no libm, so the build must not contract ``a*b + c``
(``-ffp-contract=off``). Twin: emuml/_kernels/reference.py.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from "philox.h":
    uint64_t emuml_high(uint64_t a, uint64_t b) noexcept nogil
    uint64_t emuml_high_portable(uint64_t a, uint64_t b) noexcept nogil
    uint64_t first_word "emuml_first_word"(uint64_t low, uint64_t high, uint64_t position) noexcept nogil
    void emuml_key_words(
        const uint64_t *lows, const uint64_t *highs, uint64_t position, uint64_t *out, Py_ssize_t count
    ) noexcept nogil
    void emuml_key_words_plain(
        const uint64_t *lows, const uint64_t *highs, uint64_t position, uint64_t *out, Py_ssize_t count
    ) noexcept nogil


cdef inline double uniform_of(uint64_t word) noexcept nogil:
    return <double><int64_t>(word >> 11) * 1.1102230246251565e-16  # 2**-53


cdef inline double exponential_of(uint64_t word) noexcept nogil:
    # -log(1 - u) with 1 - u = whole * 2**-53 exactly.
    return negative_log(<double>(<int64_t>9007199254740992 - <int64_t>(word >> 11)), 1076)


cdef inline double negative_log(double value, int64_t bias) noexcept nogil:
    # -log(value * 2**(1023 - bias)) for a positive normal number; the method is explained at the twin.
    cdef double x, f, s, z, w, odd, even, r, halvings
    cdef uint64_t bits
    cdef int64_t above
    memcpy(&bits, &value, 8)
    halvings = <double>(bias - <int64_t>(bits >> 52))
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

"""Draws with other tails than the exponential one, from one word each, by IEEE + - * / and square roots only.

Twin: emuml/_kernels/reference_tails.py, which explains the methods.
"""

from libc.math cimport floor, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from emuml._kernels.philox cimport exponential_of, negative_log


cdef inline double exp_of(double x) noexcept nogil:
    cdef double whole = floor(x * 1.4426950408889634 + 0.5), power, r, low, even, odd, z
    cdef uint64_t bits = <uint64_t>(<int64_t>whole + 1023) << 52
    r = x - whole * 0.6931471805598903
    low = whole * 5.497923018708371e-14
    z = r - low
    even = z * z
    odd = 1 / 6.0 + even * (1 / 120.0 + even * (1 / 5040.0 + even * (
        1 / 362880.0 + even * (1 / 39916800.0 + even * (1 / 6227020800.0)))))
    odd = even * (0.5 + even * (1 / 24.0 + even * (1 / 720.0 + even * (
        1 / 40320.0 + even * (1 / 3628800.0 + even * (1 / 479001600.0)))))) + z * even * odd
    memcpy(&power, &bits, 8)
    return power * (1.0 + (r - (low - odd)))


cdef inline double normal_of(uint64_t word) noexcept nogil:
    cdef int64_t steps = 2 * <int64_t>(word >> 12) + 1
    cdef double q = <double>(steps - <int64_t>4503599627370496) * 1.1102230246251565e-16, r, found
    if -0.425 <= q <= 0.425:
        r = 0.180625 - q * q
        return q * ((((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
            + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r
            + 133.14166789178437745) * r + 3.387132872796366608) / (((((((5226.495278852545925 * r
            + 28729.085735721942674) * r + 39307.89580009271061) * r + 21213.794301586595867) * r
            + 5394.1960214247511077) * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1.0))
    if q > 0:
        steps = <int64_t>9007199254740992 - steps
    r = sqrt(negative_log(<double>steps, 1076))
    if r <= 5.0:
        r -= 1.6
        found = (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
            + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055) * r
            + 4.6303378461565452959) * r + 1.42343711074968357734) / (((((((1.05075007164441684324e-9 * r
            + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r
            + 0.68976733498510000455) * r + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1.0)
    else:
        r -= 5.0
        found = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
            + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358) * r
            + 5.4637849111641143699) * r + 6.6579046435011037772) / (((((((2.04426310338993978564e-15 * r
            + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r
            + 0.0148753612908506148525) * r + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1.0)
    return found if q > 0 else -found


cdef inline double tail_of(int kind, double parameter, uint64_t word) noexcept nogil:
    cdef double e
    if kind == 2:
        return exp_of(parameter * normal_of(word))
    e = exponential_of(word)
    if kind == 1:
        return exp_of(parameter * e)
    return exp_of(-parameter * negative_log(e, 1023)) if e > 0.0 else 0.0

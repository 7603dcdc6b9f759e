# Twins: emuml/_kernels/reference.py and reference_tails.py (the functions of the same names)
"""Draws by position: Philox4x64-10 words, and uniforms and unit exponentials made of one word each.

A draw is a pure function of (key, position): stateless, order-independent, equal on every machine. Only integer
arithmetic and IEEE + - * / are used, no libm, so the build must not contract ``a*b + c`` (``-ffp-contract=off``).
Source of the generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Nothing is checked here: callers hand over contiguous arrays of equal length.
"""

from libc.stdint cimport uint8_t, uint64_t

from emuml._kernels.philox cimport emuml_high, emuml_high_portable, exponential_of, first_word, uniform_of
from emuml._kernels.tails cimport normal_of, tail_of


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


def unit_tail(int kind, double parameter, uint64_t low, uint64_t high, uint64_t position):
    """Return the draw at ``position`` with a tail of some kind: see the kinds of the twin."""
    return tail_of(kind, parameter, first_word(low, high, position))


def tails_of(int kind, double parameter, const uint64_t[::1] words, double[::1] out):
    """Write what given words stand for to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(words.shape[0]):
            out[index] = tail_of(kind, parameter, words[index])


def normals_of(const uint64_t[::1] words, double[::1] out):
    """Write the normal numbers that given words stand for to ``out``."""
    cdef Py_ssize_t index
    with nogil:
        for index in range(words.shape[0]):
            out[index] = normal_of(words[index])


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

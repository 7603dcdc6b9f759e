# Twin: emuml/_kernels/reference.py (the functions of the same names)
"""Draws of many keys at one position: the durations of all workers in one round.

A worker's draw is the first word of a Philox block under its own key. Nothing is checked here: callers hand over
contiguous arrays of equal length.
"""

from libc.stdint cimport uint64_t

from emuml._kernels.philox cimport emuml_key_words, emuml_key_words_plain, exponential_of

# Workers at a time: their words stay in the first-level cache.
cdef enum:
    BLOCK = 512


def key_words(const uint64_t[::1] lows, const uint64_t[::1] highs, uint64_t position, uint64_t[::1] out, bint plain=False):
    """Write the word that each key has at ``position`` to ``out``; ``plain`` asks for the loop of every processor."""
    cdef Py_ssize_t count = out.shape[0]
    if count == 0:
        return
    with nogil:
        if plain:
            emuml_key_words_plain(&lows[0], &highs[0], position, &out[0], count)
        else:
            emuml_key_words(&lows[0], &highs[0], position, &out[0], count)


def key_exponentials(
    const uint64_t[::1] lows, const uint64_t[::1] highs, uint64_t position, double shift, double scale, double[::1] out
):
    """Write ``shift + scale * e`` with the unit exponential ``e`` that each key has at ``position`` to ``out``."""
    cdef uint64_t words[BLOCK]
    cdef Py_ssize_t start = 0, count = out.shape[0], size, i
    with nogil:
        while start < count:
            size = min(BLOCK, count - start)
            emuml_key_words(&lows[start], &highs[start], position, words, size)
            for i in range(size):
                out[start + i] = shift + scale * exponential_of(words[i])
            start += size

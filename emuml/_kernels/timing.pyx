# Twins: emuml/_kernels/reference.py and reference_tails.py (the functions of the same names)
"""When rounds close: draws of many workers at one position, and order statistics of their times.

A worker's draw is the first word of a Philox block under its own key. Times that are ``start + (shift + scale * e)``
with ``e`` the unit exponential of a word rise with the word, so that a round is closed by selection among raw words, and
only the word that closes it is transformed. The logarithm is right to 1 unit in the last place, which orders words that
are half of ``GAP`` apart, and sums may round two words to one time. So it is asked whether another word is as close as
that, and such a round is decided by all of its times. Hence results are always those of the times themselves, ties
going by worker.

Nothing is checked here: callers hand over contiguous arrays of fitting lengths. A rule is ``count`` (0: no number of
answers closes a round), and the group of each worker with the number of groups (0: no cover of groups does).
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from emuml._kernels.philox cimport emuml_key_words, emuml_key_words_plain, exponential_of
from emuml._kernels.tails cimport tail_of

cdef enum:
    BLOCK = 512  # workers at a time: their words stay in the first-level cache

# Words this far apart have exponentials in their order: 64 and 32 steps of the 53 bits that a draw uses.
cdef uint64_t GAP = <uint64_t>64 << 11
cdef uint64_t HALF_GAP = <uint64_t>32 << 11
cdef uint64_t LARGEST = ~<uint64_t>0

ctypedef fused Ordered:
    double
    uint64_t

cdef struct Round:
    Py_ssize_t workers
    Py_ssize_t count
    Py_ssize_t groups
    const int64_t *group_of
    double start
    double shift
    double scale
    uint64_t *words  # room for the workers' words, then for copies of them
    uint64_t *copies
    double *times
    uint64_t *firsts  # and for what the groups have so far
    uint8_t *covered


def key_words(
    const uint64_t[::1] lows, const uint64_t[::1] highs, uint64_t position, uint64_t[::1] out, bint plain=False
):
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


def key_tails(
    int kind,
    double parameter,
    const uint64_t[::1] lows,
    const uint64_t[::1] highs,
    uint64_t position,
    double shift,
    double scale,
    double[::1] out,
):
    """Write ``shift + scale * g`` with the draw ``g`` of some kind that each key has at ``position`` to ``out``."""
    cdef uint64_t words[BLOCK]
    cdef Py_ssize_t start = 0, count = out.shape[0], size, i
    with nogil:
        while start < count:
            size = min(BLOCK, count - start)
            emuml_key_words(&lows[start], &highs[start], position, words, size)
            for i in range(size):
                out[start + i] = shift + scale * tail_of(kind, parameter, words[i])
            start += size


# Order statistics


cdef Ordered smallest(Ordered *values, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Return the ``k``-th smallest (from 0), moving what is not larger before it (Hoare's selection)."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef Ordered pivot, held
    while low < high:
        pivot = values[low + (high - low) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                held = values[i]
                values[i] = values[j]
                values[j] = held
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


cdef Ordered covering(const Ordered *values, const Round *round, Ordered *firsts, Ordered most) noexcept nogil:
    """Return the value with which every group has its first."""
    cdef Py_ssize_t i
    cdef int64_t group = round.group_of[0]
    cdef Ordered latest, least = most
    for i in range(round.groups):
        firsts[i] = most
    # Neighbours are often of one group: its least value stays in a register then.
    for i in range(round.workers):
        if round.group_of[i] != group:
            firsts[group] = min(firsts[group], least)
            group, least = round.group_of[i], most
        least = min(least, values[i])
    firsts[group] = min(firsts[group], least)
    latest = firsts[0]
    for i in range(round.groups):
        latest = max(latest, firsts[i])
    return latest


cdef double closing_time(const double *times, const Round *round) noexcept nogil:
    """Return the time with which the round closes, infinite if it does not."""
    cdef double at = INFINITY, covered
    if round.count:
        memcpy(round.copies, times, round.workers * sizeof(double))
        at = smallest[double](<double *>round.copies, round.workers, round.count - 1)
    if round.groups:
        covered = covering[double](times, round, <double *>round.firsts, INFINITY)
        at = min(at, covered)
    return at


cdef void mark(const double *times, double at, const Round *round, uint8_t *used) noexcept nogil:
    """Mark whose answers a round uses that closes with ``at``; of equal times the lower workers' are first."""
    cdef Py_ssize_t i, n_used = 0, n_ties = 0, uncovered = round.groups
    cdef bint ends = at < INFINITY
    for i in range(round.workers):
        used[i] = times[i] < at
        n_used += used[i]
        n_ties += times[i] == at
    if not ends:
        return
    if round.groups and n_ties > 1:
        memset(round.covered, 0, round.groups)
        for i in range(round.workers):
            if used[i] and not round.covered[round.group_of[i]]:
                round.covered[round.group_of[i]] = 1
                uncovered -= 1
    for i in range(round.workers):
        if times[i] != at:
            continue
        used[i] = 1
        n_used += 1
        if n_used == round.count or n_ties == 1:
            return
        if round.groups and not round.covered[round.group_of[i]]:
            round.covered[round.group_of[i]] = 1
            uncovered -= 1
            if uncovered == 0:
                return


# Rounds by their words


cdef inline double time_of(uint64_t word, const Round *round) noexcept nogil:
    return round.start + (round.shift + round.scale * exponential_of(word))


cdef Py_ssize_t gathered(
    const Round *round, Py_ssize_t *below, uint64_t *least, uint64_t *most
) noexcept nogil:
    """Copy the words near to where the count closes if words are uniform, and return how many those are."""
    cdef double centre = round.count / (round.workers + 1.0)
    cdef double reach = 5.0 * sqrt(centre * (1.0 - centre) / round.workers) + 8.0 / round.workers
    cdef uint64_t low = <uint64_t>(max(centre - reach, 0.0) * 18446744073709549568.0)
    cdef uint64_t high = <uint64_t>(min(centre + reach, 1.0) * 18446744073709549568.0)
    cdef Py_ssize_t i, size = 0, fewer = 0
    if centre + reach >= 1.0:
        high = LARGEST
    for i in range(round.workers):
        round.copies[size] = round.words[i]
        fewer += round.words[i] < low
        size += round.words[i] - low <= high - low
    least[0], most[0] = low, high
    below[0] = fewer
    return size


cdef void beside(uint64_t chosen, const Round *round, uint64_t *low, uint64_t *high) noexcept nogil:
    """Find bounds beyond which no word's time can be that of the chosen one, or on the wrong side of it."""
    cdef uint64_t reach = GAP
    cdef double at = time_of(chosen, round)
    while chosen > reach and not time_of(chosen - reach + HALF_GAP, round) < at:
        reach = reach * 2 if reach < LARGEST // 2 else LARGEST
    low[0] = chosen - reach if chosen > reach else 0
    reach = GAP
    while LARGEST - chosen > reach and not time_of(chosen + (reach - HALF_GAP), round) > at:
        reach = reach * 2 if reach < LARGEST // 2 else LARGEST
    high[0] = chosen + reach if LARGEST - chosen > reach else LARGEST


cdef bint is_alone(const uint64_t *words, Py_ssize_t n, uint64_t low, uint64_t high) noexcept nogil:
    """Tell whether only one word lies in ``low..high``."""
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        found += words[i] - low <= high - low
    return found == 1


cdef bint closing_word(const Round *round, uint64_t *chosen) noexcept nogil:
    """Find the word with which the round closes; tell whether it alone decides."""
    cdef Py_ssize_t below = 0, size = 0
    cdef uint64_t low, high, covered, least, most
    cdef bint is_near = False
    chosen[0] = LARGEST
    if round.count:
        size = gathered(round, &below, &least, &most)
        is_near = below < round.count <= below + size
        if is_near:
            chosen[0] = smallest[uint64_t](round.copies, size, round.count - below - 1)
        else:
            memcpy(round.copies, round.words, round.workers * sizeof(uint64_t))
            chosen[0] = smallest[uint64_t](round.copies, round.workers, round.count - 1)
    if round.groups:
        covered = covering[uint64_t](round.words, round, round.firsts, LARGEST)
        chosen[0] = min(chosen[0], covered)
    beside(chosen[0], round, &low, &high)
    if is_near and least <= low and high <= most:
        return is_alone(round.copies, size, low, high)
    return is_alone(round.words, round.workers, low, high)


cdef double last_time(const Round *round) noexcept nogil:
    """Return the time of the last answer of all, or NaN if the largest word does not tell it."""
    cdef Py_ssize_t i, near = 0
    cdef uint64_t most = 0
    for i in range(round.workers):
        most = max(most, round.words[i])
    for i in range(round.workers):
        near += most - round.words[i] < GAP
    return time_of(most, round) if near == 1 else (<double>INFINITY - <double>INFINITY)


cdef void close_round(const Round *round, bint to_all, double *decided, double *ended, uint8_t *used) noexcept nogil:
    """Find when a round of given words is decided and ends, and, where ``used`` is there, by whose answers."""
    cdef uint64_t chosen
    cdef Py_ssize_t i
    cdef bint sharp = closing_word(round, &chosen)
    cdef double last = last_time(round) if to_all else 0.0
    if sharp and last == last:
        decided[0] = time_of(chosen, round)
        ended[0] = last if to_all else decided[0]
        if used != NULL:
            for i in range(round.workers):
                used[i] = round.words[i] <= chosen
        return
    last = 0.0
    for i in range(round.workers):
        round.times[i] = time_of(round.words[i], round)
        last = max(last, round.times[i])
    decided[0] = closing_time(round.times, round)
    ended[0] = last if to_all else decided[0]
    if used != NULL:
        mark(round.times, decided[0], round, used)


cdef int make_room(Round *round) except -1:
    """Give a round the memory it works in, as one piece that begins at its words."""
    cdef size_t each = max(round.workers, 1) * 8
    round.words = <uint64_t *>malloc(3 * each + round.groups * 9 + 8)
    if round.words == NULL:
        raise MemoryError
    round.copies = round.words + each // 8
    round.times = <double *>(round.copies + each // 8)
    round.firsts = <uint64_t *>(round.times + each // 8)
    round.covered = <uint8_t *>(round.firsts + round.groups)
    return 0


def cover_time(const double[::1] times, const int64_t[::1] group_of, Py_ssize_t groups):
    """Return the time with which every group has its first; infinite if one has none."""
    cdef Round round
    cdef double at
    round.workers, round.groups, round.group_of = times.shape[0], groups, &group_of[0]
    make_room(&round)
    with nogil:
        at = covering[double](&times[0], &round, <double *>round.firsts, INFINITY)
    free(round.words)
    return at


def mark_used(
    const double[::1] times,
    double at,
    Py_ssize_t count,
    const int64_t[::1] group_of,
    Py_ssize_t groups,
    uint8_t[::1] used,
):
    """Mark in ``used`` whose answers a round uses that closes with ``at``; if that is infinite, all that come."""
    cdef Round round
    round.workers, round.count, round.groups = times.shape[0], count, groups
    round.group_of = &group_of[0] if groups else NULL
    if round.workers == 0:
        return
    make_room(&round)
    with nogil:
        mark(&times[0], at, &round, &used[0])
    free(round.words)


def exponential_rounds(
    const uint64_t[::1] lows,
    const uint64_t[::1] highs,
    uint64_t first,
    double start,
    double shift,
    double scale,
    Py_ssize_t count,
    const int64_t[::1] group_of,
    Py_ssize_t groups,
    bint to_all,
    double[::1] decided,
    double[::1] ended,
    uint8_t[:, ::1] used,
):
    """Write when rounds are decided and end whose workers all begin when the one before ends.

    Round ``i`` uses the draws at position ``first + i``; ``to_all`` makes it last until the last answer. ``used`` has
    no rows where nobody asks whose answers were used.
    """
    cdef Round round
    cdef Py_ssize_t i
    cdef bint marks = used.shape[0] > 0
    round.workers, round.count, round.groups = lows.shape[0], count, groups
    round.group_of = &group_of[0] if groups else NULL
    round.start, round.shift, round.scale = start, shift, scale
    make_room(&round)
    with nogil:
        for i in range(decided.shape[0]):
            emuml_key_words(&lows[0], &highs[0], first + <uint64_t>i, round.words, round.workers)
            close_round(&round, to_all, &decided[i], &ended[i], &used[i, 0] if marks else NULL)
            round.start = ended[i]
    free(round.words)


def word_round(
    const uint64_t[::1] words,
    double start,
    double shift,
    double scale,
    Py_ssize_t count,
    const int64_t[::1] group_of,
    Py_ssize_t groups,
    uint8_t[::1] used,
):
    """Return when one round of given words is decided and when its last answer comes; mark whose answers it uses."""
    cdef Round round
    cdef double decided = 0.0, ended = 0.0
    round.workers, round.count, round.groups = words.shape[0], count, groups
    round.group_of = &group_of[0] if groups else NULL
    round.start, round.shift, round.scale = start, shift, scale
    make_room(&round)
    memcpy(round.words, &words[0], round.workers * sizeof(uint64_t))
    with nogil:
        close_round(&round, True, &decided, &ended, &used[0] if used.shape[0] else NULL)
    free(round.words)
    return decided, ended

# Twin: emuml/theory/sequential.py (followed), which follows the schedules of emuml/protocols/sequential_coding
"""When the rounds of a sequential code end and its jobs are decoded, on given delays.

One call runs all rounds of a run. A round's arrivals are in one array; its first and last tell whether anybody is late
at all, and only then workers are looked at one by one. A worker's past is a word: bit k says that it straggled k + 1
rounds ago, in a round that counts. Nothing is checked here but the memory.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cdef enum:
    PLAIN = 0
    SELECTIVE = 1
    MULTIPLEXED = 2

cdef struct Run:
    int kind
    Py_ssize_t workers
    Py_ssize_t jobs
    Py_ssize_t round
    Py_ssize_t burst
    Py_ssize_t window
    Py_ssize_t stragglers
    Py_ssize_t tolerance
    Py_ssize_t slots
    Py_ssize_t repeats  # how many repeat an old job in this round (SELECTIVE)
    Py_ssize_t is_open  # how many jobs are not decoded
    int64_t *decoded
    uint64_t *past
    uint8_t *late
    uint8_t *chosen  # who repeats
    uint8_t *state  # of each job and worker: delivered (SELECTIVE), own chunks that are missing (MULTIPLEXED)
    int64_t *counts  # of each job and slot: results; slot 0 counts all (SELECTIVE) or missing chunks (MULTIPLEXED)
    double *arrive


cdef Py_ssize_t used_slots(const Run *run, Py_ssize_t worker) noexcept nogil:
    """Return how many slots of the open round a worker has work for."""
    cdef Py_ssize_t slot, job, own = run.window - 1, found = 0
    cdef bint is_coded = run.stragglers < run.workers
    if run.kind == PLAIN:
        return 1
    if run.kind == SELECTIVE:
        return 1 if run.round < run.jobs else run.chosen[worker]
    for slot in range(run.slots):
        job = run.round - slot
        if 0 <= job < run.jobs and (slot < own or is_coded or run.state[(job % run.slots) * run.workers + worker]):
            found += 1
    return found


cdef bint differs(const Run *run) noexcept nogil:
    """Tell whether workers of the open round may have different numbers of chunks."""
    if run.kind == SELECTIVE:
        return run.round >= run.jobs
    return run.kind == MULTIPLEXED and run.stragglers >= run.workers


cdef bint arrivals(Run *run, const double *delays, const double *extra_s, double now, double *span) noexcept nogil:
    """Write when everybody arrives, -1 for who has nothing to do; first and last to ``span``. False if nobody works."""
    cdef Py_ssize_t worker, used, workers = run.workers, whole = workers - workers % 4
    cdef double at, extra, first = INFINITY, last = -1.0
    cdef double low0 = INFINITY, low1 = INFINITY, low2 = INFINITY, low3 = INFINITY
    cdef double high0 = -1.0, high1 = -1.0, high2 = -1.0, high3 = -1.0
    cdef double *arrive = run.arrive
    if differs(run):
        for worker in range(workers):
            used = used_slots(run, worker)
            arrive[worker] = now + (delays[worker] + extra_s[used]) if used else -1.0
            if used:
                first, last = min(first, arrive[worker]), max(last, arrive[worker])
    else:
        extra = extra_s[used_slots(run, 0)]
        for worker in range(workers):
            arrive[worker] = now + (delays[worker] + extra)
        worker = 0
        while worker < whole:  # four at a time: one after the other waits for each comparison
            low0, high0 = min(low0, arrive[worker]), max(high0, arrive[worker])
            low1, high1 = min(low1, arrive[worker + 1]), max(high1, arrive[worker + 1])
            low2, high2 = min(low2, arrive[worker + 2]), max(high2, arrive[worker + 2])
            low3, high3 = min(low3, arrive[worker + 3]), max(high3, arrive[worker + 3])
            worker += 4
        first, last = min(min(low0, low1), min(low2, low3)), max(max(high0, high1), max(high2, high3))
        for worker in range(whole, workers):
            first, last = min(first, arrive[worker]), max(last, arrive[worker])
    span[0], span[1] = first, last
    return last >= 0.0


cdef bint tolerates(const Run *run, Py_ssize_t n_late) noexcept nogil:
    """Tell whether the round may end without those who are late."""
    cdef Py_ssize_t worker, n_in_window = 0
    cdef uint64_t within, old
    if run.kind == PLAIN:
        return n_late <= run.tolerance
    if run.kind == SELECTIVE and run.repeats == 0 and n_late <= run.tolerance:
        return True
    within = ((<uint64_t>1) << (run.window - 1)) - 1
    old = within & ~(((<uint64_t>1) << (run.burst - 1)) - 1)
    for worker in range(run.workers):
        if run.late[worker] and run.past[worker] & old:
            return False
        n_in_window += run.late[worker] | <uint8_t>((run.past[worker] & within) != 0)
    return n_in_window <= run.stragglers


cdef void decode(Run *run, Py_ssize_t job) noexcept nogil:
    if run.decoded[job] < 0:
        run.decoded[job] = run.round
        run.is_open -= 1


cdef void take_selective(Run *run, Py_ssize_t n_late) noexcept nogil:
    cdef Py_ssize_t worker, needed, workers = run.workers, ring = run.burst + 1, old = run.round - run.burst
    cdef Py_ssize_t enough = workers - run.tolerance
    cdef uint8_t *row
    cdef int64_t *count
    if run.repeats:
        row, count = run.state + (old % ring) * workers, run.counts + old % ring
        for worker in range(workers):
            count[0] += run.chosen[worker] & ~run.late[worker]
        if count[0] >= enough:
            decode(run, old)
    if run.round < run.jobs:
        row, count = run.state + (run.round % ring) * workers, run.counts + run.round % ring
        count[0] = workers
        if run.repeats or n_late:
            count[0] = 0
            for worker in range(workers):
                row[worker] = (run.chosen[worker] | run.late[worker]) ^ 1
                count[0] += row[worker]
        if count[0] >= enough:
            decode(run, run.round)
    if run.repeats:
        for worker in range(workers):
            run.chosen[worker] = 0
        run.repeats = 0
    old += 1
    if 0 <= old < run.jobs and run.decoded[old] < 0:
        row, needed = run.state + (old % ring) * workers, enough - run.counts[old % ring]
        for worker in range(workers):
            if run.repeats == needed:
                break
            if not row[worker]:
                run.chosen[worker] = 1
                run.repeats += 1


cdef void take_multiplexed(Run *run, Py_ssize_t n_late) noexcept nogil:
    cdef Py_ssize_t slot, job, worker, workers = run.workers, own = run.window - 1
    cdef bint is_coded = run.stragglers < workers, is_enough
    cdef uint8_t *row
    cdef int64_t *counts
    for slot in range(run.slots):
        job = run.round - slot
        if job < 0 or job >= run.jobs:
            continue
        row, counts = run.state + (job % run.slots) * workers, run.counts + (job % run.slots) * (run.slots + 1)
        if slot == 0:
            counts[0] = 0
            for worker in range(workers):
                row[worker] = 0
        if slot < own:
            if n_late:
                for worker in range(workers):
                    row[worker] += run.late[worker]
                counts[0] += n_late
        elif not n_late and not counts[0]:
            counts[1 + slot - own] = workers
        else:
            counts[1 + slot - own] = 0
            for worker in range(workers):
                if run.late[worker]:
                    continue
                if row[worker]:
                    row[worker] -= 1
                    counts[0] -= 1
                else:
                    counts[1 + slot - own] += 1
        if counts[0] or slot < own - 1 or (is_coded and slot < run.slots - 1):
            continue
        is_enough = True
        for worker in range(run.burst if is_coded else 0):
            is_enough = is_enough and counts[1 + worker] >= workers - run.stragglers
        if is_enough:
            decode(run, job)


cdef void close_round(Run *run, Py_ssize_t n_late) noexcept nogil:
    cdef Py_ssize_t worker
    cdef bint counts
    if run.kind == PLAIN:
        decode(run, run.round)
        return
    counts = run.kind == MULTIPLEXED or run.repeats > 0 or n_late > run.tolerance
    for worker in range(run.workers):
        run.past[worker] = run.past[worker] << 1 | (run.late[worker] & <uint8_t>counts)
    if run.kind == SELECTIVE:
        take_selective(run, n_late)
    else:
        take_multiplexed(run, n_late)


cdef Py_ssize_t follow(
    Run *run, const double *delays, Py_ssize_t rows, const double *extra_s, double wait, double *ended_s,
    int64_t *late, uint8_t *waited
) noexcept nogil:  # fmt: skip
    """Run all rounds, and return how many there were."""
    cdef double now = 0.0, deadline
    cdef double[2] span
    cdef Py_ssize_t worker, n_late = 0, t
    while run.is_open and run.round < rows:
        t = run.round
        if n_late:
            memset(run.late, 0, run.workers)
        n_late, waited[t] = 0, 0
        if arrivals(run, delays + t * run.workers, extra_s, now, span):
            deadline, now = span[0] + wait * (span[0] - now), span[1]
            if span[1] > deadline:
                for worker in range(run.workers):
                    run.late[worker] = run.arrive[worker] > deadline
                    n_late += run.late[worker]
                if tolerates(run, n_late):
                    now = deadline
                else:
                    waited[t], n_late = 1, 0
                    memset(run.late, 0, run.workers)
        ended_s[t], late[t] = now, n_late
        close_round(run, n_late)
        run.round += 1
    return run.round


def sequential_rounds(
    int kind, int burst, int window, int stragglers, int tolerance, int slots, const double[:, ::1] delays,
    const double[::1] extra_s, double wait, double[::1] ended_s, int64_t[::1] late, uint8_t[::1] waited,
    int64_t[::1] decoded
):  # fmt: skip
    """Run a sequential code on delays, and return how many rounds it took.

    ``extra_s[c]`` is added to the delay of who has ``c`` chunks; ``ended_s``, ``late`` and ``waited`` are written for
    each round (shape (rounds,)), ``decoded`` for each job (-1 if it never is).
    """
    cdef Run run
    cdef Py_ssize_t workers = delays.shape[1], job, ring = max(slots, burst + 1)
    cdef Py_ssize_t found
    run.kind, run.workers, run.jobs, run.round = kind, workers, decoded.shape[0], 0
    run.burst, run.window, run.stragglers, run.tolerance = burst, window, stragglers, tolerance
    run.slots, run.repeats, run.is_open, run.decoded = slots, 0, decoded.shape[0], &decoded[0]
    for job in range(run.jobs):
        decoded[job] = -1
    run.past = <uint64_t *>calloc(workers, sizeof(uint64_t))
    run.late = <uint8_t *>calloc(workers, 1)
    run.chosen = <uint8_t *>calloc(workers, 1)
    run.state = <uint8_t *>calloc(ring * workers, 1)
    run.counts = <int64_t *>calloc(ring * (slots + 1), sizeof(int64_t))
    run.arrive = <double *>calloc(workers, sizeof(double))
    try:
        if not (run.past and run.late and run.chosen and run.state and run.counts and run.arrive):
            raise MemoryError("no room for the workers' states")
        with nogil:
            found = follow(
                &run, &delays[0, 0], delays.shape[0], &extra_s[0], wait, &ended_s[0], &late[0], &waited[0]
            )
        return found
    finally:
        free(run.past)
        free(run.late)
        free(run.chosen)
        free(run.state)
        free(run.counts)
        free(run.arrive)

# Twin: emuml/theory/sequential.py (followed), which follows the schedules of emuml/protocols/sequential_coding
"""When the rounds of a sequential code end and its jobs are decoded, on given delays.

One call runs all rounds of a run. The first and the last to arrive in a round tell whether anybody is late at all, and
only then workers are looked at one by one. A worker's past is a word: bit k says that it straggled k + 1
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
    LANES = 8

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


cdef void extremes(const double *row, Py_ssize_t count, double *least, double *most) noexcept nogil:
    """Write the least and the largest number of a row, several lanes at a time: one chain waits for each comparison."""
    cdef double[LANES] low
    cdef double[LANES] high
    cdef Py_ssize_t start = 0, lane, whole = count - count % LANES
    for lane in range(LANES):
        low[lane], high[lane] = INFINITY, -1.0
    while start < whole:
        for lane in range(LANES):
            low[lane] = row[start + lane] if row[start + lane] < low[lane] else low[lane]
            high[lane] = row[start + lane] if row[start + lane] > high[lane] else high[lane]
        start += LANES
    for lane in range(count - whole):
        low[lane] = min(low[lane], row[whole + lane])
        high[lane] = max(high[lane], row[whole + lane])
    least[0], most[0] = low[0], high[0]
    for lane in range(1, LANES):
        least[0], most[0] = min(least[0], low[lane]), max(most[0], high[lane])


cdef bint spans(Run *run, const double *delays, const double *extra_s, double now, double *span) noexcept nogil:
    """Write when the first and the last arrive to ``span``; False if nobody works.

    Where all have as much to do, sums rise with the delays, and nobody else's is needed.
    """
    cdef Py_ssize_t worker
    cdef double extra, least, most
    if differs(run):
        arrivals(run, delays, extra_s, now)
        span[0], span[1] = INFINITY, -1.0
        for worker in range(run.workers):
            if run.arrive[worker] >= 0.0:
                span[0], span[1] = min(span[0], run.arrive[worker]), max(span[1], run.arrive[worker])
        return span[1] >= 0.0
    extra = extra_s[used_slots(run, 0)]
    extremes(delays, run.workers, &least, &most)
    span[0], span[1] = now + (least + extra), now + (most + extra)
    return True


cdef void arrivals(Run *run, const double *delays, const double *extra_s, double now) noexcept nogil:
    """Write when everybody arrives, -1 for who has nothing to do."""
    cdef Py_ssize_t worker, used
    cdef double extra
    cdef double *arrive
    if differs(run):
        for worker in range(run.workers):
            used = used_slots(run, worker)
            run.arrive[worker] = now + (delays[worker] + extra_s[used]) if used else -1.0
    else:
        extra, arrive = extra_s[used_slots(run, 0)], run.arrive
        for worker in range(run.workers):
            arrive[worker] = now + (delays[worker] + extra)


cdef Py_ssize_t mark(const double *arrive, Py_ssize_t workers, double deadline, uint8_t *late) noexcept nogil:
    """Write who arrives after the deadline, and return how many they are."""
    cdef Py_ssize_t worker, found = 0
    for worker in range(workers):
        late[worker] = arrive[worker] > deadline
        found += late[worker]
    return found


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
    cdef double now = 0.0, opened, deadline
    cdef const double *row
    cdef double[2] span
    cdef Py_ssize_t n_late = 0, t
    while run.is_open and run.round < rows:
        t = run.round
        if n_late:
            memset(run.late, 0, run.workers)  # of the round before
        n_late, waited[t] = 0, 0
        row = delays + t * run.workers
        if spans(run, row, extra_s, now, span):
            opened, deadline, now = now, span[0] + wait * (span[0] - now), span[1]
            if span[1] > deadline:
                if run.kind != PLAIN or run.tolerance:
                    arrivals(run, row, extra_s, opened)
                    n_late = mark(run.arrive, run.workers, deadline, run.late)
                if n_late and tolerates(run, n_late):
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

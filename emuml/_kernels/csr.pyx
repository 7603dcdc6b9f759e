# Twin: emuml/_kernels/reference.py (the functions of the same names)
"""Products of rows in compressed sparse form: predictions of rows, and weighted sums of rows added in place.

Row i has the entries ``starts[i] .. stops[i] - 1`` of ``indices`` (columns) and ``values``; without values each entry
is 1. Entries are read in the order stored, rows in the order given, and every product and sum is rounded once (no
fused multiply-add, so build with ``-ffp-contract=off``), so that results have the same bits everywhere. A column may
occur in a row more than once.

Nothing is checked here: callers hand over contiguous arrays, entries that exist and columns of the vectors.
"""

from libc.stdint cimport int32_t, int64_t


def csr_predict(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] values,
    const double[::1] parameters,
    double[::1] out,
):
    """Write the product of each row with ``parameters`` to ``out``."""
    # A function for each case: with the choice inside the loop over rows, predictions took 1.5 times as long.
    if values is None:
        predict_ones(starts, stops, indices, parameters, out)
    else:
        predict_values(starts, stops, indices, values, parameters, out)


def csr_accumulate(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] values,
    const double[::1] slopes,
    double[::1] out,
):
    """Add ``slopes[i]`` times row i to ``out``, for each row in order."""
    if values is None:
        accumulate_ones(starts, stops, indices, slopes, out)
    else:
        accumulate_values(starts, stops, indices, values, slopes, out)


cdef void predict_ones(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] parameters,
    double[::1] out,
) except *:
    cdef Py_ssize_t row = 0, entry, shared
    cdef int64_t start, other_start
    cdef double total, other
    with nogil:
        # Two rows at a time: a sum waits for each of its additions, and meanwhile another one can go on (a quarter
        # faster on shards that fit into the second cache level). The order within each row is kept.
        while row + 2 <= out.shape[0]:
            start, other_start = starts[row], starts[row + 1]
            shared = min(stops[row] - start, stops[row + 1] - other_start)
            total, other = 0.0, 0.0
            for entry in range(shared):
                total += parameters[indices[start + entry]]
                other += parameters[indices[other_start + entry]]
            for entry in range(start + shared, stops[row]):
                total += parameters[indices[entry]]
            for entry in range(other_start + shared, stops[row + 1]):
                other += parameters[indices[entry]]
            out[row], out[row + 1] = total, other
            row += 2
        if row < out.shape[0]:
            total = 0.0
            for entry in range(starts[row], stops[row]):
                total += parameters[indices[entry]]
            out[row] = total


cdef void predict_values(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] values,
    const double[::1] parameters,
    double[::1] out,
) except *:
    cdef Py_ssize_t row, entry
    cdef double total
    with nogil:
        for row in range(out.shape[0]):
            total = 0.0
            for entry in range(starts[row], stops[row]):
                total += values[entry] * parameters[indices[entry]]
            out[row] = total


cdef void accumulate_ones(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] slopes,
    double[::1] out,
) except *:
    cdef Py_ssize_t row, entry
    cdef double slope
    with nogil:
        for row in range(slopes.shape[0]):
            slope = slopes[row]
            for entry in range(starts[row], stops[row]):
                out[indices[entry]] += slope


cdef void accumulate_values(
    const int64_t[::1] starts,
    const int64_t[::1] stops,
    const int32_t[::1] indices,
    const double[::1] values,
    const double[::1] slopes,
    double[::1] out,
) except *:
    cdef Py_ssize_t row, entry
    cdef double slope
    with nogil:
        for row in range(slopes.shape[0]):
            slope = slopes[row]
            for entry in range(starts[row], stops[row]):
                out[indices[entry]] += slope * values[entry]

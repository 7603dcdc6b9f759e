# Twin: emuml/_kernels/reference.py (weighted_sum)
"""Weighted sum of separate buffers, added in the order given, without stacking them.

Per element: ``out = w[0] * a[0]``, then ``out += w[j] * a[j]`` for j = 1, 2, ..., each product and each sum rounded
once (no fused multiply-add, so build with ``-ffp-contract=off``). Columns are done in blocks that stay in the first
cache level; that does not touch the order in which any one element is added up. A weight of 0 is a weight like
others: its row is read, and NaN in it shows. Leave out rows that are not wanted.

Types, shapes and contiguity are checked by the front in ``emuml/_kernels/__init__.py``.
"""

from cpython.buffer cimport Py_buffer, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc

ctypedef fused real:
    float
    double


cdef void accumulate(
    Py_buffer* rows, const real* weights, Py_ssize_t count, Py_ssize_t start, Py_ssize_t stop, real* out
) noexcept nogil:
    cdef const real* a = <const real*>rows[0].buf
    cdef const real* b
    cdef const real* c
    cdef const real* d
    cdef real wa = weights[0], wb, wc, wd
    cdef Py_ssize_t column, row = 1
    for column in range(start, stop):
        out[column] = wa * a[column]
    # Four rows per pass over the block save loads and stores of out; the additions stay in order.
    while row + 4 <= count:
        a = <const real*>rows[row].buf
        b = <const real*>rows[row + 1].buf
        c = <const real*>rows[row + 2].buf
        d = <const real*>rows[row + 3].buf
        wa, wb, wc, wd = weights[row], weights[row + 1], weights[row + 2], weights[row + 3]
        for column in range(start, stop):
            out[column] = (((out[column] + wa * a[column]) + wb * b[column]) + wc * c[column]) + wd * d[column]
        row += 4
    while row < count:
        a = <const real*>rows[row].buf
        wa = weights[row]
        for column in range(start, stop):
            out[column] = out[column] + wa * a[column]
        row += 1


cdef void accumulate_blocks(
    Py_buffer* rows, const real* weights, Py_ssize_t count, Py_ssize_t size, real* out
) noexcept nogil:
    cdef Py_ssize_t start = 0
    while start < size:
        accumulate(rows, weights, count, start, min(start + 1024, size), out)
        start += 1024


def weighted_sum(weights, list arrays, out):
    """Write ``sum_j weights[j] * arrays[j]`` to ``out``; at least one array, all of the type and size of ``out``."""
    cdef Py_ssize_t count = len(arrays), held = 0, row
    cdef Py_buffer scale, target
    cdef Py_buffer* rows = <Py_buffer*>malloc(count * sizeof(Py_buffer))
    if rows == NULL:
        raise MemoryError
    try:
        for row in range(count):
            PyObject_GetBuffer(arrays[row], &rows[row], PyBUF_SIMPLE)
            held += 1
        PyObject_GetBuffer(weights, &scale, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(out, &target, PyBUF_WRITABLE)
            try:
                run(rows, &scale, count, &target)
            finally:
                PyBuffer_Release(&target)
        finally:
            PyBuffer_Release(&scale)
    finally:
        for row in range(held):
            PyBuffer_Release(&rows[row])
        free(rows)


cdef int run(Py_buffer* rows, Py_buffer* weights, Py_ssize_t count, Py_buffer* out) except -1:
    cdef Py_ssize_t row, size = out.len // out.itemsize
    cdef char* start = <char*>out.buf
    cdef char* other
    if weights.len != count * out.itemsize:
        raise ValueError(f"{weights.len // out.itemsize} weights for {count} arrays")
    for row in range(count):
        other = <char*>rows[row].buf
        if rows[row].len != out.len:
            raise ValueError(f"array {row} has {rows[row].len} bytes, the result has {out.len}")
        if other < start + out.len and start < other + out.len:
            raise ValueError(f"array {row} shares memory with the result")
    with nogil:
        if out.itemsize == 8:
            accumulate_blocks(rows, <const double*>weights.buf, count, size, <double*>out.buf)
        else:
            accumulate_blocks(rows, <const float*>weights.buf, count, size, <float*>out.buf)
    return 0

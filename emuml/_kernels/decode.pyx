# Twin: emuml/_kernels/reference.py (weighted_sum)
"""Weighted sum of separate buffers, added in the order given, without stacking them.

Per element: ``out = w[0] * a[0]``, then ``out += w[j] * a[j]`` for j = 1, 2, ..., each product and each sum rounded
once (no fused multiply-add, so build with ``-ffp-contract=off``). Columns are done in blocks that stay in the second
cache level; that does not touch the order in which any one element is added up. A weight of 0 is a weight like
others: its row is read, and NaN in it shows. Leave out rows that are not wanted.

Unlike in other kernels, arguments are checked here: a check of every array in Python would take longer than the sum of
ten small gradients. What is wrong with them is said by the front in ``emuml/_kernels/__init__.py``.
"""

from cpython.buffer cimport (
    Py_buffer,
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

cdef enum:
    READ = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT
    BLOCK = 16384  # elements: 128 KiB of doubles; longer runs through each row are kinder to memory than shorter ones

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
        accumulate(rows, weights, count, start, min(start + BLOCK, size), out)
        start += BLOCK


cdef bint alike(Py_buffer* row, Py_buffer* out) noexcept nogil:
    """Tell whether a row has the type and shape of the result, is aligned, and shares no memory with it."""
    cdef int axis
    if row.ndim != out.ndim or strcmp(row.format, out.format) != 0 or <uintptr_t>row.buf % out.itemsize != 0:
        return False
    for axis in range(out.ndim):
        if row.shape[axis] != out.shape[axis]:
            return False
    return <char*>row.buf >= <char*>out.buf + out.len or <char*>out.buf >= <char*>row.buf + row.len


cdef bint run(Py_buffer* rows, Py_buffer* weights, Py_ssize_t count, Py_buffer* out) noexcept nogil:
    cdef Py_ssize_t row
    cdef bint double_precision = strcmp(out.format, "d") == 0
    if not double_precision and strcmp(out.format, "f") != 0 or <uintptr_t>out.buf % out.itemsize != 0:
        return False
    if weights.ndim != 1 or weights.len != count * out.itemsize or strcmp(weights.format, out.format) != 0:
        return False
    for row in range(count):
        if not alike(&rows[row], out):
            return False
    if double_precision:
        accumulate_blocks(rows, <const double*>weights.buf, count, out.len // 8, <double*>out.buf)
    else:
        accumulate_blocks(rows, <const float*>weights.buf, count, out.len // 4, <float*>out.buf)
    return True


def weighted_sum(weights, list arrays, out):
    """Write ``sum_j weights[j] * arrays[j]`` to ``out`` and return True, or return False if the arguments do not fit."""
    cdef Py_ssize_t count = len(arrays), held = 0, index
    cdef bint fits
    cdef Py_buffer* views  # of the arrays, then of the weights, then of the result
    if count == 0:
        return False
    views = <Py_buffer*>malloc((count + 2) * sizeof(Py_buffer))
    if views == NULL:
        raise MemoryError
    try:
        for index in range(count):
            PyObject_GetBuffer(arrays[index], &views[index], READ)
            held += 1
        PyObject_GetBuffer(weights, &views[count], READ)
        held += 1
        PyObject_GetBuffer(out, &views[count + 1], READ | PyBUF_WRITABLE)
        held += 1
        with nogil:
            fits = run(views, &views[count], count, &views[count + 1])
        return fits
    except (BufferError, TypeError, ValueError):
        return False  # an argument is no buffer, not contiguous, or read-only where it must be written
    finally:
        for index in range(held):
            PyBuffer_Release(&views[index])
        free(views)

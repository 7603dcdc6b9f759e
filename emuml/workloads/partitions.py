"""Which rows a partition has, and which of them a batch takes: pure arithmetic and named streams.

Partitions are contiguous and their sizes differ by at most one row, so no row is dropped when the number of partitions
does not divide the number of rows. A batch depends on its partition and draw, never on who computes it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.streams import stream_key, subset_at

Rows = range | NDArray[np.int64]
"""Rows of a matrix: a contiguous range, or chosen ones in ascending order."""


def partition_rows(rows: int, partition: int, partitions: int) -> range:
    """Return the rows of one partition.

    Parameters
    ----------
    rows : int
        Rows in all.
    partition : int
        0 <= partition < partitions.
    partitions : int
        1 <= partitions <= rows.

    Raises
    ------
    UserError
        If there cannot be so many partitions.

    Examples
    --------
    >>> [partition_rows(10, i, 4) for i in range(4)]
    [range(0, 2), range(2, 5), range(5, 7), range(7, 10)]
    """
    if not 1 <= partitions <= rows:
        raise UserError(
            f"got {partitions} partitions for {rows} training rows", "partitions", f"1 to {rows}, at least a row each"
        )
    return range(partition * rows // partitions, (partition + 1) * rows // partitions)


def partition_bounds(rows: int, partitions: int) -> NDArray[np.int64]:
    """Return where partitions begin and end, shape (partitions + 1,); see :func:`partition_rows`.

    Examples
    --------
    >>> partition_bounds(10, 4)
    array([ 0,  2,  5,  7, 10])
    """
    stops = [partition_rows(rows, i, partitions).stop for i in range(max(partitions, 1))]
    return np.array([0, *stops], np.int64)


def batch_rows(rows: range, batch: int | None, seed: int, partition: int, draw: int | None) -> tuple[Rows, float]:
    """Choose the rows of a partition that a gradient reads.

    Parameters
    ----------
    rows : range
        Of the partition.
    batch : int, optional
        How many; all of them if None or not fewer than there are.
    seed, partition, draw : int
        They name the stream: ``batch/PARTITION/DRAW``.

    Returns
    -------
    (rows, factor)
        Ascending rows, every subset equally likely, and ``len(rows) / batch``, which makes a sum over them unbiased.
    """
    if batch is None or batch >= len(rows):
        return rows, 1.0
    key = stream_key(seed, "", f"batch/{partition}/{draw}")
    return rows.start + subset_at(key, len(rows), batch), len(rows) / batch

"""What a decoder is: from a set of workers that answered to the weights of their answers, and what those are worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from emuml._kernels import csr_accumulate

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of answers.

    Attributes
    ----------
    values : ndarray of float64, shape (n_received,)
    error : float
        ``||a^T B - 1||^2`` of these values, in partitions.
    noise_gain : float
        ``sqrt(sum_w a_w^2 ||b_w||^2 / k)`` of these values.
    """

    values: Floats
    error: float
    noise_gain: float


class Decoder(Protocol):
    """Weights for any set of workers."""

    @property
    def is_cheap(self) -> bool:
        """Whether decoding takes less than remembering what was decoded before."""

    def weights(self, received: Indices) -> Weights:
        """Return the weights of the answers of some workers.

        Parameters
        ----------
        received : ndarray of int64, shape (n_received,)
            Who answered, ascending and distinct; maybe nobody, maybe all.
        """


@dataclass(frozen=True, eq=False)
class Rows:
    """The matrix ``B`` of a code by rows: worker ``w`` holds ``indices[indptr[w]:indptr[w + 1]]``, ascending.

    Attributes
    ----------
    partitions : int
        Number of columns ``k``.
    indptr : ndarray of int64, shape (workers + 1,)
    indices : ndarray of int64, shape (entries,)
        Partitions, ascending in each row.
    values : ndarray of float64, shape (entries,)
        Factors of these partitions.
    """

    partitions: int
    indptr: Indices
    indices: Indices
    values: Floats

    @property
    def workers(self) -> int:
        """Number of rows ``n``."""
        return self.indptr.size - 1

    def dense(self, received: Indices | None = None) -> Floats:
        """Return rows of ``B``, by default all of them, shape (n_received, partitions)."""
        those = np.arange(self.workers) if received is None else received
        lengths = self.indptr[those + 1] - self.indptr[those]
        found = np.zeros((those.size, self.partitions))
        entries = self._entries(those)
        found[np.repeat(np.arange(those.size), lengths), self.indices[entries]] = self.values[entries]
        return found

    def combined(self, received: Indices, values: Floats) -> Floats:
        """Return ``a^T B``, shape (partitions,), for weights of some workers; added row by row."""
        found = np.zeros(self.partitions)
        starts, stops = self.indptr[received], self.indptr[received + 1]
        csr_accumulate(starts, stops, self._columns, self.values, values, found)
        return found

    def judged(self, received: Indices, values: Floats) -> Weights:
        """Return weights with the error and the noise gain that they really have."""
        combined = self.combined(received, values)
        return Weights(
            values=values,
            error=float(np.sum((combined - 1.0) ** 2)),
            noise_gain=float(np.sqrt(np.sum(values**2 * self.squared_norms[received]) / self.partitions)),
        )

    @cached_property
    def squared_norms(self) -> Floats:
        """Squared norm of each row, shape (workers,)."""
        rows = np.repeat(np.arange(self.workers), np.diff(self.indptr))
        found: Floats = np.bincount(rows, self.values**2, self.workers).astype(np.float64, copy=False)
        return found

    @cached_property
    def _columns(self) -> NDArray[np.int32]:
        """Partitions of the entries, as kernels take them."""
        return self.indices.astype(np.int32)

    def _entries(self, received: Indices) -> Indices:
        """Return the positions of the entries of some rows, row by row."""
        starts, lengths = self.indptr[received], self.indptr[received + 1] - self.indptr[received]
        if not lengths.size:
            return np.empty(0, np.int64)
        ends = np.cumsum(lengths)
        found: Indices = np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
        return found

"""Decoding by interpolation: answers are values of one polynomial, whose highest coefficients are the gradient.

The gradient is cut into ``m`` slices. Worker ``w`` sends ``sum_{i,u} p_i^u(theta_w) g_i[u]``, one number for ``m``,
over its ``d = s + m`` partitions; ``p_i^u`` is 0 at the workers that do not hold partition ``i`` and has the
coefficients 0 at degrees ``n-d..n-d+m-1`` but for a 1 at ``n-d+u-1``. So the answers are values of one polynomial of
degree below ``n-s`` whose highest coefficients are the slices of the gradient: ``n-s`` of them determine it.

The ``theta_w`` are Chebyshev nodes in an order in which the holders of a partition are spread over the whole interval.
In their natural order the noise gain is several hundred times as large from 16 workers on.

Source: Ye and Abbe, "Communication-computation efficient gradient coding", arXiv:1802.03475; the order of the nodes,
and the coefficients from values without a Vandermonde system, are our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emuml.protocols.gradient_coding.decoders.conditioning import sound
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices, Weights

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Weights of each slice of the gradient: O(blocks n_received^2) for as many answers as are needed.

    Parameters
    ----------
    nodes : ndarray of float64, shape (workers,)
        Where each worker evaluates, distinct.
    stragglers, blocks : int
    """

    nodes: Floats
    stragglers: int
    blocks: int
    is_cheap = True

    @cached_property
    def tensor(self) -> Floats:
        """All factors ``p_i^u(theta_w)``, read-only, shape (workers, partitions, blocks)."""
        workers, held = self.nodes.size, self.stragglers + self.blocks
        found = np.zeros((workers, workers, self.blocks))
        for i in range(workers):
            others = self.nodes[(i + 1 + np.arange(workers - held)) % workers]
            holders = (i - np.arange(held)) % workers
            lowest = np.prod(self.nodes[holders, None] - others, axis=1)
            factor = np.ones(held)
            for u, next_of_series in enumerate(_homogeneous(others, self.blocks)):
                if u:
                    factor = factor * self.nodes[holders] + next_of_series
                found[holders, i, u] = lowest * factor
        found.flags.writeable = False
        return found

    def weights(self, received: Indices) -> Weights:
        """Return the weights of some answers, of shape (blocks, n_received); see :class:`Decoder`.

        The error is ``||W P - E||^2 / blocks`` for factors ``P`` and the identity ``E`` for each partition: in
        partitions, and ``||a^T B - 1||^2`` for one block.

        Raises
        ------
        Unsound
            If there are enough answers, and their sum would drown in rounding.
        """
        found = self.judged(received)
        if received.size < self.nodes.size - self.stragglers:
            return found
        return sound(found, self.nodes.size, float(self._norms.max()))

    def judged(self, received: Indices) -> Weights:
        """Return the weights whatever they are worth."""
        workers = self.nodes.size
        flat = self.tensor[received].reshape(received.size, workers * self.blocks)
        wanted = np.tile(np.eye(self.blocks), workers)
        if received.size == workers - self.stragglers:
            values = highest_coefficients(self.nodes[received], self.blocks)
        elif received.size:
            norms = self._norms[received]
            values = np.linalg.lstsq((flat / norms[:, None]).T, wanted.T, rcond=None)[0].T / norms
        else:
            values = np.zeros((self.blocks, 0))
        return Weights(
            values=values,
            error=float(np.sum((values @ flat - wanted) ** 2)) / self.blocks,
            noise_gain=float(np.linalg.norm(values * self._norms[received])) / math.sqrt(workers * self.blocks),
        )

    @cached_property
    def _norms(self) -> Floats:
        found: Floats = np.linalg.norm(self.tensor.reshape(self.nodes.size, -1), axis=1)
        return found


def nodes_of(workers: int) -> Floats:
    """Return the Chebyshev node of each worker, shape (workers,), ranked like multiples of the golden ratio modulo 1.

    Examples
    --------
    >>> nodes_of(4).round(3)
    array([ 0.924, -0.383,  0.383, -0.924])
    """
    ranks = np.argsort(np.argsort(np.arange(workers) * GOLDEN % 1.0))
    found: Floats = np.cos(np.pi * (2 * ranks + 1) / (2 * workers))
    return found


def highest_coefficients(points: Floats, count: int) -> Floats:
    """Return the weights of values that give the highest coefficients of the polynomial through them.

    Parameters
    ----------
    points : ndarray of float64, shape (n_points,)
        Distinct.
    count : int
        How many coefficients, at most as many as points.

    Returns
    -------
    ndarray of float64, shape (count, n_points)
        The last row is for the coefficient of degree ``n_points - 1``.

    Examples
    --------
    >>> highest_coefficients(np.array([0.0, 1.0, 2.0]), 2) @ np.array([5.0, 6.0, 9.0])  # 5 + x^2
    array([0., 1.])
    """
    apart = points[:, None] - points
    np.fill_diagonal(apart, 1.0)
    # Lagrange's polynomials have the symmetric functions of all other points as coefficients: those of all points,
    # divided by one of them. (-1)^j e_j are the coefficients of prod (1 - x t).
    symmetric = np.zeros(count)
    symmetric[0] = 1.0
    for point in points:
        symmetric[1:] -= point * symmetric[:-1]
    found = np.empty((count, points.size))
    without = np.ones(points.size)
    for j in range(count):
        without = symmetric[j] + points * without if j else without
        found[count - 1 - j] = without
    found /= np.prod(apart, axis=1)
    return found


def _homogeneous(points: Floats, count: int) -> Floats:
    """Return the complete homogeneous symmetric functions of points, of degrees below ``count``: 1/prod (1 - x t)."""
    found = np.zeros(count)
    found[0] = 1.0
    for point in points:
        for degree in range(1, count):
            found[degree] += point * found[degree - 1]
    return found

"""Decoding of cyclic MDS codes: the null space is known, waves whose frequencies are the zeros of the code.

``a_i = 1/g(1) + Re sum_{j in J} c_j w^{ij}`` decodes exactly, whatever the ``c_j``; they are chosen such that the
weights of stragglers are 0. Nothing is prepared but a table of the ``n``-th roots of 1.

Contiguous stragglers ``0..s-1`` have a closed form, right to the last digits where any linear system fails. With
``M(x) = prod_z (1 - x/w^z)``, the polynomial ``M(x) [1/M(x)]`` is ``1 + O(x^j0)`` if the series in brackets is cut
off before ``x^j0``, ``j0 = min J``: it is 0 at the stragglers and has no frequencies but 0 and those of ``J``. Up to
phases the series has the coefficients ``prod_{l=1..k} sin(pi (s-1+l)/n) / sin(pi l/n)``.

Source: Raviv et al., arXiv:1707.03858 (the code and its null space); the closed form is our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.decoders.null_space import ExactDecoder, shortest
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices


@dataclass(frozen=True, eq=False)
class Fourier(ExactDecoder):
    """Exact weights for cyclic MDS codes: O(stragglers^3 + workers log workers), without preparation.

    Parameters
    ----------
    order : ndarray of int64, shape (workers,)
        Position of each worker in the order of the code.
    row_sum : float
        ``g(1)``, the sum of the factors of every worker.
    """

    order: Indices
    row_sum: float

    def without(self, missing: Indices) -> Floats:
        """See :class:`ExactDecoder`."""
        workers = self.order.size
        spectrum = np.zeros(workers // 2 + 1, np.complex128)
        spectrum[0] = workers / self.row_sum
        if missing.size:
            frequencies, scales = self._frequencies
            phases = self._roots[np.outer(self.order[missing], frequencies) % workers] * scales
            pairs = frequencies.size - (2 * frequencies[-1] == workers)  # a wave of frequency n/2 has no sine
            found = shortest(
                np.hstack((phases.real, phases.imag[:, :pairs])), np.full(missing.size, -1.0 / self.row_sum)
            )
            waves = found[: frequencies.size].astype(np.complex128)
            waves[:pairs] -= 1j * found[frequencies.size :]
            spectrum[frequencies] = waves / scales
        everybody: Floats = np.fft.irfft(spectrum, workers)[self.order]
        return everybody

    @cached_property
    def _frequencies(self) -> tuple[Indices, Floats]:
        """Frequencies up to ``n/2``, ascending, and factors that make their waves unit vectors."""
        workers = self.order.size
        found = np.arange((workers - self.stragglers + 1) // 2, workers // 2 + 1)
        return found, np.sqrt(np.where(2 * found == workers, 1.0, 2.0) / workers)

    @cached_property
    def _roots(self) -> NDArray[np.complex128]:
        return roots_of_unity(self.order.size)


def roots_of_unity(count: int) -> NDArray[np.complex128]:
    """Return ``exp(2 pi i k / count)`` for ``k = 0..count-1``."""
    found: NDArray[np.complex128] = np.exp(2j * np.pi * np.arange(count) / count)
    return found


def contiguous_weights(workers: int, stragglers: int, row_sum: float) -> Floats:
    """Return the sizes of the weights of a cyclic MDS code without the workers ``0..stragglers-1``, shape (workers,).

    Accurate to about 1e-12 of each also where the weights exceed 1e100; infinite beyond double precision.

    Parameters
    ----------
    workers, stragglers : int
        With ``workers - stragglers`` odd, or no stragglers.
    row_sum : float
        ``g(1)`` of the code.
    """
    kept = (workers - stragglers + 1) // 2 if stragglers else 1
    k = np.arange(1, kept)
    everybody = np.arange(workers)
    with np.errstate(over="ignore", invalid="ignore"):
        sines = np.sin(np.pi * (stragglers - 1 + k) / workers) / np.sin(np.pi * k / workers)
        series = np.concatenate(([1.0], np.cumprod(sines)))
        turned = series * np.exp(-1j * np.pi * np.arange(kept) * (stragglers - 1) / workers)
        product = np.ones(workers)
        for z in range(stragglers):
            product *= 2.0 * np.abs(np.sin(np.pi * (everybody - z) / workers))
        sizes = workers * np.abs(np.fft.ifft(turned, workers)) * product / row_sum
    sizes[:stragglers] = 0.0
    found: Floats = np.nan_to_num(sizes, nan=math.inf)
    return found

"""The deterministic cyclic MDS code: all rows are shifts of one, whose polynomial has ``s`` neighbouring roots of 1.

``g(x) = prod_{j in J} (x - w^j)`` with ``w = exp(2 pi i/n)`` has the factors of a row as its coefficients. They are
real if ``J`` is symmetric, which ``s`` neighbours other than 0 can be if and only if ``n - s`` is odd.

Source: Raviv et al., "Gradient coding from cyclic MDS codes and expander graphs", arXiv:1707.03858.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.cyclic_code import CyclicCode, check_stragglers, cyclic_rows, rule_of
from emuml.protocols.gradient_coding.decoders.conditioning import REFUSED, refuse_hopeless, relative_error
from emuml.protocols.gradient_coding.decoders.fourier import Fourier, contiguous_weights
from emuml.protocols.gradient_coding.decoders.interpolation import GOLDEN
from emuml.protocols.gradient_coding.decoders.least_squares import check_size
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices
from emuml.spec import check
from emuml.streams import stream_key, words_at

Order = Literal["stride", "natural", "seeded"]
"""How workers are put into the order of a code; see :class:`CyclicMDS`."""

_STRIDES, _STEPS_MAX = 8, 1024
"""Strides that are tried, and workers after one that are looked at."""


@dataclass(frozen=True)
class CyclicMDS:
    """Every worker holds ``stragglers + 1`` neighbouring partitions, all with the same factors: exact for as many.

    The load is ``stragglers + 1``. A round closes at ``workers - stragglers`` answers, or at ``collect`` if that is
    fewer; then the decoding has the least error that is possible. Scattered stragglers are decoded with little noise;
    neighbours are the worst case, and a bad one from about 100 workers and 5 stragglers on.

    Parameters
    ----------
    stragglers : int
        How many answers may be missing, less than there are workers. The difference must be odd, or there are none.
    order : str
        Which workers are neighbours in the code. ``"stride"``: worker ``w`` has the position ``q w`` modulo
        ``workers``, with ``q`` about 0.618 times ``workers``, so that workers of one rack, who fail together, are far
        apart. ``"natural"``: the position ``w``. ``"seeded"``: a random order, a function of the run's seed.

    Examples
    --------
    >>> code = CyclicMDS(stragglers=3).build(10)
    >>> code.coefficients(0), code.order
    ((1.0, 2.6180339887498953, 2.6180339887498953, 1.0), array([0, 7, 4, 1, 8, 5, 2, 9, 6, 3]))
    >>> round(code.contiguous_gain, 2)
    6.61
    """

    stragglers: Annotated[int, Ge(0)]
    order: Order = "stride"

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> CyclicCode:
        """Return the code for ``workers`` workers whose rounds also close at ``collect`` answers.

        Raises
        ------
        UserError
            If there are not more workers than stragglers, their difference is even, ``collect`` is not in
            ``1..workers``, or neighbouring stragglers would leave nothing of the gradient in double precision.
        """
        check_stragglers(self.stragglers, workers, collect, type(self).__name__)
        if self.stragglers and (workers - self.stragglers) % 2 == 0:
            other = f"CyclicRepetition(stragglers={self.stragglers})"
            next_fits = relative_error(_worst_gain(workers, self.stragglers + 1)) < REFUSED
            raise UserError(
                f"{workers} workers and {self.stragglers} stragglers differ by an even number: the code is not real",
                "CyclicMDS.stragglers",
                f"an integer in 0..{workers - 1} that is {'even' if workers % 2 else 'odd'}, or 0",
                f"the nearest is {self.stragglers + 1}; {other} fits as well" if next_fits else f"{other} fits",
            )
        if collect is not None and collect < workers - self.stragglers:
            check_size(
                collect, workers, "fewer answers than exact ones need", "without collect there is no such matrix"
            )
        return _built(workers, self.stragglers, self.order, seed if self.order == "seeded" else 0, collect)


@lru_cache(maxsize=8)
def _built(workers: int, stragglers: int, order: Order, seed: int, collect: int | None) -> CyclicCode:
    factors, gain = generator(workers, stragglers), _worst_gain(workers, stragglers)
    refuse_hopeless(gain, f"the cyclic MDS code of {workers} workers", stragglers, "CyclicMDS.stragglers")
    positions = positions_of(workers, order, seed)
    rows = cyclic_rows(np.tile(factors, (workers, 1)), positions)
    decoder = Fourier(rows, stragglers, positions, float(np.sum(factors)))
    return CyclicCode(
        rows, rule_of(workers, stragglers, collect, decoder, gain), decoder, collect, stragglers, gain, positions
    )


def _worst_gain(workers: int, stragglers: int) -> float:
    """Return the noise gain without so many neighbours: the same for all of them."""
    factors = generator(workers, stragglers)
    weights = contiguous_weights(workers, stragglers, float(np.sum(factors)))
    return float(np.linalg.norm(weights) * np.linalg.norm(factors) / math.sqrt(workers))


def generator(workers: int, stragglers: int) -> Floats:
    """Return the coefficients of ``g``, those of the lowest power first, shape (stragglers + 1,).

    They are Gaussian binomials on the unit circle, without their phases: all positive, and right to the last digits.

    Examples
    --------
    >>> generator(12, 3).round(6)
    array([1.      , 2.732051, 2.732051, 1.      ])
    """
    t = np.arange(1, stragglers + 1)
    ratios = np.sin(np.pi * (stragglers + 1 - t) / workers) / np.sin(np.pi * t / workers)
    found: Floats = np.concatenate(([1.0], np.cumprod(ratios)))
    return found


def positions_of(workers: int, order: Order, seed: int = 0) -> Indices:
    """Return the position of each worker in the order of a code, shape (workers,); see :class:`CyclicMDS`.

    Examples
    --------
    >>> positions_of(8, "stride"), positions_of(8, "seeded", seed=1)
    (array([0, 5, 2, 7, 4, 1, 6, 3]), array([2, 3, 6, 5, 0, 4, 1, 7]))
    """
    everybody = np.arange(workers)
    if order == "stride":
        return everybody * _stride(workers) % workers
    if order == "seeded":
        drawn = words_at(stream_key(seed, "", f"code/cyclic-mds/{workers}/order"), everybody)
        return np.argsort(drawn, kind="stable").astype(np.int64, copy=False)
    return everybody


def _stride(workers: int) -> int:
    """Return a stride near the golden section, prime to ``workers``, whose few multiples are far from each other."""
    near = sorted(range(1, workers + 1), key=lambda q: abs(q - GOLDEN * workers))
    steps = np.arange(1, min(workers // 2, _STEPS_MAX) + 1)

    def spread(stride: int) -> int:
        apart = steps * stride % workers
        return int((steps * np.minimum(apart, workers - apart)).min(initial=workers))

    return max([q for q in near if math.gcd(q, workers) == 1][:_STRIDES], key=spread)

"""Cyclic repetition: random rows on cyclic supports, exact for any ``s`` stragglers and any number of workers.

The matrix ``H``, and so the code, is a pure function of seed, workers and stragglers: normal numbers of a stream of its
own, and IEEE arithmetic in one order. So all nodes have the same rows, bit for bit, whatever their machines; a worker
with slightly other rows would change the decoded sum by that difference times the noise gain.

Source: Tandon et al., "Gradient coding", arXiv:1612.03301, Algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from annotated_types import Ge

from emuml.protocols.gradient_coding.codes.cyclic_code import CyclicCode, check_stragglers, cyclic_rows, rule_of
from emuml.protocols.gradient_coding.decoders.conditioning import refuse_hopeless
from emuml.protocols.gradient_coding.decoders.least_squares import check_size
from emuml.protocols.gradient_coding.decoders.null_space import NullSpace
from emuml.protocols.gradient_coding.decoders.seam import Floats
from emuml.spec import check
from emuml.streams import normal_at, stream_key

_ENTRIES = 1 << 18
"""So many entries of linear systems are eliminated together: they fit into the cache."""


@dataclass(frozen=True)
class CyclicRepetition:
    """Every worker holds ``stragglers + 1`` neighbouring partitions with random factors: exact for any ``stragglers``.

    The load is ``stragglers + 1``. A round closes at ``workers - stragglers`` answers, or at ``collect`` if that is
    fewer; then the decoding has the least error that is possible. The noise gain has a heavy tail and no known worst
    case, so :class:`FractionalRepetition` is better wherever its groups will do.

    Parameters
    ----------
    stragglers : int
        How many answers may be missing, less than there are workers.

    Examples
    --------
    >>> code = CyclicRepetition(stragglers=1).build(5, seed=7)
    >>> code.assignment(4), code.decode([0, 1, 3, 4]).error < 1e-20
    ((0, 4), True)
    """

    stragglers: Annotated[int, Ge(0)]

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> CyclicCode:
        """Return the code for ``workers`` workers whose rounds also close at ``collect`` answers.

        Raises
        ------
        UserError
            If there are not more workers than stragglers, ``collect`` is not in ``1..workers``, or there are more than
            4,096 workers.
        """
        check_stragglers(self.stragglers, workers, collect, type(self).__name__)
        hint = f"FractionalRepetition(replication={self.stragglers + 1}) or CyclicMDS has no such matrix"
        check_size(workers, workers, "cyclic repetition", hint)
        return _built(workers, self.stragglers, seed, collect)


@lru_cache(maxsize=8)
def _built(workers: int, stragglers: int, seed: int, collect: int | None) -> CyclicCode:
    factors, order = cyclic_factors(parity_check(workers, stragglers, seed)), np.arange(workers)
    gain = contiguous_gain(factors)
    refuse_hopeless(gain, f"this cyclic code of {workers} workers", stragglers, "CyclicRepetition.stragglers")
    rows = cyclic_rows(factors, order)
    decoder = NullSpace(rows, stragglers)
    return CyclicCode(
        rows, rule_of(workers, stragglers, collect, decoder, gain), decoder, collect, stragglers, gain, order
    )


def parity_check(workers: int, stragglers: int, seed: int) -> Floats:
    """Return the matrix ``H`` with ``H B^T = 0``, shape (stragglers, workers): normal numbers, rows that sum to 0.

    Parameters
    ----------
    workers, stragglers, seed : int
        All that it depends on.
    """
    key = stream_key(seed, "", f"code/cyclic-repetition/{workers}/{stragglers}")
    matrix = np.empty((stragglers, workers))
    matrix[:, :-1] = normal_at(key, np.arange(stragglers * (workers - 1))).reshape(stragglers, workers - 1)
    # A cumulated sum is added from left to right everywhere; other sums are not.
    matrix[:, -1] = -np.cumsum(matrix[:, :-1], axis=1)[:, -1] if workers > 1 else 0.0
    return matrix


def cyclic_factors(checks: Floats) -> Floats:
    """Return the rows of ``B`` on their supports: entry ``[i, t]`` is that of partition ``i + t`` modulo ``workers``.

    Parameters
    ----------
    checks : ndarray of float64, shape (stragglers, workers)
        ``H``; every ``stragglers`` neighbouring columns are independent.

    Returns
    -------
    ndarray of float64, shape (workers, stragglers + 1)
        The first column is 1.
    """
    stragglers, workers = checks.shape
    columns = (np.arange(workers)[:, None] + np.arange(stragglers + 1)) % workers
    factors = np.ones((workers, stragglers + 1))
    together = max(_ENTRIES // max(stragglers * stragglers, 1), 1)
    for first in range(0, workers, together):
        those = columns[first : first + together]
        systems = checks[:, those[:, 1:]].transpose(1, 0, 2)
        factors[first : first + together, 1:] = solved(systems, -checks[:, those[:, 0]].T)
    return factors


def solved(systems: Floats, right: Floats) -> Floats:
    """Return the solutions of many systems, shape (n_systems, size), by elimination with pivots.

    Operations and their order are the same on every machine, which is not so with LAPACK.

    Parameters
    ----------
    systems : ndarray of float64, shape (n_systems, size, size)
    right : ndarray of float64, shape (n_systems, size)
    """
    rest = np.concatenate((systems, right[:, :, None]), axis=2)
    each, size = np.arange(len(rest)), right.shape[1]
    for j in range(size):
        pivot = j + np.argmax(np.abs(rest[:, j:, j]), axis=1)
        rest[each, pivot], rest[:, j] = rest[:, j].copy(), rest[each, pivot]
        ratios = rest[:, j + 1 :, j] / rest[:, j, j, None]
        rest[:, j + 1 :, j + 1 :] -= ratios[:, :, None] * rest[:, j, None, j + 1 :]
    found = rest[:, :, -1]
    for j in range(size - 1, -1, -1):
        found[:, j] /= rest[:, j, j]
        found[:, :j] -= rest[:, :j, j] * found[:, j, None]
    return found


def contiguous_gain(factors: Floats) -> float:
    """Return the largest noise gain of a cyclic code without so many neighbours as it can do without.

    Without the workers ``f-s..f-1`` partition ``f`` has one holder, ``f``; the next one has this and the next worker,
    and so on: weights follow one by one.

    Parameters
    ----------
    factors : ndarray of float64, shape (workers, stragglers + 1)
        Rows on their supports.
    """
    workers, held = factors.shape
    norms, firsts = np.sum(factors**2, axis=1), np.arange(workers)
    recent = np.zeros((held - 1, workers))  # weights of the last workers, for each first one
    total = np.zeros(workers)
    for step in range(workers - held + 1):
        worker = (firsts + step) % workers
        weights = np.ones(workers)
        for back in range(1, held):
            weights -= factors[(worker - back) % workers, back] * recent[-back]
        weights /= factors[worker, 0]
        total += weights**2 * norms[worker]
        recent = np.concatenate((recent[1:], weights[None])) if held > 1 else recent
    return float(np.sqrt(total.max() / workers))

"""Which workers hold which partitions, such that any two partitions meet at about equally many workers.

A *difference set* is a set of ``d`` residues modulo ``n`` among whose differences every other residue occurs equally
often, ``lambda = d (d-1) / (n-1)`` times. Turned by ``i``, it names the workers of partition ``i``: every worker then
holds ``d`` partitions, and any two partitions share ``lambda`` workers exactly. (7, 3) is the Fano plane. Where there
is none, workers are drawn: then two partitions share ``d_i d_j / n`` on average.

References
----------
Bitar, Wootters and El Rouayheb, "Stochastic gradient coding", IEEE JSAIT 2020 (pairwise balanced placement); Hall,
Combinatorial Theory, chapter 11 (difference sets).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from emuml.streams import stream_key, subset_at

_STEPS = 300_000
_SEARCHED = 12
"""Steps of a search for a difference set, and its largest size; beyond them there is none as far as we know."""


@lru_cache(maxsize=256)
def difference_set(modulus: int, size: int) -> tuple[int, ...] | None:
    """Return residues modulo ``modulus`` whose differences are balanced, ascending from 0; None if none is found.

    Found are all small ones, and the squares modulo a prime ``4 t + 3``. The search is deterministic, so that everybody
    who asks gets the same set.

    Parameters
    ----------
    modulus : int
        ``n``, at least 1.
    size : int
        ``d``, in ``1..n``.

    Examples
    --------
    >>> difference_set(7, 3), difference_set(13, 4), difference_set(8, 3)
    ((0, 1, 3), (0, 1, 3, 9), None)
    """
    if size in (1, modulus):
        return tuple(range(size))
    if size * (size - 1) % (modulus - 1):
        return None
    if 2 * size > modulus:  # the complement of a difference set is one
        rest = difference_set(modulus, modulus - size)
        return None if rest is None else _from_zero(set(range(modulus)) - set(rest), modulus)
    if modulus % 4 == 3 and 2 * size + 1 == modulus and _is_prime(modulus):
        return _from_zero({x * x % modulus for x in range(1, modulus)}, modulus)
    return _searched(modulus, size, size * (size - 1) // (modulus - 1)) if size <= _SEARCHED else None


def placement(workers: int, replication: int, seed: int, name: str) -> NDArray[np.int64]:
    """Return which workers hold each of as many partitions as workers, ascending, shape (workers, replication).

    Parameters
    ----------
    workers : int
        Number of workers, and of partitions.
    replication : int
        Workers that hold each partition, in ``1..workers``.
    seed : int
        Of the experiment; used where no difference set is known.
    name : str
        Of the random stream, ``code/NAME``.
    """
    found = difference_set(workers, replication)
    if found is None:
        keys = (stream_key(seed, "", f"{name}/{partition}") for partition in range(workers))
        return np.array([subset_at(key, workers, replication) for key in keys])
    turned = (np.arange(workers)[:, None] + np.array(found, np.int64)) % workers
    return np.sort(turned, axis=1)


def _searched(modulus: int, size: int, often: int) -> tuple[int, ...] | None:
    """Return the lexicographically least difference set with 0 and 1 or, if that is long to find, None.

    Every difference set has a pair at each distance, so that one of its turns holds 0 and 1.
    """
    counts, chosen, steps = [0] * modulus, [0], 0

    def fits(new: int) -> bool:
        """Count the differences of a new residue with the chosen ones, unless one would be there too often."""
        for position, old in enumerate(chosen):
            counts[new - old] += 1
            counts[old - new] += 1  # of a negative difference Python finds the residue
            if max(counts[new - old], counts[old - new]) > often:
                uncount(new, position + 1)
                return False
        return True

    def uncount(new: int, many: int) -> None:
        for old in chosen[:many]:
            counts[new - old] -= 1
            counts[old - new] -= 1

    def extend(least: int) -> bool:
        nonlocal steps
        if len(chosen) == size:
            return True
        for new in range(least, modulus - (size - len(chosen)) + 1):
            steps += len(chosen)
            if steps > _STEPS:
                return False
            if fits(new):
                chosen.append(new)
                if extend(new + 1):
                    return True
                chosen.pop()
                uncount(new, len(chosen))
            if len(chosen) == 1:  # 1 is the second
                return False
        return False

    return tuple(chosen) if extend(1) else None


def _from_zero(residues: set[int], modulus: int) -> tuple[int, ...]:
    """Return the turn of a difference set that begins with 0."""
    least = min(residues)
    return tuple(sorted((residue - least) % modulus for residue in residues))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))

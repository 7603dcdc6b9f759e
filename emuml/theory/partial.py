"""When rounds of partial work close: workers send each share of their work as it is done (see ``PartialWork``).

Durations come from the streams that the engines draw from, and times are added in their order: share ``j`` of ``r``
equal ones of a whole that takes ``T`` ends ``T (1/r)`` after share ``j - 1``. So, at equal seeds and with partitions of
equal size, times are those of :func:`emuml.run` bit for bit on a cluster whose messages take no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from emuml.durations import DrawnLaw, Floats, durations
from emuml.shapes import Stragglers
from emuml.theory import arguments
from emuml.theory.sample import SampledRounds


class SharedWork(Protocol):
    """A built code whose workers send shares of equal size."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        ...

    @property
    def partitions(self) -> int:
        """Number of partitions, each held by as many workers."""
        ...

    @property
    def load(self) -> float:
        """Work of each worker, in units of ``1/workers`` of the data."""
        ...

    @property
    def needed(self) -> int:
        """How many different partitions close a round."""
        ...

    def order(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker in the order in which it does them."""
        ...


def partial_round_times(
    law: DrawnLaw,
    code: SharedWork,
    rounds: int,
    seed: int = 0,
    *,
    stragglers: Stragglers = "cancel",
    asks_who: bool = False,
) -> SampledRounds:
    """Return when the rounds of one run of partial work end.

    Parameters
    ----------
    law : DrawnLaw
        Law of the workers' times for all their work in a round.
    code : SharedWork
        Such as ``PartialWork(replication=4).build(40)``.
    rounds : int
        How many, > 0.
    seed : int
        Seed of the experiment.
    stragglers : {"cancel", "skip-stale", "carry-over", "wait-all"}
        What becomes of work on a closed round; of shares that are begun, not of whole tasks.
    asks_who : bool
        Whether to tell which partitions are used: ``answered`` then has the shape (rounds, partitions).

    Raises
    ------
    UserError, RunFailed
        If an argument is none, or the law does not know so many workers or draws.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.gradient_coding import PartialWork
    >>> law = ShiftedExponential(shift_s=0.01, mean_s=0.1, tail="scaled")
    >>> found = partial_round_times(law, PartialWork(replication=4).build(40), rounds=10_000)
    >>> [round(value, 4) for value in found.mean_and_error_s]
    [0.2178, 0.0007]
    """
    arguments.check_integer(rounds, "rounds", 1)
    arguments.check_stragglers(stragglers)
    decided_s, ended_s = np.empty(rounds), np.empty(rounds)
    there = np.empty((rounds if asks_who else 0, code.partitions), np.bool_)
    for i, (decided, ended, first_s) in enumerate(_rounds(law, code, rounds, seed, stragglers)):
        decided_s[i], ended_s[i] = decided, ended
        if asks_who:
            there[i] = first_s <= decided
    return SampledRounds(decided_s, ended_s, there)


def _rounds(
    law: DrawnLaw, code: SharedWork, rounds: int, seed: int, stragglers: Stragglers
) -> Iterator[tuple[float, float, Floats]]:
    """Yield when each round is decided and ends, and when each partition is there first."""
    n, orders = code.workers, np.array([code.order(worker) for worker in range(code.workers)])
    holders, places = _holders(orders, code.partitions)
    fill, whole_s, asked_s, free_s = durations(law, seed, n), np.empty(n), 0.0, np.zeros(n)
    for draw in range(rounds):
        fill(draw, code.load, whole_s)
        start_s = np.maximum(asked_s, free_s)
        ends_s = shares_end(start_s, whole_s, orders.shape[1])
        first_s = ends_s[holders, places].min(axis=1)
        decided_s = float(np.partition(first_s, code.needed - 1)[code.needed - 1])
        asked_s = float(ends_s[:, -1].max()) if stragglers == "wait-all" else decided_s
        if stragglers == "carry-over":
            free_s = ends_s[:, -1]
        elif stragglers == "skip-stale":  # the share that is begun is the last
            n_done = np.count_nonzero(ends_s <= asked_s, axis=1)
            last_s = ends_s[np.arange(n), np.minimum(n_done, orders.shape[1] - 1)]
            free_s = np.where(start_s < asked_s, last_s, free_s)
        yield decided_s, asked_s, first_s


def shares_end(start_s: Floats, whole_s: Floats, shares: int) -> Floats:
    """Return when each share of each worker's work ends, shape (workers, shares)."""
    ends_s = np.empty((start_s.size, shares))
    each_s, now_s = whole_s * (1.0 / shares), start_s
    for share in range(shares):
        now_s = np.add(now_s, each_s, out=ends_s[:, share])
    return ends_s


def _holders(orders: NDArray[np.int64], partitions: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who holds each partition, and as which of its shares, each of shape (partitions, replicas)."""
    held = np.argsort(orders.ravel(), kind="stable").reshape(partitions, -1)
    worker, place = np.divmod(held, orders.shape[1])
    return worker, place

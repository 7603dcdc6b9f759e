"""A built group code: disjoint groups of workers, one block of partitions for each group, weights 0 or a scale.

Worker ``w`` sends the plain sum of its group's partitions in ascending partition id, so the answers of a group are
equal bit for bit and any one of them stands for it. The lowest responder of a group gets its weight, whatever the
order of arrival: equal sets of responders decode equally.

Cost: O(groups + responders) a decode; the encode matrix is made only when asked for, because 100,000 workers are legal
and their matrix is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Decoding, checked
from emuml.shapes import All, Count, Cover, CoverOrCount, Groups, StopRule, miss_probability
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.protocol import Problem

Scale = Literal["none", "unbiased", "covered"]
"""Factor on the sum of the groups that answered; see :class:`FractionalRepetition`."""


@dataclass(frozen=True)
class GroupCode(BuiltCode):
    """A code for a known number of workers.

    Parameters
    ----------
    workers : int
        Number of workers ``n``.
    n_groups : int
        Number of groups ``m``; sizes differ by at most one, larger groups first.
    block : int
        Partitions that each group holds.
    scale : str
        Factor on the sum of the covered groups (see :class:`FractionalRepetition`).
    collect : int or None
        Answers at which a round closes at the latest; ``None`` for no such limit.
    """

    workers: int
    n_groups: int
    block: int
    scale: Scale
    collect: int | None

    @property
    def partitions(self) -> int:
        """Number of partitions ``k`` of the data."""
        return self.n_groups * self.block

    @property
    def load(self) -> float:
        """Work of each worker, in units of ``1/workers`` of the data."""
        return self.workers / self.n_groups

    @cached_property
    def group_sizes(self) -> tuple[int, ...]:
        """Workers in each group."""
        small, n_larger = divmod(self.workers, self.n_groups)
        return (small + 1,) * n_larger + (small,) * (self.n_groups - n_larger)

    @cached_property
    def groups(self) -> Groups:
        """Workers of each group, ascending; groups are contiguous."""
        starts = np.concatenate(([0], np.cumsum(self.group_sizes))).tolist()
        return tuple(tuple(range(a, b)) for a, b in pairwise(starts))

    def group_of(self, worker: int) -> int:
        """Return the group of a worker."""
        return int(self._group_of[worker])

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending."""
        if self.n_groups == self.workers and self.block == 1:
            return (worker,)  # the same integer, of which there may be millions
        first = self.group_of(worker) * self.block
        return tuple(range(first, first + self.block))

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factor of each of the worker's partitions in its answer: ones."""
        return (1.0,) * self.block

    def task(self, workload: Problem, parameters: NDArray[Any], worker: int, draw: int) -> Task:
        """Return what a worker computes; replicas that are asked the same in a row are given the same object."""
        if self.n_groups == self.workers:
            return super().task(workload, parameters, worker, draw)
        group = self.group_of(worker)
        kept = self._tasks.get(group)
        if kept is None or kept[0] is not workload or kept[1] is not parameters or kept[2].draw != draw:
            kept = self._tasks[group] = workload, parameters, super().task(workload, parameters, worker, draw)
        return kept[2]

    @cached_property
    def _tasks(self) -> dict[int, tuple[Problem, NDArray[Any], Task]]:
        return {}

    @cached_property
    def encode_matrix(self) -> NDArray[np.float64]:
        """The matrix ``B``, read-only, of shape (workers, partitions): 1 where a worker holds a partition."""
        matrix = np.zeros((self.workers, self.n_groups, self.block))
        matrix[np.arange(self.workers), self._group_of] = 1.0
        flat = matrix.reshape(self.workers, self.partitions)
        flat.flags.writeable = False
        return flat

    def stop_rule(self) -> StopRule:
        """Return when a round of this code closes."""
        return self._stop_rule

    def decode(self, received: Iterable[int]) -> Decoding:
        """Combine the answers of some workers; the weights of replicas that are not needed are 0."""
        workers = checked(received, self.workers)
        groups = self._group_of[workers]
        lowest = self._lowest(groups, workers)
        covered = np.flatnonzero(lowest < self.workers)
        factors = np.zeros(self.n_groups)
        factors[covered] = self._factors(covered)
        return Decoding(
            weights=np.where(lowest[groups] == workers, factors[groups], 0.0),
            error=self.block * float(np.sum((factors - 1.0) ** 2)),
            covered_groups=covered,
            noise_gain=math.sqrt(float(np.sum(factors**2)) / self.n_groups),
        )

    def _lowest(self, groups: NDArray[np.int64], workers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lowest worker of each group, or the number of workers where there is none."""
        lowest = np.full(self.n_groups, self.workers)
        if np.all(workers[1:] > workers[:-1]):
            lowest[groups[::-1]] = workers[::-1]  # of repeated indices the last assignment stays
        else:
            np.minimum.at(lowest, groups, workers)
        return lowest

    def _factors(self, covered: NDArray[np.int64]) -> NDArray[np.float64] | float:
        if self.scale == "unbiased":
            return self._unbiased_factors[covered]
        return self.n_groups / max(covered.size, 1) if self.scale == "covered" else 1.0

    @cached_property
    def _unbiased_factors(self) -> NDArray[np.float64]:
        count = self.workers if self.collect is None else self.collect
        factor = {size: 1.0 / (1.0 - miss_probability(self.workers, size, count)) for size in set(self.group_sizes)}
        return np.array([factor[size] for size in self.group_sizes])

    @cached_property
    def _group_of(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_groups), self.group_sizes)

    @cached_property
    def _stop_rule(self) -> StopRule:
        if self.n_groups == self.workers:
            # Groups of one: covering them all means waiting for all, so a plain count says the same for less.
            return All(self.workers) if self.collect is None else Count(self.workers, self.collect)
        if self.collect is None or self.collect == self.workers:
            return Cover(self.groups)
        return CoverOrCount(self.groups, self.collect)

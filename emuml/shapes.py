"""Shapes of protocols: when a round closes, and what a round or a push costs.

A stop rule is the one place where "enough answers have arrived" is decided. The server of a protocol asks its
tracker, one arrival at a time; an array tier of the emulator asks ``stop_index`` for a whole order of arrivals at once.
Both must agree, and every rule here is monotone: more responders never open a round again.

Nothing here sends, waits or draws. Decoding weights belong to codes, delays to the cluster.

Invariants: (1) ``stop_index(order)`` is the number of arrivals after which the tracker first says so, or
``len(order)`` when it never does; (2) a repeated worker changes nothing; (3) a rule is immutable, a tracker serves one
round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import numpy as np
from annotated_types import Ge

from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.errors import ContractError, UserError
from emuml.spec import check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

Groups = tuple[tuple[int, ...], ...]
"""Disjoint groups of workers: every worker ``0..n-1`` is in exactly one."""

Stragglers = Literal["cancel", "skip-stale", "carry-over", "wait-all"]
"""What becomes of work on a closed round; see :class:`Round`."""


class StopRule:
    """When a round may close, as a function of who has answered.

    The rules below state their parts, a count and groups to cover; a rule of another kind overrides ``tracker``.
    """

    workers: int
    """Number of workers of the round."""

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return Tracker(self.workers, *self.parts())

    def stop_index(self, order: NDArray[np.integer]) -> int:
        """Return how many arrivals of ``order`` the round uses.

        Parameters
        ----------
        order : ndarray of int, shape (n_arrivals,)
            Workers in the order of arrival; those that never answer are left out.

        Returns
        -------
        int
            Arrivals up to and including the one that closes the round; ``n_arrivals`` if none does.
        """
        arrivals = np.asarray(order, dtype=np.int64)
        if type(self).tracker is not StopRule.tracker:
            return self._arrival_by_arrival(arrivals)
        count, cover = self.parts()
        by_count = arrivals.size if count is None else _count_index(arrivals, self.workers, count)
        return by_count if cover is None else min(by_count, _cover_index(arrivals, cover))

    def closing_index(self, order: NDArray[np.int64]) -> int:
        """Return after how many arrivals of ``order`` the round closes; 0 if it does not."""
        last, tracker = self.stop_index(order), self.tracker()
        for worker in order[:last].tolist():
            tracker.arrived(worker)
        return last if tracker.closed else 0

    def _arrival_by_arrival(self, order: NDArray[np.int64]) -> int:
        arrived = self.tracker().arrived
        return next((used for used, worker in enumerate(order.tolist(), 1) if arrived(worker)), order.size)

    def parts(self) -> tuple[int | None, Cover | None]:
        """Return the count that closes the round and the groups whose cover does; ``None`` for what does not."""
        raise NotImplementedError


class Tracker:
    """The arrivals of one round, judged against a stop rule in O(1) each.

    The round closes at ``count`` distinct workers or once every group has an answer, whichever is asked for.

    Parameters
    ----------
    workers : int
        Number of workers.
    count : int or None
        Distinct workers that close the round; ``None`` when their number does not matter.
    cover : Cover or None
        Groups that close the round once each has an answer; ``None`` when groups do not matter.
    """

    def __init__(self, workers: int, count: int | None, cover: Cover | None) -> None:
        self.workers = workers
        self._count = workers + 1 if count is None else count
        self._cover = cover
        self._is_covered = bytearray(len(cover.groups) if cover else 0)
        self._n_uncovered = len(cover.groups) if cover else -1
        self._has_arrived = bytearray(workers)
        self._arrivals: list[int] = []

    @property
    def closed(self) -> bool:
        """Whether the round may close."""
        return len(self._arrivals) >= self._count or self._n_uncovered == 0

    @property
    def arrived_workers(self) -> tuple[int, ...]:
        """Workers that have answered, ascending."""
        return tuple(sorted(self._arrivals))

    @property
    def n_arrived(self) -> int:
        """Number of distinct workers that have answered."""
        return len(self._arrivals)

    def arrived(self, worker: int) -> bool:
        """Note an answer and return whether the round may close; a repeated worker changes nothing.

        Raises
        ------
        ContractError
            If there is no such worker.
        """
        if not 0 <= worker < self.workers:
            raise ContractError(f"worker {worker} answered a round of workers 0..{self.workers - 1}")
        if not self._has_arrived[worker]:
            self._has_arrived[worker] = True
            self._arrivals.append(worker)
            if self._cover is not None:
                self._note_group(self._cover.group_of[worker])
        return self.closed

    def hopeless(self, down: AbstractSet[int]) -> bool:
        """Return whether the round can never close by its rule if the workers in ``down`` stay silent.

        Answers that arrived before their worker went down still count. O(size of ``down``).
        """
        if self.closed:
            return False
        silent = [worker for worker in down if 0 <= worker < self.workers and not self._has_arrived[worker]]
        if self.workers - len(silent) >= self._count:
            return False
        return self._cover is None or self._loses_a_group(self._cover, silent)

    def _note_group(self, group: int) -> None:
        if not self._is_covered[group]:
            self._is_covered[group] = True
            self._n_uncovered -= 1

    def _loses_a_group(self, cover: Cover, silent: Sequence[int]) -> bool:
        n_silent: dict[int, int] = {}
        for worker in silent:
            group = cover.group_of[worker]
            n_silent[group] = n_silent.get(group, 0) + 1
        return any(n == len(cover.groups[group]) for group, n in n_silent.items())


@dataclass(frozen=True)
class All(StopRule):
    """Wait for every worker.

    Parameters
    ----------
    workers : int
        Number of workers, at least 1.
    """

    workers: Annotated[int, Ge(1)]

    def __post_init__(self) -> None:
        check(self)

    def parts(self) -> tuple[int | None, Cover | None]:
        """Return count and groups (see :class:`StopRule`)."""
        return self.workers, None


@dataclass(frozen=True)
class Count(StopRule):
    """Close at the first ``count`` distinct workers.

    Parameters
    ----------
    workers : int
        Number of workers, at least 1.
    count : int
        Answers to wait for, in ``1..workers``.
    """

    workers: Annotated[int, Ge(1)]
    count: Annotated[int, Ge(1)]

    def __post_init__(self) -> None:
        check(self)
        _check_count(self.count, self.workers, "Count.count")

    def parts(self) -> tuple[int | None, Cover | None]:
        """Return count and groups (see :class:`StopRule`)."""
        return self.count, None


@dataclass(frozen=True)
class Cover(StopRule):
    """Close once every group of workers has an answer.

    Parameters
    ----------
    groups : tuple of tuple of int
        Disjoint, non-empty groups that hold the workers ``0..n-1``, each once.
    """

    groups: Groups
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(map(tuple, self.groups)))
        # Arrays, because the generic check visits every item: it takes 30 times as long with 100,000 workers.
        members = np.fromiter(chain.from_iterable(self.groups), dtype=np.int64)
        if not self.groups or not all(self.groups):
            raise UserError("a group has no worker", "Cover.groups", "at least one group, none of them empty")
        if not np.array_equal(np.sort(members), np.arange(members.size)):
            raise UserError(
                "the groups do not partition the workers", "Cover.groups", f"each of 0..{members.size - 1} exactly once"
            )
        object.__setattr__(self, "workers", members.size)

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """Group of each worker."""
        return tuple(self.group_array.tolist())

    @cached_property
    def group_array(self) -> NDArray[np.int64]:
        """Group of each worker, as an array of shape (workers,)."""
        members = np.fromiter(chain.from_iterable(self.groups), dtype=np.int64, count=self.workers)
        group_of = np.empty(self.workers, dtype=np.int64)
        group_of[members] = np.repeat(np.arange(len(self.groups)), [len(group) for group in self.groups])
        return group_of

    def parts(self) -> tuple[int | None, Cover | None]:
        """Return count and groups (see :class:`StopRule`)."""
        return None, self


@dataclass(frozen=True)
class CoverOrCount(StopRule):
    """Close once every group has an answer or ``count`` distinct workers have answered, whichever is first.

    Replicas of a group that already has an answer count among the ``count``.

    Parameters
    ----------
    groups : tuple of tuple of int
        As for :class:`Cover`.
    count : int
        Answers that close the round, in ``1..workers``.
    """

    groups: Groups
    count: Annotated[int, Ge(1)]
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", self.cover.groups)
        object.__setattr__(self, "workers", self.cover.workers)
        _check_count(self.count, self.workers, "CoverOrCount.count")

    @cached_property
    def cover(self) -> Cover:
        """The rule without its count."""
        return Cover(self.groups)

    def parts(self) -> tuple[int | None, Cover | None]:
        """Return count and groups (see :class:`StopRule`)."""
        return self.count, self.cover


def miss_probability(workers: int, size: int, count: int) -> float:
    """Return the probability that ``count`` workers drawn without replacement all lie outside a group of ``size``.

    ``C(n-size, count) / C(n, count)``, as a product of ratios in [0, 1], so that it neither overflows nor cancels.

    Examples
    --------
    >>> miss_probability(6, 2, 3)
    0.2
    """
    ratio = 1.0
    for i in range(size):
        ratio *= max(workers - count - i, 0) / (workers - i)
    return ratio


@dataclass(frozen=True)
class Round:
    """A synchronous protocol: parameters go out, everybody computes, the stop rule closes the round.

    Parameters
    ----------
    broadcast : int
        Bytes of the parameters, from the server to each worker.
    compute : float
        Work of each worker, in units of ``1/workers`` of a full pass over the data, replicas counted.
    stop_rule : StopRule
        When the server takes its step and broadcasts again.
    answer : int
        Bytes of what each worker sends back.
    stragglers : str
        What becomes of the work of a closed round. ``"cancel"``: it ends when the next parameters arrive.
        ``"skip-stale"``: it is finished in vain, then the newest parameters are next. ``"carry-over"``: it is finished
        in vain, and so is every round in between, in order. ``"wait-all"``: the next round waits for it.
    deadline : Deadline
        When a round closes by the clock, if its rule has not closed it.
    """

    broadcast: Annotated[int, Ge(0)]
    compute: Annotated[float, Ge(0)]
    stop_rule: StopRule
    answer: Annotated[int, Ge(0)] = 0
    stragglers: Stragglers = "cancel"
    deadline: Deadline = NO_DEADLINE

    def __post_init__(self) -> None:
        check(self)


class Barrier(Protocol):
    """When a worker may start its next iteration."""

    def may_start(self, clock: int, completed: Sequence[int]) -> bool:
        """Return whether iteration ``clock`` may start when worker ``p`` has completed ``completed[p]`` iterations."""


@dataclass(frozen=True)
class Push:
    """An asynchronous protocol: each worker pulls, computes and pushes at its own pace, held back by a barrier.

    Parameters
    ----------
    pull : int
        Bytes of the parameters, from the server to one worker.
    compute : float
        Work for one update, in units of ``1/workers`` of a full pass over the data.
    push : int
        Bytes of the update, back to the server.
    barrier : Barrier
        Which worker may start which iteration.
    ask : int
        Bytes with which a worker that has no parameters asks a server for them.
    """

    pull: Annotated[int, Ge(0)]
    compute: Annotated[float, Ge(0)]
    push: Annotated[int, Ge(0)]
    barrier: Barrier
    ask: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        check(self)


def _first_position(values: NDArray[np.int64], n_values: int) -> NDArray[np.int64]:
    """Return where each of ``0..n_values-1`` first occurs; ``len(values)`` for those that do not."""
    first = np.full(n_values, values.size, dtype=np.int64)
    # Of repeated indices the last assignment stays, so going backwards leaves the first occurrence.
    first[values[::-1]] = np.arange(values.size - 1, -1, -1)
    return first


def _count_index(order: NDArray[np.int64], workers: int, count: int) -> int:
    fresh = np.flatnonzero(_first_position(order, workers)[order] == np.arange(order.size))
    return int(fresh[count - 1]) + 1 if fresh.size >= count else order.size


def _cover_index(order: NDArray[np.int64], cover: Cover) -> int:
    latest = int(_first_position(cover.group_array[order], len(cover.groups)).max())
    return min(latest + 1, order.size)


def _check_count(count: int, workers: int, where: str) -> None:
    if not 1 <= count <= workers:
        nearest = min(max(count, 1), workers)
        raise UserError(
            f"got {count} with {workers} workers", where, f"an integer in 1..{workers}", f"the nearest is {nearest}"
        )

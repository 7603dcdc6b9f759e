"""Codes of disjoint groups: no replicas, no waiting for the last ones, and fractional repetition.

All three are group codes (see ``groups.py``): disjoint groups of workers, each group responsible for its own block
of the data. A declaration is immutable and small; nothing here computes gradients or knows about time.

Sources: Tandon et al., arXiv:1612.03301 (fractional repetition); ErasureHead, arXiv:1901.09671 (stopped early).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.groups import GroupCode, Scale
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.spec import check


@dataclass(frozen=True)
class Uncoded:
    """Every worker holds its own part of the data, and the server waits for all: exact, load 1.

    Examples
    --------
    >>> Uncoded().build(3).decode([2, 0, 1]).weights
    array([1., 1., 1.])
    """

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> GroupCode:
        """Return the code for ``workers`` workers; ``seed`` is not used.

        Raises
        ------
        UserError
            If fewer than all workers are collected, or there is no worker.
        """
        check_workers(workers)
        if collect not in (None, workers):
            raise UserError(
                f"Uncoded waits for all {workers} workers, got {collect}",
                "collect",
                f"{workers} or nothing",
                "IgnoreStragglers() stops at fewer",
            )
        return GroupCode(workers, workers, block=1, scale="none", collect=None)


@dataclass(frozen=True)
class IgnoreStragglers:
    """Every worker holds its own part of the data, and the server goes on at ``collect`` answers: load 1.

    Parameters
    ----------
    scale : str
        ``"covered"``: the sum of the ``c`` answers in it times ``n/c``, unbiased for exchangeable workers.
        ``"none"``: the plain sum, ``c/n`` of the gradient on average.
    """

    scale: Literal["none", "covered"] = "covered"

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> GroupCode:
        """Return the code for ``workers`` workers that stops at ``collect`` answers (default: all).

        Raises
        ------
        UserError
            If ``collect`` is not in ``1..workers``, or there is no worker.
        """
        check_workers(workers)
        check_collect(collect, workers)
        return GroupCode(workers, workers, block=1, scale=self.scale, collect=collect)


@dataclass(frozen=True)
class FractionalRepetition:
    """Groups of at least ``replication`` workers; all members of a group compute the same sum, one of them suffices.

    Any number of workers will do: they form ``m = workers // replication`` groups of sizes that differ by at most
    one, larger ones first, and every worker carries the load ``workers / m``. Without ``collect`` the server waits
    until each group has answered: exact for every ``replication - 1`` stragglers. With ``collect`` it also stops at
    so many answers, replicas counted, and takes what there is (ErasureHead's approximate gradient coding).

    Parameters
    ----------
    replication : int
        Least number of workers per partition of the data, in ``1..workers``.
    scale : str
        Factor on the sum of the groups that answered. ``"none"``: 1. ``"unbiased"``: ``1/(1-p_j)`` for group ``j``,
        where ``p_j`` is the probability that ``collect`` of the workers, all equally likely, miss it.
        ``"covered"``: number of groups over number of groups that answered; unbiased for exchangeable workers and
        groups of equal size whatever ``collect``.

    Examples
    --------
    >>> code = FractionalRepetition(replication=2).build(4)
    >>> code.decode([3, 1, 2]).weights
    array([0., 1., 1.])
    """

    replication: Annotated[int, Ge(1)]
    scale: Scale = "none"

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> GroupCode:
        """Return the code for ``workers`` workers; ``seed`` is not used, the placement is fixed.

        Raises
        ------
        UserError
            If there are fewer workers than replicas, if ``collect`` is not in ``1..workers``, or if
            ``scale="unbiased"`` and ``collect`` is not given.
        """
        check_workers(workers)
        check_collect(collect, workers)
        if self.replication > workers:
            raise UserError(
                f"{self.replication} replicas need as many workers, got {workers}",
                "FractionalRepetition.replication",
                f"an integer in 1..{workers}",
                f"the nearest is {workers}",
            )
        if self.scale == "unbiased" and collect is None:
            raise UserError(
                "scale='unbiased' needs the number of answers it corrects for",
                "collect",
                f"an integer in 1..{workers}",
                "scale='covered' needs none",
            )
        n_groups = workers // self.replication
        # With equal groups the data has as many partitions as workers; with unequal ones, one per group.
        block = self.replication if workers % self.replication == 0 else 1
        return GroupCode(workers, n_groups, block, self.scale, collect)

"""The menu: codes times counts at which a round may close early, and what given times make of each of them.

Times are judged many rounds at once, in arrays of shape (rounds, workers). A code is sorted once for all its counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import BuiltCode, Code, GroupCode
from emuml.protocols.gradient_coding.codes.seam import ROUNDING, check_workers
from emuml.shapes import StopRule

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """What rounds come to with one candidate.

    Attributes
    ----------
    seconds : ndarray of float64, shape (rounds,)
        From the question to the answer that closes the round.
    progress : ndarray of float64, shape (rounds,)
        ``1 - decode error / partitions``, at least 0: for plain sums, the share of the gradient that is decoded.
    balance : float
        Harmonic over arithmetic mean of the shares of rounds in which each group is decoded: 1 if all parts of the data
        count alike, about 0 if some never count.
    """

    seconds: Floats
    progress: Floats
    balance: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """One entry of the menu.

    Attributes
    ----------
    index : int
        Its place in the menu, which questions name.
    code : BuiltCode
        Who computes what; it closes rounds at ``code.collect`` answers at the latest.
    family : int
        Which of the declared codes it is: all counts of one code ask workers for the same.
    """

    index: int
    code: BuiltCode
    family: int

    @cached_property
    def load(self) -> float:
        """Mean work of a worker, in units of ``1/workers`` of the data."""
        return float(self.code.loads.mean())

    @property
    def collect(self) -> int:
        """Answers at which a round closes at the latest; all workers if there is no such limit."""
        return self.code.workers if self.code.collect is None else self.code.collect

    def first_of_groups(self, times: Floats) -> Floats:
        """Return when each group has its first answer, shape (rounds, groups), for times of shape (rounds, workers)."""
        if len(self.code.groups) == self.code.workers:
            return times
        members, starts, in_order = self._members
        found: Floats = np.minimum.reduceat(times if in_order else times[:, members], starts, axis=1)
        return found

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """The workers group by group, where each group begins, and whether that is the order of the workers."""
        members = np.concatenate([np.array(group) for group in self.code.groups])
        sizes = [len(group) for group in self.code.groups]
        return members, np.cumsum([0, *sizes[:-1]]), bool((members == np.arange(members.size)).all())


class Menu(tuple[Candidate, ...]):
    """All candidates: code by code as declared, each first without an early end, then by falling counts."""

    @classmethod
    def of(cls, codes: Sequence[Code], shares: Sequence[float], workers: int, seed: int) -> Menu:
        """Build each code for each share of the workers at which rounds may close early.

        Raises
        ------
        UserError
            If a code does not fit the number of workers, or its rounds are of another kind.
        """
        check_workers(workers)
        counts = sorted({math.ceil(share * workers - 1e-9) for share in shares} - {workers}, reverse=True)
        found: list[Candidate] = []
        for family, code in enumerate(codes):
            for collect in (None, *counts):
                built = code.build(workers, seed, collect)
                _check(built, f"codes[{family}]")
                found.append(Candidate(len(found), built, family))
        return cls(found)

    @cached_property
    def families(self) -> tuple[tuple[Candidate, ...], ...]:
        """The candidates of each code."""
        return tuple(
            tuple(one for one in self if one.family == family) for family in dict.fromkeys(one.family for one in self)
        )


def judge(candidates: Sequence[Candidate], times: Floats) -> list[Judged]:
    """Return what rounds with these times come to with each of some candidates of one code.

    Parameters
    ----------
    candidates : sequence of Candidate
        Of one code.
    times : ndarray of shape (rounds, workers)
        Seconds from the question to the answer; infinity for workers that do not answer.
    """
    groups = candidates[0].first_of_groups(times)
    parts = [one.code.stop_rule().parts() for one in candidates]
    least = _order_statistics(times, sorted({count for count, _ in parts if count is not None}))
    answers = np.where(np.isfinite(times), times, -np.inf).max(axis=1)
    last = np.where(answers >= 0, answers, np.inf)  # who lives is waited for, at most
    found = []
    for one, (count, cover) in zip(candidates, parts, strict=True):
        seconds = last if count is None else np.minimum(last, least[count])
        if cover is not None:
            seconds = np.minimum(seconds, groups.max(axis=1))
        is_covered = groups <= seconds[:, None]
        progress = _progress(one.code, times <= seconds[:, None], is_covered)
        found.append(Judged(seconds, progress, _balance(is_covered.mean(axis=0), len(times))))
    return found


def _order_statistics(times: Floats, counts: list[int]) -> dict[int, Floats]:
    """Return when so many workers have answered, shape (rounds,) each."""
    places = [count - 1 for count in counts]
    in_order = np.partition(times, places, axis=1) if places else times
    return {count: in_order[:, count - 1] for count in counts}


def _progress(code: BuiltCode, received: NDArray[np.bool_], is_covered: NDArray[np.bool_]) -> Floats:
    if isinstance(code, GroupCode) and code.scale == "none":
        covered: Floats = np.count_nonzero(is_covered, axis=1) / is_covered.shape[1]
        return covered
    return np.maximum(1.0 - np.array([_error(code, row) for row in received]), 0.0)


def _balance(shares: Floats, rounds: int) -> float:
    """Return harmonic over arithmetic mean, as if one more round had shown the mean of every group."""
    mean = float(shares.mean())
    if mean == 0.0:
        return 0.0
    likely = (rounds * shares + mean) / (rounds + 1)
    return float(1.0 / np.mean(mean / likely))


def _error(code: BuiltCode, received: NDArray[np.bool_]) -> float:
    error = code.decode(np.flatnonzero(received)).error
    return 0.0 if error <= ROUNDING else error / code.partitions


def _check(code: BuiltCode, where: str) -> None:
    """Refuse a code whose rounds cannot be judged from times alone, or whose nodes do more than code and decode."""
    from emuml.protocols.gradient_coding.server import Server
    from emuml.protocols.gradient_coding.worker import Worker

    plain = type(code.stop_rule()).tracker is StopRule.tracker and code.in_rounds
    if not plain or code.roles() != (Server, Worker):
        raise UserError(
            f"rounds of {type(code).__name__} close by more than counts and groups",
            f"AdaptiveCoding.{where}",
            "codes whose rounds close at a number of answers or when groups have answered",
        )

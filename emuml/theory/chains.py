"""Finite Markov chains in continuous time: all states by search, and their long-run chances."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
State = TypeVar("State", bound=Hashable)

_ELIMINATED = 1_000
_STEPS_MAX = 10_000
# What rounding leaves of a change is about 1e-16; chances are then right to 1e-11 or better.
_SETTLED = 1e-14


@dataclass(frozen=True, eq=False)
class Chain(Generic[State]):
    """States, and the moves between them.

    Attributes
    ----------
    states : list
        In the order in which they were found.
    origins, targets : ndarray of int64, shape (moves,)
        Numbers of the states.
    rates : ndarray of float64, shape (moves,)
        Per unit of time.
    marks : ndarray of bool, shape (moves,)
        What ``moves`` said of each.
    """

    states: list[State]
    origins: NDArray[np.int64]
    targets: NDArray[np.int64]
    rates: Floats
    marks: NDArray[np.bool_]

    def chances(self) -> Floats:
        """Return the share of time that the chain spends in each state in the long run.

        What flows into each state flows out of it. Elimination is fast for few states, and for many that lie in a
        narrow band; steps of the chain settle fast where many moves are possible from each state.
        """
        settled = self._settled() if len(self.states) > _ELIMINATED else None
        weights = self._eliminated() if settled is None else settled
        return np.asarray(weights / weights.sum())

    def _eliminated(self) -> Floats:
        """Solve the equations: one of them is redundant, and one unknown is free."""
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import spsolve

        entries = np.concatenate([self.rates, -self.rates])
        places = np.concatenate([self.targets, self.origins]), np.concatenate([self.origins, self.origins])
        flow = coo_array((entries, places), shape=(len(self.states),) * 2).tocsc()
        weights = np.ones(len(self.states))
        if len(weights) > 1:
            weights[1:] = spsolve(flow[1:, 1:], -flow[1:, [0]].toarray().ravel())
        return weights

    def _settled(self) -> Floats | None:
        """Follow the chances from equal ones, in steps that are no longer than the chain is fast; None: too slow."""
        from scipy.sparse import csr_array

        leaving = np.bincount(self.origins, self.rates, len(self.states))
        pace = 1.05 * leaving.max()
        moved = csr_array((self.rates / pace, (self.targets, self.origins)), shape=(len(leaving),) * 2)
        stays, chances = 1.0 - leaving / pace, np.full(len(leaving), 1.0 / len(leaving))
        for step in range(_STEPS_MAX):
            after = moved @ chances + stays * chances
            if step % 100 == 0:
                after /= after.sum()
                if np.abs(after - chances).sum() < _SETTLED:
                    return np.asarray(after)
            chances = after
        return None


def explored(
    start: State, moves: Callable[[State], Iterable[tuple[State, float, bool]]], states_max: int
) -> Chain[State] | None:
    """Return the chain that can be reached from a state, or None if it has more than ``states_max`` states.

    ``moves`` gives what may follow on a state: the next one, its rate, and a mark of the move.
    """
    states, numbers, found = [start], {start: 0}, []
    for origin, state in enumerate(states):
        for after, rate, mark in moves(state):
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            found.append((origin, numbers[after], rate, mark))
        if len(states) > states_max:
            return None
    origins, targets, rates, marks = (np.array(column) for column in zip(*found, strict=True))
    return Chain(states, origins, targets, rates.astype(np.float64), marks.astype(np.bool_))

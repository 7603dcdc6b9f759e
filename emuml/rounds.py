"""What a protocol in rounds offers an array tier beside its nodes: its rule, its server, and its workers as functions.

An array tier makes no worker and carries no message. It draws the durations of all workers at once, asks the stop rule
which answers close the round, and hands those to the server in one call. What workers would compute and say is known
from two functions, which their handlers use, too; so each decision stands in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.lazy import Deferred, combine
from emuml.message import Array, Message
from emuml.node import Factory, NodeId
from emuml.shapes import StopRule, Stragglers

if TYPE_CHECKING:
    from emuml.context import Context
    from emuml.protocol import Problem
    from emuml.roster import Roster
    from emuml.task import Task

TOGETHER = 256
"""So many answers are evaluated before they are added: it bounds the memory that they take."""


class Answers:
    """The answers that close a round: whose they are, and what they say.

    Parameters
    ----------
    workers : ndarray of int64, shape (n_answers,)
        Who answered, ascending.
    value : callable
        Gives what a worker said; on the emulator it is made only when it is read.

    Attributes
    ----------
    by_clock : bool
        Whether a deadline closes the round, not its rule.
    """

    def __init__(self, workers: NDArray[np.int64] | None, value: Callable[[int], Array | Deferred]) -> None:
        self._workers, self._value = workers, value
        self._flags: NDArray[np.bool_] | None = None
        self.by_clock = False

    @classmethod
    def of(cls, values: Mapping[int, Array]) -> Answers:
        """Return the answers that arrived one by one, by worker."""
        return cls(np.array(sorted(values), np.int64), values.__getitem__)

    @classmethod
    def among(cls, flags: NDArray[np.bool_], value: Callable[[int], Array | Deferred]) -> Answers:
        """Return the answers of those workers whose flag is set, shape (workers,)."""
        found = cls(None, value)
        found._flags = flags
        return found

    @property
    def workers(self) -> NDArray[np.int64]:
        """Who answered, ascending."""
        if self._workers is None:
            assert self._flags is not None
            self._workers = np.flatnonzero(self._flags)
        return self._workers

    def __len__(self) -> int:
        return len(self.workers) if self._flags is None else int(np.count_nonzero(self._flags))

    def combine(self, weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return the weighted sum, added in the order of the workers; answers of weight 0 are not read.

        Parameters
        ----------
        weights : ndarray of float64, shape (n_answers,)

        Returns
        -------
        ndarray or None
            None if no weight is different from 0.
        """
        used = np.flatnonzero(weights)
        if not used.size:
            return None
        total: NDArray[Any] | None = None
        for start in range(0, used.size, TOGETHER):
            those = used[start : start + TOGETHER]
            values = [self._value(worker) for worker in self.workers[those].tolist()]
            if total is None:
                total = combine(weights[those], values)
            else:
                total = combine([1.0, *weights[those].tolist()], [total, *values])  # 1.0 times a number is the number
        return total


class RoundServer(Protocol):
    """The server of a protocol in rounds: what an array tier calls beside ``on_start``.

    Each call is a step of the node, with its effects. A server that neither asks for the next round nor stops waits for
    the work that is still going on.
    """

    def answered(self, ctx: Context, answers: Answers, late: int) -> None:
        """Close the round with these answers; ``late`` answers to closed rounds came since the last call."""

    def finished(self, ctx: Context, late: int) -> None:
        """Go on: nobody works any more; ``late`` answers to closed rounds came since the last call."""


@dataclass(frozen=True)
class RoundNodes:
    """The nodes of a protocol in rounds, as an array tier sees them.

    Attributes
    ----------
    server : NodeId
        The one server.
    factory : callable
        Makes its node, a :class:`RoundServer`.
    rule : StopRule
        When a round closes.
    stragglers : str
        What workers do with work on a closed round; see :class:`emuml.shapes.Round`.
    deadline : Deadline
        When a round closes by the clock, if its rule has not closed it.
    task : callable
        Gives, for the question of a round and the index of a worker, the task that the worker computes. All tasks of a
        round name the same draw.
    answer : callable
        Gives, for a question and a result, the message with which a worker answers.
    costs : callable
        Gives, for a question, the costs of the tasks of all workers, shape (workers,); they are the same in all rounds.
    """

    server: NodeId
    factory: Factory
    rule: StopRule
    stragglers: Stragglers
    task: Callable[[Any, int], Task]
    answer: Callable[[Any, Any], Message]
    costs: Callable[[Any], NDArray[np.float64]]
    deadline: Deadline = NO_DEADLINE


@runtime_checkable
class InRounds(Protocol):
    """A protocol that an array tier can serve; others run event by event."""

    def in_rounds(self, workload: Problem, roster: Roster) -> RoundNodes | None:
        """Return what an array tier needs, or None if these rounds need all their events."""

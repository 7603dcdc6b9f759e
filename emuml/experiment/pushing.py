"""Simulated trainings at the workers' own pace: when pushes arrive, and what is sent until a training ends.

By the recursion of starts: a worker goes on at once while its copy is fresh enough, and otherwise waits until its push
has arrived, nobody is too far behind, and a view has come back. Trainings of one number of workers are computed
together. Messages are taken not to wait for each other, and nobody to crash.

References
----------
Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emuml.cluster.cluster import Network
from emuml.experiment.training import Floats, bytes_longer
from emuml.shapes import Push

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pace:
    """What decides when iterations start.

    Attributes
    ----------
    slack : int or None
        Of the barrier.
    in_step : bool
        Whether the pushes of one iteration are one update.
    shape : Push
        Bytes of messages, those of the first iteration.
    network : Network
    questions : int
        Small messages, one after the other, until the first view is sent.
    """

    slack: int | None
    in_step: bool
    shape: Push
    network: Network
    questions: int = 1

    @property
    def is_free(self) -> bool:
        """Whether messages take no time."""
        return self.network == Network()

    def travel_s(self, first_bytes: int, numbers: int, clock: int, workers: int) -> float:
        """Return the seconds of a message that carries its clock, a version, and so many numbers in all."""
        rate, version = self.network.bandwidth_bps, clock if self.in_step else clock * workers
        if rate is None:
            return self.network.latency_s
        longer = (numbers - 1) * bytes_longer(clock) + bytes_longer(version)
        return self.network.latency_s + 8 * float(first_bytes + longer) / rate


@dataclass(frozen=True, eq=False)
class Sent:
    """Messages of one kind of several trainings, with times in ascending order, shape (trainings, messages)."""

    times_s: Floats
    total_bytes: Floats

    def until(self, ends_s: Floats, side: str) -> tuple[Floats, Floats]:
        """Return number and bytes of what was sent before (``"left"``) or until each end, shape (trainings, ends)."""
        found = [np.searchsorted(t, e, side) for t, e in zip(self.times_s, ends_s, strict=True)]  # type: ignore[call-overload]
        counts = np.array(found)
        return counts.astype(np.float64), np.take_along_axis(self.total_bytes, counts, axis=1)


@dataclass(frozen=True, eq=False)
class Pushed:
    """Several trainings, as far as they were computed.

    Attributes
    ----------
    arrivals_s : ndarray of float64, shape (trainings, pushes)
        When pushes reach the server, in ascending order.
    updates, views : Sent
        Pushes as they leave the workers, and views that are asked for by a push as they leave the server.
    known_s : ndarray of float64, shape (trainings,)
        Until when nothing is missing.
    has_ties : bool
        Whether two pushes arrive at one instant: then what is in a view is a matter of their order.
    """

    arrivals_s: Floats
    updates: Sent
    views: Sent
    known_s: Floats
    has_ties: bool


def pushed(pace: Pace, delays: Floats) -> Pushed:
    """Return what follows from delays, shape (iterations, trainings, workers)."""
    iterations, trainings, workers = delays.shape
    leaves, arrives, asks = (np.empty(delays.shape) for _ in range(3))
    slowest = np.zeros((iterations + 1, trainings, workers), np.int64)
    fetches = np.zeros(delays.shape, np.bool_)
    passed = np.zeros((trainings, iterations + 1))  # when all have completed so many iterations
    last = np.zeros((trainings, iterations + 1), np.int64)  # and which worker is the last to do so
    shape, travel_s = pace.shape, pace.travel_s
    asked_s = pace.questions * travel_s(shape.ask, 1, 0, workers)
    start = np.full(delays.shape[1:], asked_s + travel_s(shape.pull, 3, 0, workers))
    for c in range(iterations):
        leaves[c] = start + delays[c]
        arrives[c] = leaves[c] + travel_s(shape.push, 2, c, workers)
        passed[:, c + 1] = arrives[c].max(axis=1)
        last[:, c + 1] = workers - 1 - arrives[c, :, ::-1].argmax(axis=1)
        asks[c], fetches[c], due = arrives[c], True, 0
        if pace.slack is not None:
            due = max(c + 1 - pace.slack, 0)
            fetches[c] = slowest[c] < due
            asks[c] = np.maximum(asks[c], passed[:, [due]])
        handled = np.where(asks[c] > arrives[c], last[:, [due]], np.arange(workers))
        seen = [_passed(*rows) for rows in zip(passed[:, : c + 2], last[:, : c + 2], asks[c], handled, strict=True)]
        slowest[c + 1] = np.where(fetches[c], seen, slowest[c])
        start = np.where(fetches[c], asks[c] + travel_s(shape.pull, 3, c + 1, workers), leaves[c])
    return _counted(pace, (leaves, arrives, asks), fetches, slowest, start.min(axis=1))


def _counted(
    pace: Pace, times: tuple[Floats, Floats, Floats], fetches: NDArray[np.bool_], slowest: Ints, known_s: Floats
) -> Pushed:
    """Return the messages in their order, with their bytes."""
    leaves, arrives, asks = times
    iterations = len(leaves)
    arrivals_s = np.sort(_by_training(arrives), axis=1)
    clocks = np.broadcast_to(np.arange(iterations)[:, None, None], leaves.shape)
    versions = np.zeros(slowest.shape, np.int64)
    for c in range(iterations):
        if pace.in_step:
            versions[c + 1] = c + 1
        else:
            seen = [np.searchsorted(a, t, "right") for a, t in zip(arrivals_s, asks[c], strict=True)]
            versions[c + 1] = np.where(fetches[c], seen, versions[c])
    update_bytes = pace.shape.push + bytes_longer(clocks) + bytes_longer(versions[:-1])
    view_bytes = pace.shape.pull + bytes_longer(clocks + 1) + bytes_longer(versions[1:]) + bytes_longer(slowest[1:])
    return Pushed(
        arrivals_s,
        _ordered(leaves, update_bytes),
        _ordered(np.where(fetches, asks, np.inf), view_bytes),
        known_s,
        bool(np.any(np.diff(arrivals_s, axis=1) == 0.0)),
    )


def _passed(passed_s: Floats, last: Ints, asked_s: Floats, handled: Ints) -> Ints:
    """Return how many iterations all have completed when each view is sent.

    Of pushes that arrive at one instant those of lower workers are first; ``handled`` is the one that a view is due to.
    """
    seen = np.searchsorted(passed_s, asked_s, "right") - 1
    is_early = (passed_s[seen] == asked_s) & (last[seen] > handled) & (seen > 0)
    return np.asarray(seen - is_early)


def _by_training(values: NDArray[np.float64]) -> Floats:
    """Return values of shape (iterations, trainings, workers) as one row per training."""
    return np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)


def _ordered(times: Floats, sizes: Floats) -> Sent:
    times_s, rows = _by_training(times), _by_training(sizes)
    order = np.argsort(times_s, axis=1, kind="stable")
    totals = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
    return Sent(np.take_along_axis(times_s, order, axis=1), np.pad(totals, ((0, 0), (1, 0))))

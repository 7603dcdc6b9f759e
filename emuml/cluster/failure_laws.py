"""Laws of failures: fault plans that are drawn, or recorded, instead of written by hand.

A law gives, for every node, spells of being up and down in turn. Failure k of a node depends on nothing but (seed,
node, k): the failures of one node stay where they are when others are added. What is drawn is an ordinary
:class:`~emuml.cluster.faults.FaultPlan`, which both engines execute.

References
----------
Schroeder and Gibson, "A large-scale study of failures in high-performance computing systems", DSN 2006 (times between
failures: Weibull with a shape of 0.7 to 0.8; repair: lognormal). Gallet et al., "A model for space-correlated failures
in large-scale distributed systems", Euro-Par 2010 (groups).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from math import inf, nextafter
from typing import Annotated

from annotated_types import Ge, Gt, Le

from emuml import _kernels
from emuml._kernels.reference_tails import POWER
from emuml.cluster.faults import Crash, Fault, FaultPlan
from emuml.cluster.spells import Draw, Repair, exponential_cdf, weibull_cdf
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key, uniform, unit_exponential

FAILURES_MAX = 100_000
"""More are a slip of the finger: planning them would take longer than most runs."""

Seconds = Annotated[float, Gt(0), Le(1e12)]


@dataclass(frozen=True)
class FailureLaw:
    """Base of all laws of failures.

    Parameters
    ----------
    until_s : float
        No node fails later, in seconds of the engine's clock.
    repair : Repair, optional
        How long a node is down; by default it never comes back.
    role : str
        Whose nodes fail.
    """

    def __post_init__(self) -> None:
        check(self)

    def faults(self, ids: Iterable[NodeId], seed: int) -> Iterator[Fault]:
        """Yield the faults of nodes of the law's role, given the seed of the run."""
        raise NotImplementedError

    def plan(self, ids: Iterable[NodeId], seed: int) -> FaultPlan:
        """Return the plan that a run executes.

        Raises
        ------
        UserError
            If there would be more than a hundred thousand failures.
        """
        struck = [id for id in ids if id.role == vars(self)["role"]]
        if self.roughly(len(struck)) > FAILURES_MAX:
            what = f"about {self.roughly(len(struck)):.2g} failures of {len(struck)} nodes"
            raise UserError(what, "faults.until_s", f"a time until which there are at most {FAILURES_MAX:,}")
        return FaultPlan(tuple(self.faults(struck, seed)))

    def roughly(self, nodes: int) -> float:
        """Return about how many failures there will be."""
        raise NotImplementedError


class _Renewals(FailureLaw):
    """What laws have in common that are the same for each node by itself: a spell up, a spell down, and so on."""

    until_s: float
    repair: Repair | None
    role: str

    def up_s(self, key: int, position: int) -> float:
        """Return the draw at a position of a stream: how many seconds a node is up."""
        raise NotImplementedError

    def cdf(self, t_s: float) -> float:
        """Return the probability that a node is up for at most so many seconds."""
        raise NotImplementedError

    def mean(self) -> float:
        """Return the mean number of seconds that a node is up."""
        raise NotImplementedError

    def faults(self, ids: Iterable[NodeId], seed: int) -> Iterator[Fault]:
        """See :class:`FailureLaw`; draw 2k of a node is how long it is up the k-th time, draw 2k + 1 its repair."""
        for id in ids:
            yield from _alternating(id, seed, self.until_s, self.up_s, self.repair)

    def roughly(self, nodes: int) -> float:
        """See :class:`FailureLaw`; without repair each node fails once."""
        return nodes if self.repair is None else nodes * self.until_s / (self.mean() + self.repair.mean())

    def expected(self, nodes: int, until_s: float | None = None, steps: int = 2000) -> float:
        """Return the expected number of failures of so many nodes.

        Parameters
        ----------
        nodes : int
        until_s : float, optional
            Of another span than that of the law.
        steps : int
            Of the grid in time.

        Notes
        -----
        ``M(t) = F(t) + integral of M(t - x) dC(x)`` with F the distribution of spells up, and C that of a spell up
        with the repair after it; solved on a grid by the Riemann-Stieltjes method of Xie, "On the solution of renewal-
        type integral equations", Communications in Statistics B 18, 1989. Without repair it is F.
        """
        until_s = self.until_s if until_s is None else until_s
        if self.repair is None:
            return nodes * self.cdf(until_s)
        return nodes * _renewals(self.cdf, self.repair, until_s, steps)


@dataclass(frozen=True)
class ExponentialFailures(_Renewals):
    """Each node fails without memory: it is up for exponential times of mean ``mean_s``.

    Parameters
    ----------
    mean_s : float
        Mean seconds that a node is up, from the start of a life to its crash.

    Examples
    --------
    >>> ids = [NodeId("worker", 0), NodeId("worker", 1)]
    >>> [fault.node for fault in ExponentialFailures(mean_s=10.0, until_s=8.0).plan(ids, seed=1).faults]
    ['worker-0']
    """

    mean_s: Seconds
    until_s: Seconds
    repair: Repair | None = None
    role: str = "worker"

    def up_s(self, key: int, position: int) -> float:
        """See :class:`FailureLaw`."""
        return self.mean_s * unit_exponential(key, position)

    def cdf(self, t_s: float) -> float:
        """Return the probability that a node is up for at most so many seconds."""
        return exponential_cdf(t_s / self.mean_s)

    def mean(self) -> float:
        """Return the mean number of seconds that a node is up."""
        return self.mean_s


@dataclass(frozen=True)
class WeibullFailures(_Renewals):
    """Each node is up for Weibull times; with a shape below 1 it is likeliest to fail when it has just begun.

    Parameters
    ----------
    shape : float
        From 0.1 to 20; 1 is the exponential law. Of large clusters it is 0.5 to 0.8.
    scale_s : float
        Seconds after which a share of 1 - 1/e of the nodes has failed.
    """

    shape: Annotated[float, Ge(0.1), Le(20)]
    scale_s: Seconds
    until_s: Seconds
    repair: Repair | None = None
    role: str = "worker"

    def up_s(self, key: int, position: int) -> float:
        """See :class:`FailureLaw`."""
        return self.scale_s * _kernels.unit_tail(POWER, 1.0 / self.shape, *halves(key), position)

    def cdf(self, t_s: float) -> float:
        """Return the probability that a node is up for at most so many seconds."""
        return weibull_cdf(t_s / self.scale_s, self.shape)

    def mean(self) -> float:
        """Return the mean number of seconds that a node is up."""
        return self.scale_s * math.gamma(1.0 + 1.0 / self.shape)


@dataclass(frozen=True)
class GroupFailures(FailureLaw):
    """Nodes fail in groups: those of a rack within a minute, several spot instances at once.

    Nodes 0 to ``size - 1`` of a role are the first group, and so on. The failures of a group come without memory, at a
    mean distance of ``mean_s``; each takes down a part of the group. Who is down already is not struck again.

    Parameters
    ----------
    size : int
        Nodes of a group; the last one may have fewer.
    mean_s : float
        Mean seconds between two failures of one group.
    within_s : float
        Every node that is struck crashes at a moment of its own in so many seconds.
    share : float
        Probability of each node of the group that it is struck, > 0 and <= 1.
    """

    size: Annotated[int, Gt(0)]
    mean_s: Seconds
    until_s: Seconds
    within_s: Annotated[float, Ge(0), Le(1e12)] = 0.0
    share: Annotated[float, Gt(0), Le(1)] = 1.0
    repair: Repair | None = None
    role: str = "worker"

    def faults(self, ids: Iterable[NodeId], seed: int) -> Iterator[Fault]:
        """See :class:`FailureLaw`; draws 3k to 3k + 2 of a node are for the k-th failure of its group."""
        moments: dict[int, list[float]] = {}
        for id in ids:
            group = id.index // self.size
            if group not in moments:
                moments[group] = list(self._moments(group, seed))
            yield from self._of_node(id, moments[group], seed)

    def roughly(self, nodes: int) -> float:
        """See :class:`FailureLaw`."""
        return nodes * self.until_s / self.mean_s

    def _moments(self, group: int, seed: int) -> Iterator[float]:
        key, at_s = stream_key(seed, "", f"failures/group/{self.role}/{group}"), 0.0
        for position in count():
            at_s += self.mean_s * unit_exponential(key, position)
            if at_s >= self.until_s:
                return
            yield at_s

    def _of_node(self, id: NodeId, moments: list[float], seed: int) -> Iterator[Fault]:
        key, back_s = stream_key(seed, "", f"failures/{id}/group"), -1.0
        for k, moment_s in enumerate(moments):
            at_s = moment_s + self.within_s * uniform(key, 3 * k + 1)
            if uniform(key, 3 * k) < self.share and back_s < at_s < self.until_s:
                down_s = None if self.repair is None else self.repair.draw_s(key, 3 * k + 2)
                yield Crash(str(id), at_s=at_s, restart_after_s=down_s)
                back_s = inf if down_s is None else at_s + down_s

    def expected(self, nodes: int) -> float:
        """Return how many times that many nodes are struck on average, if they are back when they are struck again.

        A failure of a group in the last ``within_s`` seconds of the span takes only a part of its nodes down in it.
        """
        within_s, until_s = self.within_s, self.until_s
        lost_s = within_s / 2 if within_s <= until_s else until_s - until_s**2 / (2 * within_s)
        return nodes * self.share * (until_s - lost_s) / self.mean_s


def _alternating(id: NodeId, seed: int, until_s: float, up_s: Draw, repair: Repair | None) -> Iterator[Crash]:
    """Yield the crashes of one node."""
    key, back_s = stream_key(seed, "", f"failures/{id}"), -1.0
    for k in count():
        at_s = max(max(back_s, 0.0) + up_s(key, 2 * k), nextafter(back_s, inf))
        if at_s >= until_s:
            return
        down_s = None if repair is None else repair.draw_s(key, 2 * k + 1)
        yield Crash(str(id), at_s=at_s, restart_after_s=down_s)
        if down_s is None:
            return
        back_s = at_s + down_s


def _renewals(up: Callable[[float], float], repair: Repair, until_s: float, steps: int) -> float:
    """Return the expected number of failures of one node; see :meth:`_Renewals.expected`."""
    import numpy as np

    step_s = until_s / steps
    first = np.array([up(i * step_s) for i in range(steps + 1)])
    halves = np.array([up((i + 0.5) * step_s) for i in range(steps)])
    repaired = np.array([repair.cdf(i * step_s) for i in range(steps + 1)])
    # A spell up that ends in a step, by the chance that the repair after it fits in; the last step is half a one.
    cycle = (halves - first[:-1]) * repair.cdf(step_s / 4)
    cycle[1:] += np.convolve(np.diff(first)[:-1], repaired[1:])[: steps - 1]
    found, gains = np.zeros(steps + 1), np.zeros(steps)
    for i in range(1, steps + 1):
        before = float(gains[: i - 1] @ cycle[1:i][::-1])
        found[i] = (first[i] + before - cycle[0] * found[i - 1]) / (1.0 - cycle[0])
        gains[i - 1] = found[i] - found[i - 1]
    return float(found[steps])

"""What asynchronous training will take: workers at their own pace, held back by a barrier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml.cluster.cluster import Network
from emuml.experiment import closed_forms
from emuml.experiment.expectations import Messages
from emuml.experiment.forecast import longer
from emuml.experiment.push_forecast import Forecast, Found, Goal, find, forecast, goal_of
from emuml.experiment.pushing import Pace
from emuml.experiment.training import Floats, Range, Training, bytes_longer
from emuml.protocol import Problem
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.protocols.async_updates.slices import slice_of
from emuml.shapes import All, Push, Round

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.experiment.plan import Plan
    from emuml.runtime.settings import RuntimeSettings

_ROUNDS = 100
"""Of which figures are given when nothing says how many there will be."""


def of_pushes(base: Plan, experiment: Experiment, problem: Problem, shape: Push, settings: RuntimeSettings) -> Plan:
    """Fill in what follows from the shape of pushes."""
    is_real = base.engine == "tcp"
    barrier: Any = shape.barrier
    alone = experiment.cluster.network.alone(experiment.roster().ids)
    network, is_shared = Network() if is_real else Network(*alone), experiment.cluster.servers > 1
    # Several servers first say how far a worker is for each of them.
    pace = Pace(barrier.slack, barrier.in_step, shape, network, questions=3 if is_shared else 1)
    training = _training(experiment, problem, shape, network)
    scale = settings.time_scale if is_real else 1.0
    goal, notes = goal_of(experiment.stop_condition(), training.workers, pace.in_step, scale), []
    is_open = goal == Goal(None, None)
    if is_open:
        notes.append(f"nothing says how many rounds: messages are those of {_ROUNDS}")
        goal = Goal(_ROUNDS * training.workers, None)
    base = replace(base, rounds=None, load=(float(training.loads.min()), float(training.loads.max())))
    found = find(pace, training, goal)
    if found is None:
        return replace(base, detail="the recorded delays may end before the training does", notes=tuple(notes))
    expected = _Expected(pace, training, found, forecast(training, goal, found), problem.initial.shape[0], is_real)
    if expected.forecast.is_by_time:
        notes.append(f"about {expected.rounds:,} rounds: the first update at or after {goal.limit_s:g} s is the last")
    if expected.servers > 1:
        notes.append(
            "not counted: what servers send each other, and views that are sent while the last round is gathered"
        )
    theory_s = closed_forms.promised(training, "round_s", training.law)
    if theory_s is not None and pace.is_free and not is_real:
        notes.append(f"in theory a round takes {theory_s:.4g} s in the long run")
    base = replace(base, rounds=None if is_open else expected.rounds, messages=expected.messages(), notes=tuple(notes))
    if is_real and settings.inject == "off":
        return replace(base, detail="real tasks take what they take")
    basis, detail, duration_s = expected.basis, expected.forecast.detail, expected.duration_s
    if is_real and basis == "exact":
        basis, detail = "bound", f"{detail}; what is real comes on top"
    return replace(
        base,
        duration_s=None if is_open else duration_s.times(scale),
        round_s=scale * duration_s.mean * training.workers / expected.forecast.pushes,
        basis=basis,
        detail=detail,
    )


def _training(experiment: Experiment, problem: Problem, shape: Push, network: Network) -> Training:
    """Return the training as one of rounds in which all take part."""
    cluster, workers = experiment.cluster, experiment.cluster.workers
    rounds = Round(shape.pull, shape.compute, All(workers), shape.push)
    loads = np.full(workers, float(shape.compute))
    if isinstance(problem, SharedProblem):
        unit = problem.full_cost / workers
        loads = np.array([problem.push(problem.initial, w, workers, 0).cost / unit for w in range(workers)])
    return Training(experiment.protocol, rounds, cluster.compute, loads, network, _ROUNDS, experiment.roster())


@dataclass(frozen=True)
class _Expected:
    """The figures of a plan, and on what they stand."""

    pace: Pace
    training: Training
    found: Found
    forecast: Forecast
    parameters: int
    is_real: bool

    @property
    def workers(self) -> int:
        return self.training.workers

    @property
    def servers(self) -> int:
        return len(self.training.roster.of("server"))

    @property
    def rounds(self) -> int:
        return max(ceil(round(self.forecast.pushes / self.workers, 9)), 1)

    @property
    def duration_s(self) -> Range:
        """Seconds until the last parameters, which several servers gather."""
        if self.servers == 1:
            return self.forecast.duration_s
        gathered_s = self.pace.travel_s(self.pace.shape.push, 1, 0, self.workers)
        if self.forecast.pushes % self.workers:  # in the middle of a round the others have to be told
            gathered_s += self.pace.travel_s(self.pace.shape.ask, 1, 0, self.workers)
        return Range(*(end_s + gathered_s for end_s in self.forecast.duration_s))

    @property
    def basis(self) -> str:
        pace, forecast = self.pace, self.forecast
        if not self.found.is_certain:
            # Leads spread like a random walk: it takes about slack**2 rounds until they are what they will be.
            is_early = bool(pace.slack) and 16 * (pace.slack or 0) ** 2 > self.found.at_s.shape[1]
            return "estimate" if forecast.is_cut and (forecast.is_by_time or is_early) else "simulation"
        has_rate = pace.network.bandwidth_bps is not None
        is_rough = (has_rate and pace.slack != 0) or self.servers > 1
        is_tied = self.found.run.has_ties and not pace.is_free and pace.slack not in (0, None)
        return "estimate" if forecast.is_cut or is_rough or is_tied else "exact"

    @property
    def counted(self) -> str:
        """On what numbers of messages stand where nothing more is known."""
        return "estimate" if self.is_real and self.forecast.is_by_time else self.basis

    @property
    def is_open(self) -> bool:
        """Whether how many messages are sent is a matter of the order of those of one instant, or of real links."""
        if self.is_real:
            return not self.forecast.is_by_time
        is_tied = self.found.is_certain and self.found.run.has_ties
        return is_tied and (self.pace.is_free or not self.forecast.is_by_time)

    @property
    def in_lockstep(self) -> bool:
        """Whether everybody waits for everybody, and the end is known to be that of an iteration."""
        forecast = self.forecast
        return self.pace.slack == 0 and not forecast.is_by_time and forecast.pushes % self.workers == 0

    def messages(self) -> tuple[Messages, ...]:
        """Return what is sent: a question of each worker, the views of servers, and the pushes."""
        asked = self.pace.shape.ask
        count = Range.certain(float(self.servers * self.workers * (2 if self.servers > 1 else 1)))
        reads = Messages("reads", count, count.times(asked), asked, asked, self._of_servers("exact"))
        return ((reads,) if asked else ()) + (self.views(), self.updates())

    def views(self) -> Messages:
        """Return the parameters that servers send."""
        first, slack, pushes = self.pace.shape.pull, self.pace.slack, self.forecast.pushes
        if self.in_lockstep:
            return self._lockstep("views", first, 3)
        counts, sizes = self.found.run.views.until(self.found.at_s, "left")
        each = (first * self.workers + sizes[:, -1]) / (self.workers + counts[:, -1])
        count, basis = longer(self.servers * (self.workers + counts), self.forecast.ends), self.counted
        most = self.servers * (pushes + self.workers - 1.0)
        if slack is None and not self.forecast.is_by_time:
            count, basis = Range.certain(most), "exact"  # each push but the last is answered
        elif self.is_open:
            # A view is fresh enough for so many iterations at most.
            least = self.servers * max(float(self.workers), 0.0 if slack is None else pushes / (slack + 1.0))
            count, basis = Range(min(max(count.mean, least), most), least, most), "bound"
        return self._told("views", first, 3, count, each, basis)

    def updates(self) -> Messages:
        """Return the pushes that workers send, late ones included."""
        first, pushes, forecast = self.pace.shape.push, self.forecast.pushes, self.forecast
        if self.in_lockstep:
            return self._lockstep("updates", first, 2)
        counts, sizes = self.found.run.updates.until(self.found.at_s, "right")
        count, basis = longer(self.servers * counts, forecast.ends), self.counted
        is_known = self.pace.is_free and not self.is_real and not forecast.is_by_time
        if is_known and np.array_equal(counts, self.found.pushes):
            count, basis = Range.certain(self.servers * pushes), "exact"
        elif self.is_open:
            # Those under way at the end: who waits for a view has one, others go on.
            ahead = self.workers - 1 if self.pace.slack is None else self.workers * (self.pace.slack + 1)
            least = self.servers * pushes
            most = least + self.servers * ahead
            count, basis = Range(min(max(count.mean, least), most), least, most), "bound"
        return self._told("updates", first, 2, count, sizes[:, -1] / counts[:, -1], basis)

    def _lockstep(self, kind: str, first: int, numbers: int) -> Messages:
        """Return the messages of iterations in which all take part."""
        clocks = np.arange(self.rounds)
        versions = clocks if self.pace.in_step else clocks * self.workers
        more = (numbers - 1) * bytes_longer(clocks) + bytes_longer(versions)
        total = 1.0 * self.rounds * sum(self._first_bytes(first, server) for server in range(self.servers))
        total += self.servers * float(more.sum())
        count = Range.certain(float(self.servers * self.workers * self.rounds))
        basis = self._of_servers("exact")
        return Messages(kind, count, Range.certain(total * self.workers), first, int(first + more[-1]), basis)

    def _of_servers(self, basis: str) -> str:
        """Return what an exact figure is worth: of several servers, none is told at once that training is over."""
        return "estimate" if basis == "exact" and self.servers > 1 else basis

    def _first_bytes(self, first: int, server: int) -> int:
        """Return the bytes of the first message with a server's slice, from those with the largest one."""
        held = slice_of(server, self.servers, self.parameters)
        return first - 8 * int(-(-self.parameters // self.servers) - (held.stop - held.start))

    def _told(self, kind: str, first: int, numbers: int, count: Range, each: Floats, basis: str) -> Messages:
        """Return the messages of a kind; ``each`` is the mean size of one in each training."""
        last = first + float((numbers - 1) * bytes_longer(self.rounds - 1) + bytes_longer(self.forecast.pushes))
        mean = float(each.mean()) if not self.forecast.is_cut else (float(each.mean()) + last) / 2
        mean += float(np.mean([self._first_bytes(first, server) - first for server in range(self.servers)]))
        is_sized = last == first or (self.found.is_certain and not self.found.run.has_ties)
        if basis == "exact" and (not is_sized or self.forecast.is_cut):
            basis = "estimate"
        return Messages(kind, count, count.times(mean), first, int(last), self._of_servers(basis))

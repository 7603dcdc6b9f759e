"""Codes for an experiment, compared before anything runs: at equal work of the workers, and in equal time.

Every figure says on what it stands. Messages are taken to take no time and nobody fails; what is refused is told with
its reason, so that nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from emuml.errors import EmumlError, UserError
from emuml.experiment.experiment import Experiment
from emuml.explanation.candidates import Candidate, candidates
from emuml.explanation.floors import Optimum, optimum
from emuml.explanation.sampling import ROUNDS, Estimate, Sampled, round_seconds, sample
from emuml.protocols.gradient_coding.protocol import GradientCoding
from emuml.report.view import brief


@dataclass(frozen=True, eq=False)
class Row:
    """What is known of one code on the experiment's cluster.

    Attributes
    ----------
    name : str
        The code with its parameters, and after how many answers its rounds close at the latest.
    found : Sampled
        Its rounds.
    other_s : Estimate or None
        Seconds of a round if the tail of the workers' times scaled with their load, where it does not, and the other
        way round; None for laws that leave no such doubt.
    gradients : float
        Full gradients that it takes in on average in the time of the experiment's rounds.
    floor : float or None
        By how much the loss exceeds its least value in the long run; None if that is not known.
    """

    name: str
    found: Sampled
    other_s: Estimate | None
    gradients: float
    floor: float | None

    @property
    def gradient_s(self) -> float:
        """Seconds per unit of gradient: a code that loses a tenth of it takes more rounds for the same way."""
        return self.found.round_s.mean / self.found.factor if self.found.factor > 0 else float("inf")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = self.found
        return {
            "code": self.name,
            "load": found.load.mean,
            "round_s": found.round_s.mean,
            "round_s_standard_error": found.round_s.error,
            "round_s_under_the_other_load_model": None if self.other_s is None else self.other_s.mean,
            "seconds_per_gradient": self.gradient_s,
            "gradients_in_equal_time": self.gradients,
            "decode_error_per_partition": found.decode_error.mean,
            "decode_error_standard_error": found.decode_error.error,
            "exact_rounds": found.exact,
            "mean_factor": found.factor,
            "bias": found.bias,
            "noise_gain": found.noise_gain,
            "remarks": list(found.remarks),
            "loss_floor": self.floor,
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """What is to say of codes for an experiment.

    Attributes
    ----------
    name : str
        Of the experiment.
    rows : tuple of Row
        The experiment's own code first.
    refused : dict of str to str
        Codes that do not fit, and why.
    time_s : float
        Seconds of the experiment's rounds with its own code: what is called equal time.
    rounds : int
        These rounds.
    seed : int
        Of the sample.
    tail : str or None
        Whether the load scales the tail of the workers' times, ``"fixed"`` or ``"scaled"``, if that is known.
    no_floor : str
        Why no floors are known; empty if they are.
    """

    name: str
    rows: tuple[Row, ...]
    refused: dict[str, str]
    time_s: float
    rounds: int
    seed: int
    tail: str | None
    no_floor: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "time_s": self.time_s,
            "rounds": self.rounds,
            "seed": self.seed,
            "tail": self.tail,
            "codes": [row.as_dict() for row in self.rows],
            "refused": dict(self.refused),
        }


def explain(
    experiment: Experiment,
    load: float | None = None,
    rounds: int = ROUNDS,
    progress: Callable[[int, int], None] | None = None,
) -> Explanation:
    """Return how other codes would do in place of that of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Its protocol is :class:`GradientCoding`.
    load : float, optional
        Work of a worker in a round that the others should cost, in equal shares of the data. Default: as much as the
        experiment's code, at least 2, so that there is something to compare.
    rounds : int
        To sample for each code.
    progress : callable, optional
        Called with how many codes are done and how many there are.

    Raises
    ------
    UserError
        If the protocol has no code, its own code has no rounds that can be timed without a run, or ``load`` is not in
        ``1..workers``.

    Examples
    --------
    >>> from emuml.cluster import Cluster, ShiftedExponential
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> from emuml.workloads import LogisticRegression
    >>> law = ShiftedExponential(shift_s=0.05, mean_s=0.5)
    >>> coded = GradientCoding(code=FractionalRepetition(replication=3))
    >>> given = Experiment(LogisticRegression(data="breast-cancer"), coded, Cluster(30, compute=law), rounds=100)
    >>> found = explain(given)
    >>> [(row.name, round(row.found.round_s.mean, 4)) for row in found.rows[:2]]
    [('fractional-repetition(replication=3)', 0.6382), ('uncoded', 2.0475)]
    """
    protocol, cluster = experiment.protocol, experiment.cluster
    if not isinstance(protocol, GradientCoding):
        raise UserError(f"got {brief(protocol)}", "protocol", "gradient-coding", "codes are compared")
    if load is not None and not 1 <= load <= cluster.workers:
        nearest = cluster.workers if load > cluster.workers else 1
        raise UserError(f"got {load:g}", "load", f"a number in 1..{cluster.workers}", f"the nearest is {nearest}")
    own = Candidate(protocol.code, protocol.collect)
    asked = _sampled(experiment, own, rounds=2).load.mean
    those = list(candidates(own, cluster.workers, min(max(asked, 2.0), cluster.workers) if load is None else load))
    problem = experiment.workload.problem(experiment.roster().seed)
    settles = optimum(problem)
    rows: list[Row] = []
    refused: dict[str, str] = {}
    steps = experiment.stop_condition().steps_max() or 100
    time_s = 0.0
    for done, each in enumerate(those):
        if progress is not None:
            progress(done, len(those))
        name = _name(each)
        try:
            found = _sampled(experiment, each, rounds)
            problem.partition_bounds(found.weights.shape[1])  # refuses more partitions than rows
            floor = settles.excess(found.weights) if isinstance(settles, Optimum) else None
        except EmumlError as error:
            if not rows:
                raise
            refused[name] = _reason(error)
            continue
        time_s = time_s or steps * found.round_s.mean
        gradients = time_s / found.round_s.mean * found.factor if found.round_s.mean else float("inf")
        rows.append(Row(name, found, _other_s(experiment, each, rounds), gradients, floor))
    tail = _tail(cluster.compute)
    why = settles if isinstance(settles, str) else ""
    return Explanation(experiment.name, tuple(rows), refused, time_s, steps, experiment.roster().seed, tail, why)


def _reason(error: EmumlError) -> str:
    """Return what does not fit and what would, where that is known."""
    what, hint = getattr(error, "what", str(error)), getattr(error, "hint", "")
    return f"{what}; {hint}" if hint else what


def _name(candidate: Candidate) -> str:
    closes = "" if candidate.collect is None else f" closing at {candidate.collect}"
    return f"{brief(candidate.code)}{closes}"


def _sampled(experiment: Experiment, each: Candidate, rounds: int) -> Sampled:
    return sample(each.code, **_terms(experiment, each), rounds=rounds)


def _terms(experiment: Experiment, each: Candidate) -> dict[str, Any]:
    cluster, protocol = experiment.cluster, experiment.protocol
    return {
        "workers": cluster.workers,
        "law": cluster.compute,
        "seed": experiment.roster().seed,
        "collect": each.collect,
        "stragglers": protocol.stragglers,
        "deadline": protocol.deadline,
    }


def _other_s(experiment: Experiment, each: Candidate, rounds: int) -> Estimate | None:
    """Return the seconds of a round if the tail followed the other of the two models of load."""
    law = experiment.cluster.compute
    tail = _tail(law)
    if tail is None:
        return None
    other = _with_tail(law, "scaled" if tail == "fixed" else "fixed")
    return round_seconds(each.code, **{**_terms(experiment, each), "law": other}, rounds=rounds)


def _tail(law: Any) -> str | None:
    """Return whether the load scales the tail of a law, or of what it is made of; None if that is not one answer."""
    if hasattr(law, "outlier"):
        return None
    return _tail(law.base) if hasattr(law, "base") else getattr(law, "tail", None)


def _with_tail(law: Any, tail: str) -> Any:
    """Return a law with another answer to that."""
    return replace(law, base=_with_tail(law.base, tail)) if hasattr(law, "base") else replace(law, tail=tail)

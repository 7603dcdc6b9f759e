"""What a run will take, before anything starts: nodes, messages, bytes, work, time, decoding, files.

Nothing is started and nothing is written. Every figure says on what it stands: ``"exact"``, a ``"closed form"``, a
seeded ``"simulation"``, a ``"bound"`` or an ``"estimate"``. Faults are not counted, and messages never wait for each
other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml.cluster.cluster import Network
from emuml.experiment import plan_wording as wording
from emuml.experiment.expectations import Decoding, Messages, built_code, decoding, messages
from emuml.experiment.forecast import Forecast, forecast
from emuml.experiment.kept import beyond_memory
from emuml.experiment.limits import until
from emuml.experiment.plan_pushes import of_pushes
from emuml.experiment.run import Engine, prepare
from emuml.experiment.tiers import Choice, Tier, check_tier, choose
from emuml.experiment.training import Floats, Range, Training
from emuml.experiment.wall_time import emulation_s
from emuml.protocol import Problem
from emuml.runtime.settings import RuntimeSettings
from emuml.shapes import Push, Round
from emuml.stopping import Seconds, StopCondition

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment

_ROUNDS = 100
"""Of which figures are given when nothing says how many there will be."""

_ENDLESS = 10**18
"""More rounds than any time limit leaves."""


@dataclass(frozen=True)
class Plan:
    """What a run will take.

    Attributes
    ----------
    name, engine : str
    nodes : dict of str to int
        By role.
    processes : int
        Beside the one that starts them; 0 for the emulator.
    rounds : int or None
        The mean, if a time limit makes them a matter of chance. None if nothing says how many.
    ends : str
        What ends the run.
    tier, tier_reason : str
        How the emulator serves it, ``"event"`` or ``"array"``, and why; else nothing.
    load : tuple of float
        Least and greatest work of a worker in a round, in equal shares of one pass over the data.
    messages : tuple of Messages
        Of the whole run; of one round if their number is not known; empty if the protocol does not say how its rounds
        look.
    duration_s : Range or None
        Seconds on the engine's clock until the last parameters, with a 95 % interval.
    round_s, travel_s : float or None
        Mean seconds of a round, and what of it messages travel.
    drain_s : float
        Mean seconds after the last round, in which work is finished that nobody needs.
    basis, detail : str
        On what the duration stands.
    decoding : Decoding or None
    wall_s : float or None
        About how many seconds of wall time an emulation takes here, without loading data and making the report.
    writes : dict of str to str
        File or folder, and what it holds.
    sources : tuple of str
        Of the theory.
    notes : tuple of str
        What the figures leave out.
    """

    name: str
    engine: str
    nodes: dict[str, int]
    processes: int
    rounds: int | None
    ends: str
    tier: str = ""
    tier_reason: str = ""
    load: tuple[float, float] | None = None
    messages: tuple[Messages, ...] = ()
    duration_s: Range | None = None
    round_s: float | None = None
    travel_s: float | None = None
    drain_s: float = 0.0
    basis: str = "unknown"
    detail: str = ""
    decoding: Decoding | None = None
    wall_s: float | None = field(default=None, compare=False)  # of this machine and moment
    writes: dict[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, a range as a mapping of its three numbers."""
        return dict(_plain(asdict(self)))


def plan(
    experiment: Experiment,
    engine: Engine = "des",
    runtime: RuntimeSettings | None = None,
    out: str | Path | None = None,
    tier: Tier = "auto",
) -> Plan:
    """Return what a run of an experiment will take.

    Parameters
    ----------
    experiment : Experiment
    engine : {"des", "tcp"}
    runtime : RuntimeSettings, optional
        Of the TCP engine.
    out : path, optional
        Folder of the run, for the list of files.
    tier : {"auto", "event", "array"}
        As of :func:`emuml.run`.

    Raises
    ------
    UserError
        For whatever :func:`emuml.run` would refuse.

    Examples
    --------
    >>> import emuml
    >>> from emuml.cluster import Cluster, Constant
    >>> from emuml.protocols import GradientCoding
    >>> from emuml.workloads import LogisticRegression
    >>> cluster = Cluster(workers=5, compute=Constant(0.25))
    >>> found = plan(emuml.Experiment(LogisticRegression(data="breast-cancer"), GradientCoding(), cluster, rounds=8))
    >>> found.duration_s.mean, found.basis, [each.count.mean for each in found.messages]
    (2.0, 'exact', [40.0, 40.0])
    """
    check_tier(tier, engine=engine)
    problem, roster = prepare(experiment, engine), experiment.roster()
    choice, refused = Choice("", ""), None
    if engine == "des":
        choice = choose(experiment, problem, tier)
        refused = beyond_memory(experiment, problem, choice.tier)
    nodes = {role: len(roster.of(role)) for role in roster.roles}
    settings = runtime or RuntimeSettings()
    base = Plan(
        experiment.name,
        engine,
        nodes,
        sum(nodes.values()) if engine == "tcp" and settings.processes == "each" else 0,
        roster.stop.steps_max(),
        wording.ends(roster.stop),
        tier=choice.tier,
        tier_reason=choice.reason,
        writes=wording.writes(engine, settings, experiment.name, out),
        sources=tuple(dict.fromkeys(promise.source for promise in experiment.protocol.oracles())),
    )
    shape = experiment.protocol.shape(roster, problem)
    if isinstance(shape, Round):
        training = _training(experiment, engine, problem, shape)
        base = _of_rounds(base, experiment, training, settings)
        base = replace(base, wall_s=_wall_s(base, training, problem))
    elif isinstance(shape, Push):
        base = of_pushes(base, experiment, problem, shape, settings)
    else:
        base = replace(base, notes=("the protocol does not say how its rounds look",))
    if engine == "des" and not experiment.cluster.shares_nothing:
        base = _with_waiting(base)
    notes = base.notes + wording.notes(experiment, engine, settings, base.load)
    return replace(base, notes=notes if refused is None else (*notes, f"too large to run: {refused}"))


def _with_waiting(base: Plan) -> Plan:
    """Return what a plan is worth where messages wait for each other: it takes longer, and others may come first."""
    found = [replace(each, basis="estimate") if each.basis == "exact" else each for each in base.messages]
    if base.basis == "unknown":
        return base
    detail = f"{base.detail}; what messages wait for each other comes on top"
    return replace(base, messages=tuple(found), basis="bound", detail=detail)


def _wall_s(base: Plan, training: Training, problem: Problem) -> float | None:
    """Return about how long an emulation takes; a run over TCP takes what it takes."""
    if base.engine != "des" or base.rounds is None or base.decoding is None:
        return None
    count = sum(each.count.mean for each in base.messages)
    return emulation_s(training, problem, base.rounds, base.decoding.covered, count, base.tier)


def _training(experiment: Experiment, engine: Engine, problem: Problem, shape: Round) -> Training:
    cluster, network = experiment.cluster, _network(experiment, engine)
    training = Training(
        experiment.protocol,
        shape,
        cluster.compute,
        np.full(cluster.workers, float(shape.compute)),
        network,
        _ROUNDS,
        experiment.roster(),
    )
    return replace(training, loads=_loads(training, problem))


def _network(experiment: Experiment, engine: str) -> Network:
    """Return a network whose messages take what those of the run take at least, if each is alone."""
    return Network(*experiment.cluster.network.alone(experiment.roster().ids)) if engine == "des" else Network()


def _of_rounds(base: Plan, experiment: Experiment, training: Training, settings: RuntimeSettings) -> Plan:
    """Fill in what follows from the shape of the rounds."""
    is_real = base.engine == "tcp"
    is_unknown = is_real and settings.inject == "off"
    scale = settings.time_scale if is_real else 1.0
    limit_s = None if is_unknown else _limit_s(experiment.stop_condition())
    longest = replace(training, rounds=_known_rounds(training, base.rounds or _ENDLESS))
    ended = None if limit_s is None else until(longest, limit_s / scale)
    rounds, notes = base.rounds, []
    if ended is not None and limit_s is not None:
        rounds = max(round(ended.rounds.mean), 1)
        notes.append(wording.rounds(ended.rounds, limit_s))
    elif limit_s is not None and hasattr(training.law, "extent") and rounds is None:
        rounds = longest.rounds
        notes.append(f"the recorded delays end after {rounds:,} rounds, before {limit_s:g} s")
    elif rounds is None:
        notes.append(f"nothing says how many rounds: messages are those of {_known_rounds(training, _ROUNDS)}")
    training = replace(training, rounds=rounds or _known_rounds(training, _ROUNDS))
    found = ended or forecast(training)
    decoded, duration = decoding(training, found), found.duration_s
    if decoded is not None:
        notes += wording.left_out(decoded.covered, getattr(experiment.protocol, "collect", None), training.workers)
    notes += getattr(built_code(training), "remarks", ())
    if is_real:
        found = _real(found, is_unknown, ended is not None)
    return replace(
        base,
        rounds=rounds,
        load=(float(training.loads.min()), float(training.loads.max())),
        messages=messages(training, found, is_real),
        duration_s=None if rounds is None or is_unknown or duration is None else duration.times(scale),
        round_s=None if is_unknown or duration is None else scale * duration.mean / found.rounds.mean,
        travel_s=training.travel_s / training.rounds,
        drain_s=scale * found.drain_s,
        basis=found.basis,
        detail=found.detail,
        decoding=decoded,
        notes=tuple(notes),
    )


def _real(found: Forecast, is_unknown: bool, is_by_time: bool) -> Forecast:
    """Return what a forecast is worth where messages and servers take the time that they take."""
    if is_unknown:
        return replace(found, duration_s=None, basis="unknown", detail="real tasks take what they take")
    if is_by_time:
        detail = f"{found.detail}; of real rounds fewer fit"
        return replace(found, basis="estimate", questions_basis="estimate", answers_basis="estimate", detail=detail)
    if found.basis == "exact":
        return replace(found, basis="bound", detail=f"{found.detail}; what is real comes on top")
    return found


def _loads(training: Training, problem: Problem) -> Floats:
    """Return the load of each worker as its tasks have it: shares may differ by a row, and batches are small."""
    code, loads = built_code(training), training.loads.copy()
    if not hasattr(code, "assignment"):
        return loads
    unit = problem.full_cost / training.workers
    costs: dict[tuple[int, ...], float] = {}
    for worker in range(training.workers):
        owned = code.assignment(worker)
        if owned not in costs:
            task = problem.gradient(problem.initial, owned, code.partitions, draw=0) if owned else None
            costs[owned] = task.cost / unit if task is not None else 0.0
        loads[worker] = costs[owned]
    return loads


def _limit_s(stop: StopCondition) -> float | None:
    """Return the least time limit of a stop condition."""
    return min((part.limit_s for part in wording.parts(stop) if isinstance(part, Seconds)), default=None)


def _known_rounds(training: Training, rounds: int) -> int:
    """Return at most as many rounds as a recorded law has, if it ends."""
    return min(rounds, getattr(training.law, "extent", (None,))[0] or rounds)


def _plain(value: Any) -> Any:
    if isinstance(value, Range):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value

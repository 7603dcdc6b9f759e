"""From an experiment to a result: build the problem and the nodes, run them on an engine, keep what came out."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from emuml.blas import single_threaded
from emuml.errors import NodeFailed, RunFailed, UserError
from emuml.experiment import experiment as experiment_module
from emuml.experiment.fitting import prepare as prepare
from emuml.experiment.kept import check_memory
from emuml.experiment.observing import Observatory, Watcher
from emuml.experiment.result import Metrics, Result
from emuml.experiment.run_dir import RunDir
from emuml.experiment.tiers import Tier, after, check_tier, choose, emulate_arrays, is_large
from emuml.protocol import Outcome
from emuml.provenance import provenance
from emuml.trace import OnDisk, Records, Trace

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.outcome import Run
    from emuml.runtime.settings import RuntimeSettings

Engine = Literal["des", "tcp"]
Progress = Callable[[dict[str, Any]], None]
"""Called with each row of metrics as it is made, and with the number of events handled so far."""


def run(
    experiment: Experiment,
    engine: Engine = "des",
    *,
    out: str | Path | None = None,
    beside: Iterable[Callable[..., Any]] = (),
    journal: bool | None = None,
    runtime: RuntimeSettings | None = None,
    progress: Progress | None = None,
    tier: Tier = "auto",
    trace: bool = True,
) -> Result:
    """Run an experiment on the emulator or over real TCP.

    Parameters
    ----------
    experiment : Experiment
    engine : {"des", "tcp"}
        The emulator, or local processes that talk over TCP.
    out : path, optional
        Folder for the run; what is done is on disk while it runs. Default: nothing on disk for ``"des"``, a
        temporary folder that goes with the result for ``"tcp"``.
    beside : callables
        Users' own SimPy processes, each ``f(env, cluster)``; emulator only.
    journal : bool, optional
        Whether to keep journals. Default: over TCP yes, on the emulator no (it forces evaluation of all results).
    runtime : RuntimeSettings, optional
        Of the TCP engine.
    progress : callable, optional
    tier : {"auto", "event", "array"}
        How the emulator serves the run: event by event, or whole rounds or pushes as arrays, with the same results and
        no trace of messages. ``"auto"`` takes arrays for what they can serve beyond a million messages.
    trace : bool
        Whether to keep a trace in memory: each message, timer and task makes records. Reports leave out what needs
        them; who asks for records that are not there is told so.

    Raises
    ------
    UserError
        Before anything starts.
    RunFailed
        If the run began and could not go on.

    Examples
    --------
    >>> import emuml
    >>> from emuml.cluster import Cluster, ShiftedExponential
    >>> from emuml.protocols import GradientCoding
    >>> from emuml.workloads import LogisticRegression
    >>> cluster = Cluster(workers=4, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5))
    >>> workload = LogisticRegression(data="breast-cancer")
    >>> experiment = emuml.Experiment(workload, GradientCoding(), cluster, rounds=3, seed=1)
    >>> emuml.run(experiment).rounds
    3
    """
    beside = tuple(beside)
    if not isinstance(experiment, experiment_module.Experiment):
        raise UserError(f"got {experiment!r}", "run", "an emuml.Experiment")
    if engine not in ("des", "tcp"):
        raise UserError(f"got {engine!r}", "engine", "'des' or 'tcp'")
    if engine == "tcp" and tuple(beside):
        raise UserError("SimPy processes run beside emulated nodes only", "beside", "engine='des'")
    check_tier(tier, engine=engine)
    if not trace and (out is not None or engine == "tcp"):
        raise UserError("got False", "trace", "True for what is kept in a folder or runs over TCP")
    began = time.perf_counter()
    problem = prepare(experiment, engine)
    made_from = provenance(experiment.seed, engine, problem)
    served = choose(experiment, problem, tier, bool(journal), beside).tier if engine == "des" else ""
    if engine == "des":
        check_memory(experiment, problem, served)
    if served == "array":
        made_from["tier"] = served
    if source := getattr(experiment.cluster.compute, "source", ""):
        made_from["delays"] = source
    if engine == "tcp" and runtime is not None:
        made_from["runtime"] = asdict(runtime)
    folder = RunDir(Path(out), experiment, engine, runtime, made_from) if out is not None else None
    observatory = Observatory(problem, experiment.stop_condition(), (folder.add_row,) if folder else ())
    if progress is not None:
        observatory.add_sink(lambda row: progress({**row, "events": observatory.events}))
        if isinstance(progress, Watcher):
            progress.watch(lambda: observatory.peek())
    try:
        if engine == "des":
            record = emulate(
                experiment, problem, observatory, _trace(trace, folder, experiment), bool(journal), beside, served
            )
        else:
            record = _deploy(experiment, problem, observatory, folder, runtime, journal)
        if isinstance(record.error, NodeFailed) and folder is not None:
            record.error.replay = f"emuml replay {shlex.quote(str(folder.path))}"
        result = assemble(experiment, record, observatory.rows, time.perf_counter() - began)
        result.provenance = made_from
        if folder is not None:
            folder.finish(result)
    except OSError as error:
        if folder is None or error.filename not in (None, *map(str, folder.path.rglob("*"))):
            raise
        raise RunFailed(f"cannot write {folder.path}: {error.strerror}; what was written before is kept") from error
    except BaseException as error:
        if folder is not None:
            folder.fail(error)
        raise
    finally:
        if folder is not None:
            folder.close()
    return result


def _trace(wanted: bool, folder: RunDir | None, experiment: Experiment) -> Trace:
    """Return where records go; those of more messages than one would trace by default stay out of memory."""
    if not wanted:
        return Records("this run was told to keep no trace", "a run with trace=True")
    if folder is None or folder.trace_stream is None:
        return Trace()
    return OnDisk(folder.trace_stream) if is_large(experiment) else Trace(folder.trace_stream)


def emulate(
    experiment: Experiment,
    problem: Any,
    observatory: Observatory,
    trace: Trace,
    journal: bool = False,
    beside: Iterable[Callable[..., Any]] = (),
    tier: str = "event",
) -> Run:
    """Run an experiment on the emulator and return its own record; failures are in it.

    Where the array tier does not know the order of events of one instant, the event tier begins anew; what has been
    observed before is not observed again.
    """
    from emuml.des.emulator import Emulator

    published = logged = 0
    if tier == "array":
        with single_threaded():
            record, is_whole = emulate_arrays(experiment, problem, observatory, trace)
        if is_whole or not trace.restart():
            return record
        published, logged = len(record.published), len(record.logs)
    roster = experiment.roster()
    emulator = Emulator(
        experiment.protocol.nodes(problem, roster),
        experiment.cluster,
        roster,
        faults=experiment.fault_plan(),
        unit_cost=problem.full_cost / experiment.cluster.workers,
        journal=journal,
        observers=(after(published, observatory.on_publish),),
        log_sinks=(after(logged, observatory.on_log),),
        trace=trace,
    )
    observatory.peek = emulator.peek
    with single_threaded():
        record = emulator.run(beside=beside)
    record.tier = "event"
    return record


def _deploy(
    experiment: Experiment,
    problem: Any,
    observatory: Observatory,
    folder: RunDir | None,
    runtime: RuntimeSettings | None,
    journal: bool | None,
) -> Run:
    from dataclasses import replace

    from emuml.runtime.deployment import Job, check_importable, deploy
    from emuml.runtime.settings import RuntimeSettings
    from emuml.spec import Inputs, to_spec

    settings = runtime or RuntimeSettings()
    if journal is not None:
        settings = replace(settings, journal=journal)
    roster, inputs = experiment.roster(), Inputs()
    spec: dict[str, Any] = {"problem": to_spec(problem, inputs), "protocol": to_spec(experiment.protocol, inputs)}
    if settings.processes == "each":
        check_importable(spec)
    job = Job(
        nodes=experiment.protocol.nodes(problem, roster),
        roster=roster,
        cluster=experiment.cluster,
        builds=lambda id: {"experiment": spec},
        inputs=inputs,
        unit_cost=problem.full_cost / experiment.cluster.workers,
        faults=experiment.fault_plan(),
        observers=(observatory.on_publish,),
        log_sinks=(observatory.on_log,),
        vital=frozenset({"server"}),
    )
    return deploy(job, settings, folder.path if folder else None)


def assemble(experiment: Experiment, record: Run, rows: list[dict[str, Any]], wall_s: float) -> Result:
    """Make a result of an engine's record.

    Raises
    ------
    RunFailed
        If the run failed.
    """
    if record.error is not None:
        raise record.error
    if not record.published:
        raise RunFailed("the run stopped before any parameters were published")
    outcome = Outcome(
        [(item.version, item.parameters) for item in record.published], [item.metrics for item in record.logs]
    )
    drained_s = [item.metrics["drain_s"] for item in record.logs if "drain_s" in item.metrics]
    return Result(
        experiment=experiment,
        engine=record.engine,
        parameters=experiment.protocol.parameters(outcome),
        metrics=Metrics(rows),
        trace=record.trace,
        duration_s=record.published[-1].time_s if drained_s else record.duration_s,
        drain_s=float(drained_s[-1]) if drained_s else 0.0,
        rounds=record.published[-1].version,
        wall_s=wall_s,
        run=record,
        run_dir=record.folder,
    )

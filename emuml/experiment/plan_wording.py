"""What a plan says in words: how a run ends, which files it leaves, what its figures leave out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from emuml.experiment.folders import plain_name
from emuml.experiment.training import Range
from emuml.stopping import AnyOf, Rounds, Seconds, StopCondition, TargetLoss, Updates

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.runtime.settings import RuntimeSettings


def ends(stop: StopCondition) -> str:
    """Return what ends a run.

    Examples
    --------
    >>> ends(Rounds(100) | TargetLoss(0.1))
    '100 rounds, or train_loss <= 0.1'
    """
    return ", or ".join(_end(part) for part in parts(stop))


def parts(stop: StopCondition) -> tuple[StopCondition, ...]:
    """Return the conditions of which the first ends a run."""
    return tuple(part for one in stop.conditions for part in parts(one)) if isinstance(stop, AnyOf) else (stop,)


def rounds(count: Range, limit_s: float) -> str:
    """Return how many rounds a run has that ends at a time.

    Examples
    --------
    >>> rounds(Range(4.417, 3.0, 7.0), 2.0)
    'about 4.4 rounds, 95 %: 3 to 7: the first that ends at or after 2 s is the last'
    """
    end = f"the first that ends at or after {limit_s:g} s is the last"
    if count.low == count.high:
        return f"{count.mean:,.0f} round{'s' * (count.mean > 1)}: {end}"
    mean = f"{count.mean:,.1f}" if count.mean < 100 else f"{count.mean:,.0f}"
    return f"about {mean} rounds, 95 %: {count.low:,.0f} to {count.high:,.0f}: {end}"


def _end(stop: StopCondition) -> str:
    match stop:
        case Rounds(count):
            return f"{count:,} rounds"
        case Updates(count):
            return f"{count:,} updates"
        case Seconds(limit_s):
            return f"the end of a round after {limit_s:g} s"
        case TargetLoss(value, metric):
            return f"{metric} <= {value:g}"
    return type(stop).__name__


def size(value: float) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> size(312), size(7384.0), size(2.5e9)
    ('312 B', '7.384 kB', '2.5 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.0f} B"


def writes(engine: str, settings: RuntimeSettings, name: str, out: str | Path | None) -> dict[str, str]:
    """Return what a run leaves on the disk, as file or folder and what it holds."""
    folder = f"runs/<UTC>-{plain_name(name)}" if out is None else str(out)
    found = {
        "config.yaml": "the complete configuration",
        "inputs/": "its arrays, if it has any",
        "provenance.json": "versions, seed, data, command",
        "metrics.csv": "a row for the start and for each round",
        "parameters.npy": "the trained parameters",
        "summary.json": "what --json prints",
        "report.html": "one page of facts and charts",
    }
    if engine == "des" or settings.trace:
        found["trace"] = "every event"
    if engine == "tcp":
        kept = [word for word, is_kept in (("journal", settings.journal), ("trace", settings.trace)) if is_kept]
        found["nodes/"] = f"of each node: {', '.join([*kept, 'log'])}"
    return {f"{folder}/{file}": what for file, what in sorted(found.items())}


def _unequal(least: float, most: float) -> str:
    """Say how loads differ: by a row where shares are not equal, or by as much as a code likes.

    Examples
    --------
    >>> _unequal(0.99, 1.01)
    'the largest share of the data is 2 % larger than the smallest'
    >>> _unequal(0.0, 4.0)
    'workers compute between 0 and 4 shares of the data'
    """
    if most < 2 * least:
        return f"the largest share of the data is {100 * (most / least - 1):.2g} % larger than the smallest"
    return f"workers compute between {least:.2g} and {most:.2g} shares of the data"


def _is_ignored(law: object, least: float, most: float) -> bool:
    """Tell whether a law ignores a load that is not that of one share; shares may differ by a row."""
    return getattr(law, "load", "") == "ignored" and (least > 1.01 or most < 0.99 or most >= 1.5)


def _replicas(experiment: Experiment) -> list[str]:
    """Say which groups there are where the replication asked for does not divide the workers."""
    code, workers = getattr(experiment.protocol, "code", None), experiment.cluster.workers
    replication = getattr(code, "replication", None)
    if replication is None or code is None or workers % replication == 0:
        return []
    sizes = getattr(code.build(workers, collect=experiment.protocol.collect), "group_sizes", ())
    if not sizes:
        return []
    each = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} or {max(sizes)}"
    return [
        f"{replication} replicas do not divide {workers} workers: {len(sizes)} groups of {each}, "
        f"a load of {workers / len(sizes):.3g}"
    ]


def left_out(covered: float, collect: int | None, workers: int) -> list[str]:
    """Say how much of the data a round does without, where that is much.

    Examples
    --------
    >>> left_out(0.392, 15, 100)
    ['a round does without 61 % of the data on average: collect=15 of 100 workers']
    """
    if covered >= 0.75 or collect is None:
        return []
    share = f"{100 * (1 - covered):.0f} % of the data"
    return [f"a round does without {share} on average: collect={collect} of {workers} workers"]


def notes(
    experiment: Experiment, engine: str, settings: RuntimeSettings, load: tuple[float, float] | None
) -> tuple[str, ...]:
    """Return what the figures of a plan leave out."""
    cluster, found = experiment.cluster, []
    for stop in parts(experiment.stop_condition()):
        if stop.watched():
            found.append(f"the run ends earlier if {_end(stop)}, which nobody can predict")
    if load is not None and load[1] > load[0] * (1 + 1e-9):
        found.append(_unequal(*load))
    if load is not None and _is_ignored(cluster.compute, *load):
        each = f"{load[1]:.2g}" if load[1] - load[0] < 0.1 else f"{load[0]:.2g} to {load[1]:.2g}"
        found.append(f"recorded delays ignore the load: a worker computes {each} shares of the data in the time of one")
    found += _replicas(experiment)
    if experiment.faults:
        found.append("faults are not counted")
    if engine == "des" and cluster.has_free_messages:
        found.append("messages are FREE: no latency, no bandwidth, no work of servers, however many there are")
    if engine == "des" and not cluster.shares_nothing:
        found.append("not counted: how long messages wait for each other on links and at servers")
    if engine == "des" and cluster.cancel_lag_s:
        found.append(f"not counted: a cancelled task may hold its slot for {cluster.cancel_lag_s:g} s more")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if engine == "tcp" and settings.processes == "each" and cluster.workers > 8 * cores:
        found.append(f"{cluster.workers + cluster.servers} processes share {cores} cores: rounds may take longer")
    if engine == "tcp":
        found.append("not counted: starting the processes, and what real messages take")
        if settings.inject == "add":
            found.append("not counted: the real computing, to which delays are added")
        if settings.inject == "floor":
            found.append("a task whose real computing is longer than its delay takes its own time")
    return tuple(found)

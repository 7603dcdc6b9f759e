"""What differs between contestants, and which random numbers they have in common.

Delays are drawn by position from (seed, worker, round) and rows are put in order by the seed, so runs of one seed share
them by construction: as far as law, workers and data are the same. What is not shared is said, or refused by the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from emuml.comparison.contestants import Contestant
from emuml.node import NodeId
from emuml.report.view import brief
from emuml.spec import array_digest

_DRAWS = 4


class Difference(NamedTuple):
    """A setting, and what each contestant has there."""

    setting: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Shared:
    """What the runs of one seed have in common.

    Attributes
    ----------
    common : tuple of str
        What is the same, a sentence each.
    warnings : tuple of str
        What is not, and what that means for the comparison.
    """

    common: tuple[str, ...]
    warnings: tuple[str, ...]


_CONSEQUENCES = {
    "engine": "engines differ: the seconds are of different clocks",
    "runtime": "settings of the TCP runtime differ",
    "workload.optimizer": "optimizers differ: losses differ for that reason too",
    "workload.batch": "batches differ: gradients are not of the same rows",
    "workload.": "workloads differ in more than the optimizer: losses are not of the same objective or rows",
    "cluster.workers": "numbers of workers differ: only the workers that all have share their delays",
    "cluster.compute": "compute laws differ: the seconds differ for that reason too",
    "cluster.": "clusters differ: the seconds differ for that reason too",
    "rounds": "rounds differ: compare seconds per round or to the target, not totals or final losses",
    "stop": "stop conditions differ: compare seconds per round or to the target, not totals or final losses",
    "faults": "faults differ: not everybody lives through the same crashes",
}


def what_differs(contestants: Sequence[Contestant], same_data: bool = False) -> tuple[Difference, ...]:
    """Return the settings in which contestants differ, beside name and seed.

    Parameters
    ----------
    contestants : sequence of Contestant
    same_data : bool
        Whether the data are known to be equal whatever they are called.
    """
    loaded = [one.loaded for one in contestants]
    rows = _compare("engine", [each.engine for each in loaded])
    if any(each.engine == "tcp" for each in loaded):
        rows += _compare("runtime", [each.runtime for each in loaded])
    for name in ("protocol", "workload", "cluster", "rounds", "stop", "faults"):
        rows += _compare(name, [getattr(each.experiment, name) for each in loaded])
    return tuple(row for row in rows if not (same_data and row.setting == "workload.data"))


def _compare(path: str, values: Sequence[Any]) -> list[Difference]:
    """Descend into declarations of one kind; below a kind that differs each is shown whole."""
    first = values[0]
    if is_dataclass(first) and all(type(value) is type(first) for value in values):
        inner = [item.name for item in fields(first) if item.init]
        return [row for name in inner for row in _compare(f"{path}.{name}", [getattr(v, name) for v in values])]
    shown = tuple(map(_shown, values))
    return [] if len(set(shown)) == 1 else [Difference(path, shown)]


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {'x'.join(map(str, value.shape))} {array_digest(value)[:8]}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return "-" if value is None else brief(value)


def what_is_shared(
    contestants: Sequence[Contestant], differences: Sequence[Difference], seeds: Sequence[int]
) -> Shared:
    """Say what the runs of one seed have in common, and what not."""
    settings = [row.setting for row in differences]
    warnings = dict.fromkeys(text for name in settings if (text := _consequence(name)))
    warnings |= dict.fromkeys(_same(contestants, differences))
    common = ["data, order of rows, held-back rows, initial parameters"]
    if any(name.startswith("workload.") and name != "workload.optimizer" for name in settings):
        common = ["data and order of rows"]
    vary = len(seeds) < 2 or any(_vary(one, seeds) for one in contestants)
    if not any(name.startswith("cluster.compute") for name in settings):
        few = "of the workers that all have, " if "cluster.workers" in settings else ""
        common.append(f"delays {few}draw by draw" if vary else f"delays {few}which are the same for every seed")
    elif len({type(one.loaded.experiment.cluster.compute) for one in contestants}) == 1:
        common.append("the draws behind the delays, under laws that differ")
    if not vary:
        warnings["delays do not change with the seed: intervals speak of the order of the data alone"] = None
    return Shared(tuple(common), tuple(warnings))


def _same(contestants: Sequence[Contestant], differences: Sequence[Difference]) -> Iterator[str]:
    """Yield a sentence for each contestant that does what another one does."""
    columns = [tuple(row.values[i] for row in differences) for i in range(len(contestants))]
    for i, one in enumerate(contestants):
        if columns[i] in columns[:i]:
            other = contestants[columns.index(columns[i])]
            emulated = one.loaded.engine == "des"
            zero = ": all differences between them are zero by construction" if emulated else ""
            yield f"{one.name} is the same experiment as {other.name}{zero}"


def _consequence(setting: str) -> str:
    """Return the sentence of the first entry that a setting falls under; the protocol may differ."""
    return next((text for start, text in _CONSEQUENCES.items() if f"{setting}.".startswith(start)), "")


def _vary(contestant: Contestant, seeds: Sequence[int]) -> bool:
    """Tell whether the first delays of the first worker depend on the seed."""
    experiment = contestant.loaded.experiment
    rounds = getattr(experiment.cluster.compute, "extent", (_DRAWS,))[0]
    draws = range(min(_DRAWS, rounds))
    samplers = (experiment.cluster.compute.sampler(seed, NodeId("worker", 0)) for seed in islice(seeds, 2))
    first, second = ([duration_s(draw, 1.0) for draw in draws] for duration_s in samplers)
    return first != second

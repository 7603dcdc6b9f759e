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

from emuml import names
from emuml.comparison.contestants import Contestant
from emuml.comparison.loads import load_warnings
from emuml.comparison.scales import scale_warnings
from emuml.comparison.words import joined
from emuml.node import NodeId
from emuml.report.view import brief
from emuml.spec import array_digest

_DRAWS = 32


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
    "workload.chunk_rows": "sizes of blocks differ: sums differ in their last digits",
    "workload.initial": "initial parameters differ: losses differ for that reason too",
    "cluster.workers": "numbers of workers differ: only the workers that all have share their delays",
    "cluster.compute": "compute laws differ: the seconds differ for that reason too",
    "cluster.": "clusters differ: the seconds differ for that reason too",
    "rounds": "rounds differ: totals and final losses are not comparable",
    "stop": "stop conditions differ: totals and final losses are not comparable",
    "faults": "faults differ: not everybody lives through the same crashes",
}

_SAME_ROWS = {"workload.l2", "workload.standardize", "workload.intercept"}
"""Settings that leave the held-out rows as they are."""


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
    """Descend into declarations of one kind; where kinds differ each is shown whole, with its defaults."""
    first = values[0]
    if is_dataclass(first) and all(type(value) is type(first) for value in values):
        inner = [item.name for item in fields(first) if item.init]
        return [row for name in inner for row in _compare(f"{path}.{name}", [getattr(v, name) for v in values])]
    kinds_differ = len(set(map(type, values))) > 1
    shown = tuple(map(_whole if kinds_differ else _shown, values))
    return [] if len(set(shown)) == 1 else [Difference(path, shown)]


def _whole(value: Any) -> str:
    """Return a declaration with all of its fields: what one leaves out may be what another one says."""
    if not is_dataclass(value) or isinstance(value, type):
        return _shown(value)
    kind = names.kind_of(type(value)).rpartition(":")[2]
    shown = ", ".join(f"{item.name}={_shown(getattr(value, item.name))}" for item in fields(value) if item.init)
    return f"{kind}({shown})" if shown else kind


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
    if objective := _of_the_objective(settings):
        left = "held-out scores and seconds per round" if _SAME_ROWS.issuperset(objective) else "seconds per round"
        warnings[f"objectives differ ({joined(objective)}): losses are not comparable, only {left} are"] = None
    warnings |= dict.fromkeys(scale_warnings(contestants))
    warnings |= dict.fromkeys(load_warnings(contestants))
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


def comparable(metrics: Sequence[str], differences: Sequence[Difference]) -> tuple[str, ...]:
    """Return the metrics that mean the same for all contestants.

    Where objectives differ, these are the scores on held-out rows, as far as the rows are the same: a loss has its
    regulariser in it, and what is trained on is what an objective is about.

    Parameters
    ----------
    metrics : sequence of str
        Those that all have.
    differences : sequence of Difference
    """
    objective = _of_the_objective([row.setting for row in differences])
    if not objective:
        return tuple(metrics)
    if not _SAME_ROWS.issuperset(objective):
        return ()
    return tuple(name for name in metrics if name.startswith("validation_") and not name.endswith("_loss"))


def _of_the_objective(settings: Sequence[str]) -> list[str]:
    """Return the settings that decide what is minimized, beside the data: those of the workload but for the known."""
    return [name for name in settings if name.partition(".")[0] == "workload" and not _consequence(name)]


def _consequence(setting: str) -> str:
    """Return the sentence of the first entry that a setting falls under; the protocol may differ."""
    return next((text for start, text in _CONSEQUENCES.items() if f"{setting}.".startswith(start)), "")


def _vary(contestant: Contestant, seeds: Sequence[int]) -> bool:
    """Tell whether the first delays of the first worker depend on the seed."""
    experiment = contestant.loaded.experiment
    rounds = getattr(experiment.cluster.compute, "extent", (None,))[0]
    draws = range(min(_DRAWS, rounds or _DRAWS))
    samplers = (experiment.cluster.compute.sampler(seed, NodeId("worker", 0)) for seed in islice(seeds, 2))
    first, second = ([duration_s(draw, 1.0) for draw in draws] for duration_s in samplers)
    return first != second

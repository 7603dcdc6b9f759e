"""Whose load the delays ignore: where they do, redundant work is free, and comparing codes means less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emuml.comparison.contestants import Contestant
from emuml.comparison.words import joined


def load_warnings(contestants: Sequence[Contestant]) -> Iterator[str]:
    """Yield a sentence if a worker of somebody has another load than one share, and its recorded delays ignore that."""
    found: dict[float, list[str]] = {}
    for one in contestants:
        experiment = one.loaded.experiment
        load = getattr(experiment.protocol.shape(experiment.roster()), "compute", None)
        if load and load != 1.0 and getattr(experiment.cluster.compute, "load", "") == "ignored":
            found.setdefault(load, []).append(one.name)
    if found:
        shares = "; ".join(f"{load:g} shares of the data in {joined(names)}" for load, names in sorted(found.items()))
        yield f"recorded delays ignore the load: a worker computes {shares}, in the time of one"

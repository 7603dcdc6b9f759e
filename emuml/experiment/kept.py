"""Versions of parameters that an emulation keeps, counted before it starts: a run that would not fit is refused.

Results are evaluated when they are read, so whatever a pending task was given must stay: with workers that read at
their own pace that is a version for each of them. Published versions stay until the end of the run. What is counted is
parameters and gradients; data, traces and nodes come on top.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emuml.errors import UserError
from emuml.experiment.plan_wording import size
from emuml.rounds import TOGETHER
from emuml.shapes import Push, Round

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.protocol import Problem

SHARE = 0.5
"""Of the memory of the machine, that parameters may take if nothing else is said."""

SETTING = "EMUML_MEMORY_BYTES"


class Kept(NamedTuple):
    """Arrays of the size of the parameters, and why they are kept."""

    arrays: int
    what: str


def kept(experiment: Experiment, problem: Problem, tier: str = "event") -> list[Kept]:
    """Return what an emulation keeps at most at one time, of everything of the size of the parameters.

    Parameters
    ----------
    experiment : Experiment
    problem : Problem
    tier : {"event", "array"}

    Examples
    --------
    >>> import emuml
    >>> from emuml.cluster import Cluster, Constant
    >>> from emuml.protocols import GradientCoding
    >>> from emuml.workloads import LogisticRegression
    >>> cluster = Cluster(workers=5, compute=Constant(0.25))
    >>> given = emuml.Experiment(LogisticRegression(data="breast-cancer"), GradientCoding(), cluster, rounds=8)
    >>> [f"{arrays} {what}" for arrays, what in kept(given, given.workload.problem(0))]
    ['9 published versions', '5 answers that are decoded together']
    """
    workers, shape = experiment.cluster.workers, experiment.protocol.shape(experiment.roster())
    rounds = experiment.stop_condition().steps_max()
    found = [] if rounds is None else [Kept(rounds + 1, "published versions")]
    if isinstance(shape, Round):
        decoded = _decoded(shape, workers)
        found.append(Kept(min(decoded, TOGETHER) if tier == "array" else decoded, "answers that are decoded together"))
    elif isinstance(shape, Push):
        slack = getattr(shape.barrier, "slack", None)
        if getattr(shape.barrier, "in_step", False):
            found.append(Kept(workers, "pushes that make one step"))
        else:
            found.append(Kept(workers, "versions that workers have read"))
        if slack:
            pushes = 1 if tier == "array" else slack + 1
            found.append(Kept(workers, "copies that workers go on with"))
            found.append(Kept(pushes * workers, "pushes that are not confirmed"))
    return found


def _decoded(shape: Round, workers: int) -> int:
    """Return how many answers a step is made of at most: one of each group, or all that close the round."""
    try:
        count, cover = shape.stop_rule.parts()
    except NotImplementedError:
        return workers
    return min(workers, count or workers, len(cover.groups) if cover is not None else workers)


def check_memory(experiment: Experiment, problem: Problem, tier: str = "event") -> None:
    """Refuse an emulation whose versions of parameters would not fit.

    Raises
    ------
    UserError
        With what would be kept, and what to change.
    """
    if error := beyond_memory(experiment, problem, tier):
        raise error


def beyond_memory(experiment: Experiment, problem: Problem, tier: str = "event") -> UserError | None:
    """Return what :func:`check_memory` raises, for plans: what is too large to run is still told about."""
    each, found, limit = problem.initial.nbytes, kept(experiment, problem, tier), limit_bytes()
    total = each * sum(part.arrays for part in found)
    if total <= limit:
        return None
    found.sort(reverse=True)
    parts = ", ".join(f"{part.arrays:,} {part.what}" for part in found)
    bound = "by " + SETTING if SETTING in os.environ else f"half of this machine's memory; {SETTING}=N allows N bytes"
    return UserError(
        f"parameters would take about {size(total)}: {parts}, of {size(each)} each",
        "memory",
        f"at most {size(limit)} ({bound})",
        _advice(found[0].what),
    )


def _advice(largest: str) -> str:
    if largest.startswith("published"):
        return "fewer rounds, or larger steps between versions"
    if largest.startswith("answers"):
        return "fewer groups of workers; tier='array' adds answers as they are evaluated"
    return "fewer workers, or a barrier with less slack"


def limit_bytes() -> float:
    """Return how many bytes versions of parameters may take: ``EMUML_MEMORY_BYTES``, or half of the machine's memory.

    Raises
    ------
    UserError
        If the variable is no number of bytes.
    """
    given = os.environ.get(SETTING)
    if given is None:
        return SHARE * memory_bytes()
    with suppress(ValueError):
        if float(given) > 0:
            return float(given)
    raise UserError(f"got {given!r}", SETTING, "a number of bytes > 0, such as 8e9")


def memory_bytes() -> float:
    """Return the memory of this machine, or of the container that this process is in."""
    try:
        found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")  # a system that does not say
    with suppress(OSError, ValueError):
        found = min(found, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found

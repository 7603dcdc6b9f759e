"""A campaign: many explored runs of one subject, until one fails or all are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from emuml.testing.arguments import check_campaign, check_described
from emuml.testing.budget import DEFAULT_BUDGET, DEFAULT_CLUSTERS, Budget, Clusters
from emuml.testing.explorers import Ground, Name, Proposal, check_name
from emuml.testing.explorers import explorer as explorer_of
from emuml.testing.oracles import Description
from emuml.testing.scenario import Scenario
from emuml.testing.shrink import Shrunk, shrink
from emuml.testing.subject import Describe, Make, Subject
from emuml.testing.trial import Trial, Trier, differs, prepared

REPEATED = 100
"""One run in so many is made twice; the traces must be equal."""


@dataclass
class Campaign:
    """What came of a campaign.

    Attributes
    ----------
    runs : int
    failure : Shrunk or None
        The first run that failed, shrunk.
    missed : list of str
        Which *sometimes* no run reached.
    dropped : int
        Faults that exceeded the budget.
    messages : int
        Sent in all runs.
    wall_s : float
        Seconds in the emulator.
    nondeterministic : Scenario or None
        A scenario of which two runs differ.
    difference : str
        Where they do.
    """

    runs: int = 0
    failure: Shrunk | None = None
    missed: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    dropped: int = 0
    messages: int = 0
    wall_s: float = 0.0
    nondeterministic: Scenario | None = None
    difference: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing failed and every *sometimes* was reached."""
        return self.failure is None and not self.missed and self.nondeterministic is None

    def summary(self) -> str:
        """Return one line."""
        line = f"explored {self.runs} runs, {self.messages} messages, {self.wall_s:.1f} s"
        if self.dropped:
            line += f", {self.dropped} faults beyond the budget dropped"
        if self.reached:
            line += f"; reached: {', '.join(sorted(self.reached))}"
        if self.missed:
            line += f"; never reached: {', '.join(self.missed)}"
        return line


def explore(
    make: Make,
    describe: Describe | Description,
    runs: int = 1000,
    explorer: Name = "portfolio",
    seed: int = 0,
    clusters: Clusters = DEFAULT_CLUSTERS,
    faults: Budget = DEFAULT_BUDGET,
    *,
    workload: Callable[[Scenario], Any] | None = None,
    first: Iterable[Scenario] = (),
    shrinks: bool = True,
) -> Campaign:
    """Explore schedules and faults of a protocol or of bare nodes, and shrink the first failure.

    Parameters
    ----------
    make : callable
        Returns a protocol, or nodes; see :class:`emuml.testing.Subject`.
    describe : callable or Description
        The oracles: a function that is given a description.
    runs : int
        How many at most.
    explorer : {"portfolio", "fifo", "random", "swarm", "sparse"}
    seed : int
        Of the explorer; protocols have seeds of their own.
    clusters : Clusters
        Ranges of workers and rounds.
    faults : Budget
        What may go wrong.
    workload : callable, optional
        Returns the problem that a protocol trains, given the scenario.
    first : iterable of Scenario
        Tried before all others, such as failures of former campaigns.
    shrinks : bool
        Whether a failure is made small.

    Raises
    ------
    OracleError
        If a predicate raised.
    UserError
        If an argument cannot be meant; nothing has run then.
    """
    check_options(make, runs, explorer, seed, clusters, faults, workload)
    description = described(describe)
    trier = Trier(Subject(make, workload), description, faults)
    campaign = Campaign()
    with prepared():
        ground = Ground(trier, clusters, seed)
        trier.check(ground.smallest())
        for proposal in chain(map(Proposal, first), _proposals(explorer, ground, runs)):
            trial = trier.run(proposal.scenario, proposal.choose)
            _count(campaign, trial)
            if trial.violation is not None:
                campaign.failure = shrink(trier, trial) if shrinks else Shrunk(trial, trial, 0)
                campaign.failure = replace(campaign.failure, found_after=campaign.runs)
                return campaign
            if campaign.runs % REPEATED == 1 and (difference := differs(trier, trial)):
                campaign.nondeterministic, campaign.difference = trial.recorded(), difference
                return campaign
    campaign.missed = [oracle.name for oracle in description.reached if oracle.name not in campaign.reached]
    return campaign


def check_options(make: Any, runs: Any, explorer: Any, seed: Any, clusters: Any, faults: Any, workload: Any) -> None:
    """Refuse arguments of :func:`explore` that cannot be meant."""
    check_campaign(make, runs, seed, clusters, faults, workload)
    check_name(explorer)


def described(describe: Describe | Description) -> Description:
    """Return what a function says of every run, or what was said already."""
    if isinstance(describe, Description):
        return describe
    check_described(describe)
    description = Description()
    describe(description)
    return description


def _proposals(name: str, ground: Ground, runs: int) -> Iterator[Proposal]:
    chosen = explorer_of(name, ground)
    for index in range(runs):
        proposal = chosen.propose(index)
        if proposal is None:
            return
        yield proposal


def _count(campaign: Campaign, trial: Trial) -> None:
    campaign.runs += 1
    campaign.reached |= trial.reached
    campaign.dropped += trial.dropped
    campaign.messages += sum(row[2] == "send" for row in trial.run.trace.rows)
    campaign.wall_s += trial.run.wall_s

"""The semantics of stragglers as assertions: the tests apply them to ours, the mutants to wrong ones."""

import numpy as np

from emuml.cluster.compute import DelayTrace
from emuml.protocols.gradient_coding import IgnoreStragglers
from tests.protocols.training import Tally, train, versions

SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")

DELAYS = np.array([[1.0, 2.0, 7.0], [3.0, 1.0, 1.0], [1.0, 4.0, 1.5]])
"""Of three workers in three rounds, of which two answers close each."""

BEGINS = {
    "cancel": [(0, 0, 0), (0, 1, 0), (0, 2, 0), (2, 0, 1), (2, 1, 1), (2, 2, 1), (3, 0, 2), (3, 1, 2), (3, 2, 2)],
    "skip-stale": [(0, 0, 0), (0, 1, 0), (0, 2, 0), (2, 0, 1), (2, 1, 1), (5, 0, 2), (5, 1, 2), (7, 2, 2)],
    "carry-over": [
        (0, 0, 0), (0, 1, 0), (0, 2, 0), (2, 0, 1), (2, 1, 1), (5, 0, 2), (5, 1, 2), (7, 2, 1), (8, 2, 2),
    ],
    "wait-all": [(0, 0, 0), (0, 1, 0), (0, 2, 0), (7, 0, 1), (7, 1, 1), (7, 2, 1), (10, 0, 2), (10, 1, 2), (10, 2, 2)],
}  # fmt: skip
"""When which worker begins which round, by hand."""

ENDS = {"cancel": [2, 3, 4.5], "skip-stale": [2, 5, 8.5], "carry-over": [2, 5, 9], "wait-all": [7, 10, 14]}
DECODED = {
    "cancel": ["0x3", "0x6", "0x5"],
    "skip-stale": ["0x3", "0x3", "0x5"],
    "carry-over": ["0x3", "0x3", "0x3"],
    "wait-all": ["0x3", "0x6", "0x5"],
}
STALE = {"cancel": [0, 0, 0], "skip-stale": [0, 0, 1], "carry-over": [0, 0, 2], "wait-all": [1, 1, 1]}
"""Answers that came too late, by the round in whose log they are."""


def emulate(delays, code, collect, stragglers, problem=None, **options):
    rounds, workers = delays.shape
    run = train(
        problem or Tally(), code, workers, rounds, collect=collect, compute=DelayTrace(delays), stragglers=stragglers,
        **options,
    )  # fmt: skip
    if run.error is not None:
        raise run.error
    return run


def ends(run):
    """Return when the rounds ended: when the parameters of the next one were sent."""
    return [item.time_s for item in run.published[1:]]


def logged(run, name):
    return [item.metrics[name] for item in run.logs if "round" in item.metrics]


def trained(problem, code, decoded):
    """Return the versions that come of these sets of groups, by a plain loop; a group's answers are equal."""
    state, parameters = problem.start(), problem.initial
    found = [parameters.tobytes()]
    for round_index, bits in enumerate(decoded):
        received = [group[0] for j, group in enumerate(code.groups) if int(bits, 16) >> j & 1]
        decoding, total = code.decode(received), None
        for worker, weight in zip(received, decoding.weights, strict=True):
            task = problem.gradient(parameters, code.assignment(worker), code.partitions, draw=round_index)
            total = weight * task.run() if total is None else total + weight * task.run()
        state, parameters = problem.step(state, parameters, total, round_index)
        found.append(parameters.tobytes())
    return found


def check_event_by_event(stragglers, **nodes):
    """Three workers and three rounds: who begins what when, when rounds end, what is decoded, what comes too late."""
    run = emulate(DELAYS, IgnoreStragglers(), 2, stragglers, **nodes)
    begins = [(row[0], int(row[1][-1]), row[4]) for row in run.trace.rows if row[2] == "begin"]
    assert sorted(begins) == BEGINS[stragglers]
    assert ends(run) == ENDS[stragglers]
    assert logged(run, "covered_set") == DECODED[stragglers]
    assert logged(run, "stale") == STALE[stragglers]


class Watched(Tally):
    """Remembers the parameters at which each round was computed."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def evaluate(self, parameters, owned, draw):
        self.seen.append((draw, parameters.tobytes()))
        return super().evaluate(parameters, owned, draw)


def check_parameters(stragglers, **nodes):
    """Parameters are those of the decode sets, and every answer, also a late one, is computed at those of its round."""
    delays = np.random.default_rng(1).exponential(1.0, (40, 6))
    code, problem = IgnoreStragglers().build(6, collect=4), Watched()
    run = emulate(
        delays, IgnoreStragglers(), 4, stragglers, problem, journal=True, **nodes
    )  # a journal needs all values
    found = versions(run)
    assert found == trained(Tally(), code, logged(run, "covered_set"))
    assert {parameters == found[draw] for draw, parameters in problem.seen} == {True}

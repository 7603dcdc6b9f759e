"""Asynchronous training on the emulator, and assertions that the tests apply to ours and to wrong ones."""

from functools import partial

import numpy as np

from emuml.cluster.cluster import Cluster, Detection, Network
from emuml.cluster.compute import DelayTrace
from emuml.cluster.faults import FaultPlan
from emuml.des.emulator import Emulator
from emuml.protocols.async_updates.server import Server
from emuml.protocols.async_updates.worker import Worker
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.task import Task


class Count:
    """A problem whose pushes are whole numbers: sums are exact in any order, and say what is in them.

    Coordinate ``p`` of the table counts the pushes of worker ``p``; the last one sums ``clock + 1`` over all pushes.
    """

    rows = full_cost = 12.0
    has_state = False

    def __init__(self, workers):
        self.initial = np.zeros(workers + 1)
        self.initial.flags.writeable = False
        self.read = []

    def partition_bounds(self, partitions):
        return np.arange(partitions + 1)

    def push(self, parameters, share, shares, draw):
        return Task(self.evaluate, (parameters, share, draw), self.full_cost / shares, parameters.shape, draw=draw)

    def evaluate(self, parameters, share, draw):
        self.read.append((share, draw, np.array(parameters)))
        value = np.zeros_like(parameters)
        value[share], value[-1] = 1.0, draw + 1.0
        return value

    def start(self):
        return ()

    def apply(self, state, parameters, push, clock):
        return (), parameters + push

    def metrics(self, parameters):
        return {}


def train(
    barrier, delays, rounds, *, problem=None, on_lost="wait", latency_s=0.0, faults=(), stop=None, seed=0,
    servers=1, server=Server, worker=Worker, **options,
):  # fmt: skip
    """Run asynchronous training on the emulator, draw by draw with these delays, and return its run and its problem."""
    workers = np.shape(delays)[1]
    problem = problem or Count(workers)
    roster = Roster.of_counts(seed, stop or Rounds(rounds), server=servers, worker=workers)
    nodes = {id: ("server", partial(server, barrier, problem, roster, on_lost)) for id in roster.of("server")}
    for id in roster.of("worker"):
        nodes[id] = ("worker", partial(worker, barrier, problem, id.index, workers))
    cluster = Cluster(
        workers=workers, compute=DelayTrace(np.asarray(delays)), network=Network(latency_s), detection=Detection(0.01)
    )
    options.setdefault("journal", True)  # a journal needs all values, so every read is seen
    plan, unit = FaultPlan(tuple(faults)), problem.full_cost / workers
    return Emulator(nodes, cluster, roster, plan, unit, **options).run(), problem


def starts(run, workers):
    """Return when each worker began each of its iterations."""
    found = {f"worker-{w}": [] for w in range(workers)}
    for time_s, node, kind, *_ in run.trace.rows:
        if kind == "begin":
            found[node].append(time_s)
    return list(found.values())


def recursion(delays, slack):
    """Return start and finish of each iteration: ``S_p(c) = max(F_p(c-1), max_q F_q(c-s-1))``."""
    rounds, workers = np.shape(delays)
    start, finish = np.zeros((rounds, workers)), np.zeros((rounds, workers))
    for c in range(rounds):
        start[c] = finish[c - 1] if c else 0.0
        if slack is not None and c - slack - 1 >= 0:
            start[c] = np.maximum(start[c], finish[c - slack - 1].max())
        finish[c] = start[c] + delays[c]
    return start, finish

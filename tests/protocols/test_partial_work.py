"""Partial work as a protocol: times of theory, each partition once whatever was sent, and workers that come back."""

import numpy as np
import pytest

import emuml.testing as et
from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan, Partition
from emuml.des.emulator import Emulator
from emuml.directory import Directory
from emuml.life import Life
from emuml.node import NodeId
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import PartialWork
from emuml.protocols.gradient_coding.messages import Parameters
from emuml.protocols.gradient_coding.partial_nodes import PartialServer, PartialWorker, Share
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.testing.probe import Probe
from emuml.theory.partial import partial_round_times
from tests.protocols.training import SERVER, regression, single_process, versions

WORKERS, ROUNDS, SEED = 6, 12, 5
LAW = ShiftedExponential(shift_s=0.1, mean_s=0.5, tail="scaled")
SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")
CODES = [
    PartialWork(1), PartialWork(2), PartialWork(4, 0.2), PartialWork(6, send="prefix"),
    PartialWork(3, placement="groups"), PartialWork(3, 0.4, "prefix", "groups"),
]  # fmt: skip


def train(code, problem, stragglers="cancel", faults=(), law=LAW, **limit):
    """Run partial work on the emulator, without an experiment."""
    roster = Roster.of_counts(SEED, Rounds(ROUNDS), server=1, worker=WORKERS)
    nodes = GradientCoding(code, stragglers=stragglers, **limit).nodes(problem, roster)
    cluster = Cluster(workers=WORKERS, compute=law)
    run = Emulator(nodes, cluster, roster, FaultPlan(tuple(faults)), problem.full_cost / WORKERS).run()
    assert run.error is None
    return run


@pytest.mark.parametrize("pure", ["0", "1"])
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize("code", CODES, ids=str)
def test_times_are_those_of_theory_bit_for_bit(code, stragglers, pure, monkeypatch):
    monkeypatch.setenv("EMUML_PURE", pure)
    run = train(code, regression(), stragglers)
    found = partial_round_times(LAW, code.build(WORKERS), ROUNDS, SEED, stragglers=stragglers, asks_who=True)

    logs = [logged.metrics for logged in run.logs if "round" in logged.metrics]
    assert [log.get("decided_s", item.time_s) for log, item in zip(logs, run.logs, strict=False)] == list(
        found.decided_s
    )
    assert [item.time_s for item in run.published[1:]] == list(found.ended_s)
    sets = [sum(1 << int(partition) for partition in np.flatnonzero(there)) for there in found.answered]
    assert [int(log["covered_set"], 16) for log in logs] == sets
    assert [log["decode_error"] for log in logs] == [WORKERS - there.sum() for there in found.answered]


def test_single_results_give_the_bits_of_uncoded_training_whoever_sent_them():
    expected = single_process(regression(), [(p,) for p in range(WORKERS)], WORKERS, ROUNDS)
    for code in (PartialWork(1), PartialWork(3), PartialWork(6), PartialWork(2, placement="groups")):
        for stragglers in SEMANTICS:
            assert versions(train(code, regression(), stragglers)) == expected


@pytest.mark.parametrize("code", CODES, ids=str)
def test_each_partition_enters_once(code):
    """On a problem whose sums are exact, messages of both kinds give the sum of the logged partitions bit for bit."""
    problem = Probe(WORKERS)
    run = train(code, problem)

    state, parameters = problem.start(), problem.initial
    for round, (logged, item) in enumerate(zip(run.logs, run.published[1:], strict=True)):
        bits = int(logged.metrics["covered_set"], 16)
        owned = tuple(partition for partition in range(WORKERS) if bits >> partition & 1)
        assert len(owned) >= code.build(WORKERS).needed
        total = problem.gradient(parameters, owned, WORKERS, draw=round).run()
        state, parameters = problem.step(state, parameters, total, round)
        assert item.parameters.tobytes() == parameters.tobytes()


def test_terms_are_the_partitions_that_are_there_each_once():
    """Whatever prefixes there are: expanded into partitions, weights add up to one where there is a message."""
    random = np.random.default_rng(1)
    for _ in range(300):
        declared = PartialWork(int(random.integers(1, 7)), send=str(random.choice(["each", "prefix"])))
        code = declared.build(6)
        sent = {worker: int(random.integers(0, declared.replication + 1)) for worker in range(6)}
        total = np.zeros(6)
        for worker, position, weight in code.terms(sent):
            assert position < sent[worker]
            first = 0 if declared.send == "prefix" else position
            total[list(code.order(worker)[first : position + 1])] += weight
        there = {partition for worker in sent for partition in code.order(worker)[: sent[worker]]}
        assert total.tolist() == [float(partition in there) for partition in range(6)]


def test_a_prefix_is_the_sum_of_what_was_sent_before():
    """Message by message, on the same delays: prefix j is the sum of the first j single results, in that order."""
    shown = {}
    for send in ("each", "prefix"):
        code = PartialWork(4, send=send).build(WORKERS)
        life = Life(PartialWorker(code, regression(), 2), NodeId("worker", 2), 1, directory())
        shown[send] = [np.asarray(share.value) for share in shares_of(life)]
    total = shown["each"][0]
    for single, prefix in zip(shown["each"][1:], shown["prefix"][1:], strict=True):
        total = total + single
        assert prefix.tobytes() == total.tobytes()


def directory():
    roster = Roster.of_counts(0, Rounds(9), server=1, worker=WORKERS)
    return Directory(roster, {"server": PartialServer.talks_to, "worker": PartialWorker.talks_to})


def shares_of(life):
    """Return what a worker says when it is asked for round 0, each task run at once."""
    effects = [*life.handle(fx.Started(Saved()), 0.0)]
    effects += life.handle(fx.Received(SERVER, Parameters(1, 0, np.zeros(4))), 0.0)
    found = []
    while effects:
        effect = effects.pop(0)
        if isinstance(effect, fx.Compute):
            effects += life.handle(fx.Computed(effect.tag, effect.task.run(), effect.generation), 0.0)
        elif isinstance(effect, fx.Send):
            found.append(effect.message)
    return found


class ByHand:
    """A server that is handed the shares that a test thinks of; those of partition ``i`` are ``[2 ** i]``."""

    def __init__(self, declared):
        self.code = declared.build(3)
        problem = Probe(3)
        roster = Roster.of_counts(0, Rounds(9), server=1, worker=3)
        places = Directory(roster, {"server": PartialServer.talks_to, "worker": PartialWorker.talks_to})
        self.node = PartialServer(self.code, problem, roster)
        self.steps = []
        self.node.take = lambda ctx, answers: self.steps.append(self.decoded(answers))
        self.life = Life(self.node, SERVER, 1, places)
        self.life.handle(fx.Started(Saved()), 0.0)

    def decoded(self, answers):
        decoding = self.node.decode(answers)
        return self.code.combine(answers, decoding).tolist(), decoding.error

    def share(self, worker, position, round=0, life=1):
        value = np.array([2.0 ** self.code.order(worker)[position]])
        self.life.handle(fx.Received(NodeId("worker", worker), Share(life, round, position, value)), 0.0)


def test_repeated_and_stale_shares_change_nothing():
    hand = ByHand(PartialWork(2))
    for _ in range(2):
        hand.share(0, 0)
    hand.share(1, 1, round=1)
    hand.share(2, 0, life=2)
    hand.share(2, 1)  # it comes before the first of its worker: that is said again
    assert hand.steps == []
    hand.share(2, 0)
    hand.share(2, 1)
    hand.share(0, 1)
    assert hand.steps == [([7.0], 0.0)]


@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize("code", [PartialWork(2), PartialWork(3, 0.3, "prefix")], ids=str)
def test_a_worker_that_crashes_or_is_cut_off_is_asked_again(code, stragglers):
    for faults in (
        [Crash("worker-2", at_s=1.05, restart_after_s=0.5)], [Crash("worker-2", at_s=1.05)],
        [Partition(("worker-2",), ("server-0",), 20.0, at_s=1.05)],
    ):  # fmt: skip
        run = train(code, Probe(WORKERS), stragglers, faults)
        logs = [logged.metrics for logged in run.logs if "round" in logged.metrics]
        assert len(logs) == ROUNDS
        assert all(log["covered"] >= code.build(WORKERS).needed for log in logs)


@pytest.mark.parametrize(
    ("limit", "at_s", "there"), [({"deadline_s": 2.5}, 2.5, 0b11), ({"first_times": 2.0}, 2.0, 0b1)]
)
def test_a_deadline_closes_a_round_with_the_shares_that_are_there(limit, at_s, there):
    """First shares come at 1, 2, ..., and those of one instant with the deadline do not count."""
    law = DelayTrace(np.tile(2.0 * np.arange(1.0, 7.0), (ROUNDS, 1)))
    run = train(PartialWork(2), Probe(WORKERS), law=law, **limit)

    assert [logged.time_s for logged in run.logs] == [at_s * (round + 1) for round in range(ROUNDS)]
    assert {int(logged.metrics["covered_set"], 16) for logged in run.logs} == {there}
    assert {logged.metrics["decode_error"] for logged in run.logs} == {WORKERS - there.bit_count()}


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_explorers_find_nothing(stragglers):
    for code in (PartialWork(2), PartialWork(2, 0.4, "prefix")):
        protocol = GradientCoding(code, stragglers=stragglers)
        found = et.explore(lambda protocol=protocol: protocol, et.shipped(protocol), runs=60)
        assert found.ok, found.failure.trial.report()

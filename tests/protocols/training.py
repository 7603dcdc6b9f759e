"""Gradient coding on the emulator or by hand, and assertions that the tests apply to ours and to mutants."""

from collections import Counter, deque
from functools import partial

import numpy as np

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.deadlines import NO_DEADLINE
from emuml.des.emulator import Emulator
from emuml.directory import Directory
from emuml.life import Life
from emuml.node import NodeId
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.task import Task
from emuml.workloads.optimizers import AcceleratedGradientDescent
from emuml.workloads.problem import RegressionProblem

SERVER = NodeId("server", 0)


class Tally:
    """A problem whose gradients are cheap, differ by partition, round and parameters, and are counted."""

    rows = 60
    full_cost = 60.0

    def __init__(self, columns=3):
        self.initial = np.linspace(0.1, 0.9, columns)
        self.initial.flags.writeable = False
        self.calls = Counter()

    def partition_bounds(self, partitions):
        return np.arange(partitions + 1)

    def gradient(self, parameters, owned, partitions, coefficients=None, draw=None):
        cost = self.full_cost * len(owned) / partitions
        return Task(self.evaluate, (parameters, owned, draw), cost, parameters.shape, draw=draw)

    def evaluate(self, parameters, owned, draw):
        self.calls[draw, owned] += 1
        total = np.zeros_like(parameters)
        for partition in owned:
            total = total + np.sin(parameters * (partition + 1) + draw) / 3
        return total

    def start(self):
        return None

    def step(self, state, parameters, gradient, round):
        return None, parameters - gradient / self.rows

    def metrics(self, parameters):
        return {}


def regression(rows=90, columns=4, seed=5, optimizer=None, batch=None):
    """Return a small logistic regression."""
    draws = np.random.default_rng(seed)
    X, y = draws.normal(size=(rows, columns)), np.where(draws.random(rows) < 0.5, -1.0, 1.0)
    none = np.zeros((0, columns)), np.zeros(0)
    optimizer = optimizer or AcceleratedGradientDescent(rate=0.5)
    return RegressionProblem("logistic", X, y, *none, np.zeros(columns), optimizer, l2=0.01, batch=batch, chunk_rows=8)


def train(
    problem, code, workers, rounds, *, collect=None, compute=None, latency_s=0.0, faults=(), seed=0, stop=None,
    server=Server, worker=Worker, stragglers="cancel", deadline=NO_DEADLINE, **options,
):  # fmt: skip
    """Run gradient coding on the emulator and return its run."""
    built = code.build(workers, collect=collect)
    roster = Roster.of_counts(seed, stop or Rounds(rounds), server=1, worker=workers)
    nodes = {SERVER: ("server", partial(server, built, problem, roster, stragglers, deadline))}
    nodes |= {id: ("worker", partial(worker, built, problem, id.index, stragglers)) for id in roster.of("worker")}
    cluster = Cluster(workers=workers, compute=compute or Constant(1), network=Network(latency_s))
    plan = FaultPlan(tuple(faults))
    return Emulator(nodes, cluster, roster, plan, problem.full_cost / workers, **options).run()


def versions(run):
    """Return the bytes of every published version, in order."""
    return [item.parameters.tobytes() for item in run.published]


def single_process(problem, blocks, partitions, rounds):
    """Return what a plain loop trains: each round the sums of blocks of partitions, added in order."""
    state, parameters = problem.start(), problem.initial
    found = [parameters.tobytes()]
    for round_index in range(rounds):
        total = None
        for owned in blocks:
            part = problem.gradient(parameters, owned, partitions, draw=round_index).run()
            total = part if total is None else total + part
        state, parameters = problem.step(state, parameters, total, round_index)
        found.append(parameters.tobytes())
    return found


# Reference from the trace: who answered which round, and what must come of it


def decoded_rounds(run, code):
    """Yield the workers whose answers each round must be made of, read from a trace without crashes.

    On FIFO links the k-th answer of a worker belongs to the question that it had received last.
    """
    asked, on_the_way = Counter(), {}
    opened, arrived, tracker = 0, [], code.stop_rule().tracker()
    for _, node, kind, *details in run.trace.rows:
        if kind == "receive" and details[1] == "Parameters":
            asked[node] += 1
        elif kind == "send" and details[1] == "Gradient":
            on_the_way.setdefault(node, deque()).append(asked[node] - 1)
        elif kind == "receive" and details[1] == "Gradient":
            worker, of = NodeId.parse(details[0]).index, on_the_way[details[0]].popleft()
            if of == opened and worker not in arrived:
                arrived.append(worker)
                if tracker.arrived(worker):
                    yield sorted(arrived)
                    opened, arrived, tracker = opened + 1, [], code.stop_rule().tracker()


def check_reference(run, problem, code):
    """Every round is decoded from the first answers to it that suffice, added in the order of workers."""
    assert run.error is None
    state, parameters = problem.start(), problem.initial
    rounds = list(decoded_rounds(run, code))
    logs = [logged.metrics for logged in run.logs]
    assert [len(received) for received in rounds] == [log["arrivals"] for log in logs]
    for round_index, received in enumerate(rounds):
        assert run.published[round_index].parameters.tobytes() == parameters.tobytes()
        decoding, total = code.decode(received), None
        for worker, weight in zip(received, decoding.weights, strict=True):
            if weight:
                owned = code.assignment(worker)
                part = weight * problem.gradient(parameters, owned, code.partitions, draw=round_index).run()
                total = part if total is None else total + part
        assert logs[round_index]["decode_error"] == decoding.error
        assert logs[round_index]["covered"] == len(decoding.covered)
        state, parameters = problem.step(state, parameters, total, round_index)
    assert run.published[len(rounds)].parameters.tobytes() == parameters.tobytes()
    assert len(run.published) == len(rounds) + 1


def check_approximate_training(server=Server, worker=Worker):
    """Codes that are stopped early follow the reference while stragglers' answers are still on the way."""
    for code, collect in [
        (IgnoreStragglers(), 3), (FractionalRepetition(2, "covered"), 4), (FractionalRepetition(3), 2),
        (Uncoded(), None),
    ]:  # fmt: skip
        problem = Tally()
        law = ShiftedExponential(0.1, 0.4)
        run = train(problem, code, 6, 40, collect=collect, compute=law, latency_s=0.3, server=server, worker=worker)
        check_reference(run, Tally(), code.build(6, collect=collect))
        assert len(run.logs) == 40


def check_exact_training(server=Server, worker=Worker):
    """Uncoded and exact repetition equal a single process bit for bit, whatever the delays."""
    for code, blocks in [
        (Uncoded(), [(p,) for p in range(6)]), (FractionalRepetition(2), [(0, 1), (2, 3), (4, 5)]),
        (FractionalRepetition(3), [(0, 1, 2), (3, 4, 5)]),
    ]:  # fmt: skip
        expected = single_process(regression(), blocks, 6, 12)
        for seed in range(3):
            run = train(
                regression(), code, 6, 12, compute=ShiftedExponential(0.1, 0.5), seed=seed, server=server, worker=worker
            )
            assert versions(run) == expected
            assert {log.metrics["decode_error"] for log in run.logs} == {0.0}


def check_arrivals_permuted(server=Server, worker=Worker):
    """The order of arrival moves no bit, of exact and of approximate codes."""
    draws = np.random.default_rng(2)
    base = np.arange(1.0, 7.0)
    for code, collect in [(Uncoded(), None), (FractionalRepetition(2, "covered"), 6)]:
        found = set()
        for _ in range(4):
            delays = np.array([draws.permutation(base) for _ in range(5)])
            run = train(
                regression(), code, 6, 5, collect=collect, compute=DelayTrace(delays), server=server, worker=worker
            )
            assert run.error is None
            found.add(versions(run)[-1])
        assert len(found) == 1


def check_a_restarted_worker_is_asked(server=Server, worker=Worker):
    """A worker that comes back before the others are done answers the open round; nothing is lost or waits for ever."""
    faults = [Crash("worker-2", at_s=2.5, restart_after_s=0.1)]
    run = train(Tally(), Uncoded(), 4, 6, compute=Constant(1), faults=faults, server=server, worker=worker)
    assert run.error is None
    assert [log.metrics["decode_error"] for log in run.logs] == [0.0] * 6
    assert run.duration_s == 6.6


# By hand: a server that is handed whatever a test thinks of


class Server1:
    """One life of a server whose events a test makes up."""

    def __init__(self, code, problem, rounds=1000, server=Server, life=1):
        self.code = code
        roster = Roster.of_counts(0, Rounds(rounds), server=1, worker=code.workers)
        directory = Directory(roster, {"server": server.talks_to, "worker": Worker.talks_to})
        self.life = Life(server(code, problem, roster), SERVER, life, directory)
        self.asked, self.logs, self.published, self.stopped = [], [], [], None
        self.hand(fx.Started(Saved()))

    def hand(self, event):
        for effect in self.life.handle(event, 0.0):
            match effect:
                case fx.Broadcast(to, message):
                    self.asked += [(peer.index, message) for peer in to]
                case fx.Send(to, message):
                    self.asked.append((to.index, message))
                case fx.Log(metrics):
                    self.logs.append(metrics)
                case fx.Publish(_, parameters):
                    self.published.append(parameters)
                case fx.Stop(reason):
                    self.stopped = reason

    def answer(self, worker, value, round=None, life=None):
        """Hand over an answer, by default to the open round."""
        life = self.life.incarnation if life is None else life
        round = len(self.logs) if round is None else round
        self.hand(fx.Received(NodeId("worker", worker), Gradient(life, round, np.array(value))))

    def peer(self, worker, state):
        self.hand(fx.PeerChanged(NodeId("worker", worker), state))


def check_only_the_open_round_counts(server=Server):
    """Answers to closed rounds, to later ones, or to a former life change nothing."""
    problem = Tally(columns=1)
    hand = Server1(IgnoreStragglers("none").build(3, collect=2), problem, server=server, life=2)
    hand.answer(0, [1.0])
    hand.answer(1, [2.0])
    assert len(hand.logs) == 1
    for round, life in [(0, 2), (2, 2), (1, 1), (0, 1), (1, 3)]:
        hand.answer(0, [100.0], round, life)
        hand.answer(2, [100.0], round, life)
    assert len(hand.logs) == 1
    hand.answer(2, [3.0])
    hand.answer(1, [4.0])
    assert len(hand.logs) == 2
    assert hand.published[-1] == problem.initial - 3.0 / 60 - 7.0 / 60


def check_repeats_count_once(server=Server):
    """An answer that comes twice is one answer, and its first value stands."""
    problem = Tally(columns=1)
    hand = Server1(IgnoreStragglers("none").build(4, collect=3), problem, server=server)
    for worker, value in [(2, 1.0), (2, 100.0), (2, 1.0), (0, 2.0), (0, 2.0)]:
        hand.answer(worker, [value])
        assert hand.logs == []
    hand.answer(3, [4.0])
    assert [log["arrivals"] for log in hand.logs] == [3]
    assert hand.published[-1] == problem.initial - 7.0 / 60


def question(life, round, value):
    return Parameters(life, round, np.array(value))

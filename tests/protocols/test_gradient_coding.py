"""Gradient coding on the emulator: exact where it must be, the reference elsewhere, and what crashes cost."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster.compute import Constant, DelayTrace, ErasureHeadDelays, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.directory import Directory
from emuml.errors import Deadlock, UserError
from emuml.life import Life
from emuml.names import load
from emuml.node import NodeId, PeerState
from emuml.protocol import Outcome, TrainingProtocol
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.messages import Gradient
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from emuml.roster import Roster
from emuml.stopping import Rounds, Seconds, Updates
from emuml.theory import expected_round_time, round_time_variance
from emuml.workloads.optimizers import GradientDescent
from tests.protocols.code_checks import ERASUREHEAD_MEANS, erasurehead_trace
from tests.protocols.training import (
    SERVER,
    Server1,
    Tally,
    check_a_restarted_worker_is_asked,
    check_approximate_training,
    check_arrivals_permuted,
    check_exact_training,
    check_only_the_open_round_counts,
    check_reference,
    check_repeats_count_once,
    question,
    regression,
    single_process,
    train,
    versions,
)

LAW = ShiftedExponential(0.1, 0.5)


@pytest.fixture(autouse=True)
def _lazy(monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "0")


# Equality


@pytest.mark.slow
def test_exact_codes_equal_a_single_process_bit_for_bit():
    check_exact_training()


@pytest.mark.parametrize("optimizer", [GradientDescent(0.3), None], ids=["plain", "accelerated"])
@pytest.mark.parametrize("batch", [None, 3])
def test_minibatches_and_optimizers_too(optimizer, batch):
    code, blocks = FractionalRepetition(2), [(0,), (1,)]
    run = train(regression(optimizer=optimizer, batch=batch), code, 5, 8, compute=LAW)

    assert versions(run) == single_process(regression(optimizer=optimizer, batch=batch), blocks, 2, 8)


def test_exact_codes_of_different_replication_agree_up_to_rounding():
    codes = [Uncoded(), FractionalRepetition(2), FractionalRepetition(3), FractionalRepetition(6)]
    finals = [train(regression(), code, 6, 30, compute=LAW).published[-1].parameters for code in codes]

    assert all(np.allclose(finals[0], other, rtol=1e-12, atol=0) for other in finals[1:])


@pytest.mark.slow
def test_codes_that_stop_early_are_decoded_from_the_answers_of_their_round():
    check_approximate_training()


def test_the_order_of_arrival_moves_no_bit():
    check_arrivals_permuted()


delays = st.integers(2, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(1, 6), min_size=n, max_size=n), min_size=1, max_size=6)
)


@st.composite
def cases(draw):
    table = np.array(draw(delays), float)
    workers = table.shape[1]
    replication = draw(st.integers(1, workers))
    collect = draw(st.none() | st.integers(1, workers))
    return table, FractionalRepetition(replication, draw(st.sampled_from(["none", "covered"]))), collect


@pytest.mark.slow
@given(cases(), st.sampled_from([0.0, 0.25, 2.5]))
def test_any_delays_follow_the_reference(case, latency_s):
    table, code, collect = case
    rounds, workers = table.shape
    run = train(Tally(), code, workers, rounds, collect=collect, compute=DelayTrace(table), latency_s=latency_s)

    check_reference(run, Tally(), code.build(workers, collect=collect))


# What is computed


def evaluated(code, workers, rounds, collect=None):
    problem = Tally()
    run = train(problem, code, workers, rounds, collect=collect, compute=LAW)
    return problem.calls, [log.metrics for log in run.logs]


@pytest.mark.parametrize("eager", ["0", "1"])
@pytest.mark.parametrize("replication", [1, 2, 3, 6])
def test_replicas_are_computed_once_a_round(monkeypatch, replication, eager):
    monkeypatch.setenv("EMUML_EAGER", eager)
    calls, _ = evaluated(FractionalRepetition(replication), 12, 9)
    groups = [tuple(range(r * replication, (r + 1) * replication)) for r in range(12 // replication)]

    assert calls == dict.fromkeys([(round, owned) for round in range(9) for owned in groups], 1)


@pytest.mark.parametrize("collect", [1, 5, 11])
def test_k_of_n_computes_k_gradients_a_round(collect):
    calls, _ = evaluated(IgnoreStragglers(), 12, 9, collect)

    assert set(calls.values()) == {1}
    assert [sum(draw == round for draw, _ in calls) for round in range(9)] == [collect] * 9


def test_codes_stopped_early_compute_what_they_cover():
    calls, logs = evaluated(FractionalRepetition(3), 12, 40, 4)

    assert set(calls.values()) == {1}
    assert [sum(draw == round for draw, _ in calls) for round in range(40)] == [log["covered"] for log in logs]
    assert len({log["covered"] for log in logs}) > 1


def test_eager_evaluation_computes_what_ended_and_changes_nothing(monkeypatch):
    lazy = train(Tally(), IgnoreStragglers(), 12, 9, collect=4, compute=LAW)
    monkeypatch.setenv("EMUML_EAGER", "1")
    problem = Tally()
    eager = train(problem, IgnoreStragglers(), 12, 9, collect=4, compute=LAW)

    assert versions(eager) == versions(lazy)
    assert eager.trace.digest() == lazy.trace.digest()
    assert sum(problem.calls.values()) == len(eager.trace.of("computed"))


# Times


def close_s(code, workers, delays, collect):
    """Return when a round closes: from sorted delays, without tracker or stop rule."""
    replication = code.replication if isinstance(code, FractionalRepetition) else 1
    groups = workers // replication
    sizes = [workers // groups + (j < workers % groups) for j in range(groups)]
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    covered = max(delays[a:b].min() for a, b in pairwise(bounds))
    return min(covered, np.sort(delays)[(collect or workers) - 1])


@pytest.mark.slow
@pytest.mark.parametrize(("replication", "collect"), ERASUREHEAD_MEANS)
def test_the_delays_of_the_original_program_give_its_mean_round_times(replication, collect):
    code = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    run = train(Tally(1), code, 30, 100, collect=collect, compute=ErasureHeadDelays())

    exact = np.mean([close_s(code, 30, row, collect) for row in erasurehead_trace()])
    assert run.duration_s / 100 == pytest.approx(exact, abs=1e-9)
    assert run.duration_s / 100 == pytest.approx(ERASUREHEAD_MEANS[replication, collect], abs=1e-6)


@pytest.mark.slow
@given(cases())
def test_rounds_close_when_sorted_delays_say_so(case):
    table, code, collect = case
    rounds, workers = table.shape
    run = train(Tally(1), code, workers, rounds, collect=collect, compute=DelayTrace(table / 7))

    expected = np.cumsum([close_s(code, workers, row, collect) for row in table / 7])
    assert [log.time_s for log in run.logs] == pytest.approx(expected.tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("code", "collect", "load"),
    [(Uncoded(), None, 1.0), (IgnoreStragglers(), 3, 1.0), (FractionalRepetition(3), None, 3.0),
     (FractionalRepetition(2), 2, 2.0), (FractionalRepetition(4), None, 6.0)],
)  # fmt: skip
def test_constant_delays_give_exact_times(code, collect, load):
    run = train(Tally(), code, 6, 8, collect=collect, compute=Constant(0.25))

    assert run.duration_s == 8 * load * 0.25


def test_messages_add_two_latencies_a_round():
    assert train(Tally(), Uncoded(), 3, 4, compute=Constant(0.25), latency_s=0.125).duration_s == 4 * 0.5


ROUNDS = {30: 300, 100: 150, 1000: 20}
CODES = [
    (Uncoded(), lambda n: None), (IgnoreStragglers(), lambda n: n // 2), (FractionalRepetition(5), lambda n: None),
    (FractionalRepetition(3), lambda n: n // 2),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["fixed", "scaled"])
@pytest.mark.parametrize("workers", ROUNDS)
@pytest.mark.parametrize(("code", "count"), CODES, ids=["uncoded", "k-of-n", "repetition", "approximate"])
def test_mean_round_times_meet_the_closed_forms(code, count, workers, tail):
    law, collect, rounds = ShiftedExponential(0.05, 0.5, tail), count(workers), ROUNDS[workers]
    seed = 1 if tail == "fixed" else 2
    run = train(Tally(1), code, workers, rounds, collect=collect, compute=law, seed=seed)

    mean, variance = (of(code, workers, law, collect) for of in (expected_round_time, round_time_variance))
    assert abs(run.duration_s / rounds - mean) <= 3 * np.sqrt(variance / rounds)


# Crashes


def clean(code, workers=6, rounds=10):
    return versions(train(Tally(), code, workers, rounds, compute=LAW))


PLANS = {
    "one by the clock": [Crash("worker-1", at_s=1.0, restart_after_s=0.5)],
    "two of different groups for good": [Crash("worker-0", at_s=0.5), Crash("worker-3", at_s=1.5)],
    "one by the count and back by the count": [Crash("worker-4", after=("round", 3), restart_after=("round", 6))],
    "again and again": [Crash("worker-5", at_s=0.4 * n, restart_after_s=0.2) for n in range(1, 12)],
    "one of each group at once": [Crash(f"worker-{w}", after=("round", 2), restart_after_s=3.0) for w in (0, 2, 4)],
}


@pytest.mark.parametrize("plan", PLANS)
def test_repetition_is_exact_while_each_group_lives(plan):
    run = train(Tally(), FractionalRepetition(2), 6, 10, compute=LAW, faults=PLANS[plan])

    assert run.error is None
    assert versions(run) == clean(FractionalRepetition(2))
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}
    assert run.logs[-1].metrics["lost_rounds"] == 0
    assert len(run.ends) >= 1


def test_a_group_that_lost_everybody_is_missed_and_said():
    faults = [Crash("worker-0", after=("round", 4)), Crash("worker-1", after=("round", 4))]
    run = train(Tally(), FractionalRepetition(2), 6, 8, compute=LAW, faults=faults)
    logs = [log.metrics for log in run.logs]

    assert [log["decode_error"] for log in logs] == [0.0] * 4 + [2.0] * 4
    assert [log["covered"] for log in logs] == [3] * 4 + [2] * 4
    assert [log["lost_rounds"] for log in logs] == [0] * 4 + [1, 2, 3, 4]
    assert [log["down"] for log in logs] == [0] * 4 + [2] * 4
    assert versions(run)[:5] == clean(FractionalRepetition(2))[:5]


def test_uncoded_goes_on_without_a_lost_worker_and_says_what_it_missed():
    run = train(Tally(), Uncoded(), 4, 6, faults=[Crash("worker-2", at_s=2.5)])
    logs = [log.metrics for log in run.logs]

    assert (run.error, run.stopped) == (None, "6 rounds done")
    assert [log["arrivals"] for log in logs] == [4, 4, 3, 3, 3, 3]
    assert [log["decode_error"] for log in logs] == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert [(log["covered"], log["groups"]) for log in logs] == [(4, 4)] * 2 + [(3, 4)] * 4
    # The rest is waited for, then nobody is missed who lives.
    assert [log.time_s for log in run.logs] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_loss_that_is_noticed_after_the_others_answered_closes_the_round():
    run = train(Tally(), Uncoded(), 3, 2, compute=DelayTrace(np.array([[1.0, 9.0, 2.0]] * 2)),
                faults=[Crash("worker-1", at_s=5.0)])  # fmt: skip

    assert [log.time_s for log in run.logs] == [5.01, 7.01]
    assert [log.metrics["lost_rounds"] for log in run.logs] == [1, 2]


def test_a_worker_that_comes_back_answers_the_open_round():
    check_a_restarted_worker_is_asked()


def test_a_round_without_anybody_waits_for_whoever_comes_back():
    faults = [Crash(f"worker-{w}", at_s=0.5, restart_after_s=4.0 + 3 * w) for w in range(3)]
    run = train(Tally(), Uncoded(), 3, 2, faults=faults)

    assert run.error is None
    assert [log.time_s for log in run.logs] == [5.5, 6.5]
    assert [log.metrics["arrivals"] for log in run.logs] == [1, 1]


def test_when_nobody_comes_back_the_report_says_who_is_missing():
    faults = [Crash(f"worker-{w}", at_s=0.5) for w in range(3)]
    run = train(Tally(), Uncoded(), 3, 2, faults=faults)

    assert isinstance(run.error, Deadlock)
    assert "waiting for answers of round 1 from worker-0 (down), worker-1 (down), worker-2 (down)" in run.error.report


def test_a_restarted_server_trains_from_scratch_in_a_new_life():
    problem = regression()
    faults = [Crash("server-0", after=("round", 4), restart_after_s=1.0)]
    run = train(problem, Uncoded(), 6, 10, compute=LAW, latency_s=0.2, faults=faults)
    expected = single_process(regression(), [(p,) for p in range(6)], 6, 10)

    assert run.error is None
    assert [item.version for item in run.published] == [*range(4), *range(11)]
    assert versions(run)[4:] == expected
    assert [log.metrics["round"] for log in run.logs] == [1, 2, 3, 4, *range(1, 11)]


def test_work_for_a_former_life_is_dropped_when_the_new_one_asks():
    """Each worker is busy for the former life when the new one comes, and must begin again."""
    faults = [Crash("server-0", at_s=0.5, restart_after_s=0.25)]
    run = train(Tally(), Uncoded(), 3, 2, compute=Constant(1), latency_s=0.125, faults=faults)

    # Restart at 0.75, connected at 0.875, asked at 1, answered at 2.125; then a round of 1.25.
    assert [log.time_s for log in run.logs] == [2.125, 3.375]
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}


def test_answers_to_a_former_life_do_not_count_in_the_new_one():
    """A worker ends its work for the former life when the link is up again and the new question is on its way."""
    faults = [Crash("server-0", at_s=0.5, restart_after_s=0.25)]
    law = DelayTrace(np.array([[0.8125, 2.0, 2.0], [1.0, 1.0, 1.0]]))
    run = train(Tally(), IgnoreStragglers(), 3, 2, collect=2, compute=law, latency_s=0.125, faults=faults)

    answers = [(row.time_s, row.details["peer"]) for row in run.trace.of("receive") if row.node == "server-0"]
    assert answers[0] == (0.125 + 0.8125 + 0.125, "worker-0")
    assert run.logs[0].time_s == 1.0 + 2.0 + 0.125


crash_times = st.integers(1, 60).map(lambda n: n / 16)
worker_crashes = st.builds(
    lambda w, at_s, back: Crash(f"worker-{w}", at_s=at_s, restart_after_s=back),
    st.integers(0, 5),
    crash_times,
    crash_times,
)


@pytest.mark.slow
@given(st.lists(worker_crashes, max_size=8), st.integers(0, 3))
def test_any_crashes_of_workers_leave_a_group_code_exact_or_say_so(faults, seed):
    run = train(Tally(), FractionalRepetition(3), 6, 8, compute=LAW, faults=faults, seed=seed, latency_s=0.05)

    assert run.error is None
    assert len(run.logs) == 8
    missed = [log.metrics["decode_error"] for log in run.logs]
    if not any(missed):
        assert versions(run) == clean(FractionalRepetition(3), rounds=8)
    for log in run.logs:
        assert log.metrics["decode_error"] == 3.0 * (2 - log.metrics["covered"])


# The server by hand


def test_only_answers_to_the_open_round_count():
    check_only_the_open_round_counts()


def test_an_answer_that_comes_twice_counts_once():
    check_repeats_count_once()


values = st.floats(-8, 8).map(lambda x: round(x, 3))
noise = st.tuples(st.integers(0, 5), st.sampled_from([-1, 0, 1]), st.sampled_from([1, 2]), values)


@given(st.lists(noise, max_size=60), st.sampled_from([None, 3, 5]))
def test_repeated_and_stale_answers_change_nothing(events, collect):
    """Values depend on group, round and life, as those of replicas do; repeats and strangers bring others."""
    problem, code = Tally(1), FractionalRepetition(2, "covered").build(6, collect=collect)
    hand, parameters = Server1(code, problem, life=2), problem.initial
    arrived, opened = {}, 0
    for worker, ahead, life, value in events:
        hand.answer(worker, [value], max(opened + ahead, 0), life)
        if life == 2 and max(opened + ahead, 0) == opened and worker not in arrived:
            arrived[worker] = value
            covered = {w // 2 for w in arrived}
            if len(covered) == 3 or len(arrived) == collect:
                scale = 3 / len(covered)
                parts = [scale * arrived[min(w for w in arrived if w // 2 == g)] for g in sorted(covered)]
                parameters = parameters - sum(parts[1:], parts[0]) / 60
                arrived, opened = {}, opened + 1
        assert len(hand.logs) == opened
        assert hand.published[-1].tobytes() == parameters.tobytes()


def test_each_round_asks_everybody_once_with_life_round_and_parameters():
    hand = Server1(Uncoded().build(2), Tally(1), life=3)
    hand.answer(1, [1.0])
    hand.answer(0, [1.0])

    assert [(worker, message.life, message.round) for worker, message in hand.asked] == [
        (0, 3, 0), (1, 3, 0), (0, 3, 1), (1, 3, 1),
    ]  # fmt: skip
    assert hand.asked[0][1].value.tolist() == hand.published[0].tolist()
    assert hand.asked[3][1].value.tolist() == hand.published[1].tolist()


def test_a_round_is_logged_before_its_parameters_are_published_and_the_next_is_asked():
    hand, order = Server1(Uncoded().build(1), Tally(1), rounds=2), []
    for round_index in range(2):
        answer = Gradient(1, round_index, np.array([1.0]))
        effects = hand.life.handle(fx.Received(NodeId("worker", 0), answer), 0.0)
        order.append([type(effect).__name__ for effect in effects])

    assert order == [["Log", "Publish", "Broadcast"], ["Log", "Publish", "Stop"]]


def test_a_round_that_nobody_alive_can_add_to_closes_with_what_is_there():
    hand = Server1(FractionalRepetition(2).build(6), Tally(1))
    hand.answer(0, [1.0])
    hand.answer(5, [2.0])
    hand.peer(2, PeerState.SUSPECT)
    for worker in (1, 2, 3):
        hand.peer(worker, PeerState.DOWN)
        assert hand.logs == []
    hand.peer(4, PeerState.DOWN)

    assert [(log["arrivals"], log["covered"], log["down"], log["lost_rounds"]) for log in hand.logs] == [(2, 2, 4, 1)]


@pytest.mark.parametrize("state", [PeerState.UP, PeerState.RESTARTED])
def test_whoever_is_back_and_has_not_answered_is_asked_again(state):
    hand = Server1(Uncoded().build(3), Tally(1))
    hand.answer(1, [1.0])
    asked = len(hand.asked)
    for worker in (0, 1):
        hand.peer(worker, PeerState.DOWN)
        hand.peer(worker, state)

    assert [(worker, message.round) for worker, message in hand.asked[asked:]] == [(0, 0)]


def test_stops_at_rounds_updates_or_seconds():
    for stop, rounds in [(Rounds(3), 3), (Updates(4), 4), (Seconds(2.5), 3), (Rounds(9) | Seconds(2.0), 2)]:
        run = train(Tally(), Uncoded(), 3, None, stop=stop)
        assert (len(run.logs), run.stopped) == (rounds, f"{rounds} rounds done")


# The worker by hand


class Worker1:
    """One life of a worker that is handed questions and results."""

    def __init__(self, code, problem, index=0):
        roster = Roster.of_counts(server=1, worker=code.workers)
        directory = Directory(roster, {"server": Server.talks_to, "worker": Worker.talks_to})
        self.life = Life(Worker(code, problem, index), NodeId("worker", index), 1, directory)
        self.hand(fx.Started(Saved()))

    def hand(self, event):
        return self.life.handle(event, 0.0)

    def ask(self, life, round):
        return self.hand(fx.Received(SERVER, question(life, round, [0.5])))

    def finish(self, effect):
        event = fx.Computed(effect.tag, effect.task.run(), effect.generation)
        return self.hand(event) if self.life.is_current(event) else None


def test_a_newer_question_cancels_the_older_one():
    worker = Worker1(Uncoded().build(2), Tally(1))
    (first,) = worker.ask(1, 0)
    cancel, second = worker.ask(1, 1)

    assert cancel.generation == first.generation
    assert worker.finish(first) is None
    (answer,) = worker.finish(second)
    assert (answer.to, answer.message.life, answer.message.round) == (SERVER, 1, 1)


def test_a_new_life_of_the_server_is_newer_whatever_its_round():
    worker = Worker1(Uncoded().build(2), Tally(1))
    worker.ask(1, 7)
    _, second = worker.ask(2, 0)
    assert worker.ask(1, 8) == []
    (answer,) = worker.finish(second)

    assert (answer.message.life, answer.message.round) == (2, 0)


def test_a_question_asked_again_is_answered_again_and_computed_once():
    worker = Worker1(Uncoded().build(2), Tally(1))
    (begun,) = worker.ask(1, 0)
    assert worker.ask(1, 0) == []
    (first,) = worker.finish(begun)
    (again,) = worker.ask(1, 0)

    assert again.message == first.message
    worker.ask(1, 1)
    assert worker.ask(1, 0) == []


def test_a_worker_computes_its_partitions_at_the_draw_of_the_round():
    worker = Worker1(FractionalRepetition(2).build(6), Tally(1), index=3)
    (begun,) = worker.ask(1, 4)

    assert begun.draw == 4
    assert begun.task.cost == 20.0
    assert begun.task.run().tolist() == Tally(1).evaluate(np.array([0.5]), (2, 3), 4).tolist()


# The declaration


def test_it_is_a_training_protocol_with_a_shape():
    protocol = GradientCoding(FractionalRepetition(2), collect=3)
    shape = protocol.shape(Roster.of_counts(server=1, worker=6))

    assert isinstance(protocol, TrainingProtocol)
    assert (shape.compute, shape.stop_rule.workers, shape.stragglers) == (2.0, 6, "cancel")
    assert protocol.parameters(Outcome([(0, "first"), (1, "last")], [])) == "last"


def test_each_promise_is_a_function_that_answers():
    protocol = GradientCoding(IgnoreStragglers(), collect=3)
    for promise in protocol.oracles():
        arguments = dict(promise.arguments)
        assert load(promise.function)(arguments.pop("code"), 6, LAW, **arguments) > 0
        assert promise.source


def test_what_is_done_again_after_a_loss():
    lost = frozenset({SERVER, NodeId("worker", 3), NodeId("worker", 1)})

    assert GradientCoding().redo(lost) == (
        "training from the start", "the open round of worker-1", "the open round of worker-3",
    )  # fmt: skip


@pytest.mark.parametrize("servers", [0, 2])
def test_one_server_it_must_be(servers):
    roster = Roster.of_counts(server=servers, worker=3)
    for call in (GradientCoding().shape, lambda r: GradientCoding().nodes(Tally(), r)):
        with pytest.raises(UserError, match=f"got {servers} servers"):
            call(roster)


def test_codes_that_do_not_fit_are_refused_by_the_shape():
    with pytest.raises(UserError, match="7 replicas need as many workers"):
        GradientCoding(FractionalRepetition(7)).shape(Roster.of_counts(server=1, worker=6))
    with pytest.raises(UserError, match="collect"):
        GradientCoding(Uncoded(), collect=0)

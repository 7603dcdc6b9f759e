"""The nodes of gradient coding by hand: whatever a test hands them, one event at a time; and their declaration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster.compute import ShiftedExponential
from emuml.directory import Directory
from emuml.errors import UserError
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
from tests.protocols.training import (
    SERVER,
    Server1,
    Tally,
    check_only_the_open_round_counts,
    check_repeats_count_once,
    question,
    train,
)

LAW = ShiftedExponential(0.1, 0.5)


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
        arguments = dict(promise.arguments) | ({"t": 1.0} if promise.name == "round_s_cdf" else {})
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


def test_replicas_that_are_asked_the_same_are_given_one_task():
    code, problem, parameters = FractionalRepetition(2).build(4), Tally(1), np.zeros(1)

    first, second, other = (code.task(problem, parameters, worker, 3) for worker in (0, 1, 2))

    assert first is second
    assert first is not other
    for asked in ((problem, np.zeros(1), 0, 3), (Tally(1), parameters, 0, 3), (problem, parameters, 0, 4)):
        assert code.task(*asked) is not first
    assert code.task(problem, parameters, 0, 3) is not first  # what came between has taken its place

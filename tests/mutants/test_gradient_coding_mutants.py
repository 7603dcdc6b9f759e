"""Wrong gradient coding nodes, each with one decision changed: the assertions that ours passes must catch each.

The numbers are those of the list of planted bugs that all protocols of this kind are tried on.
"""

import pytest

from emuml.lazy import combine
from emuml.node import PeerState
from emuml.protocols.gradient_coding.messages import Gradient
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from tests.protocols.training import (
    check_a_restarted_worker_is_asked,
    check_approximate_training,
    check_arrivals_permuted,
    check_exact_training,
    check_only_the_open_round_counts,
    check_repeats_count_once,
)

pytestmark = pytest.mark.slow


def caught(check, **mutant):
    """Assert that a check passes for ours and fails for the mutant."""
    check()
    with pytest.raises(AssertionError):
        check(**mutant)


class AnyRound(Server):
    """GC1: answers of any round are accepted."""

    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, Gradient(message.life, self.round, message.value))


def test_gc1_answers_of_any_round_are_caught_by_the_reference():
    caught(check_approximate_training, server=AnyRound)
    caught(check_only_the_open_round_counts, server=AnyRound)


class CountsAnswers(Server):
    """GC2: answers are counted, not the workers that gave them."""

    def open(self, ctx):
        self.count = 0
        super().open(ctx)

    def on_message(self, ctx, sender, message):
        if (message.life, message.round) == (ctx.incarnation, self.round):
            self.count += 1
            self.answers.setdefault(sender.index, message.value)
            self.tracker.arrived(sender.index)
            if self.count >= 3 or self.tracker.closed:
                self.close(ctx)


def test_gc2_counting_answers_is_caught_by_an_answer_that_comes_twice():
    caught(check_repeats_count_once, server=CountsAnswers)


class OneEarly(Server):
    """GC3: the round closes one answer early."""

    def close_if_decided(self, ctx):
        parts = self.rule.parts()
        needed = parts[0] if parts[0] is not None else len(parts[1].groups)
        if self.tracker.closed or len(self.answers) >= needed - 1:
            self.close(ctx)


def test_gc3_closing_one_answer_early_is_caught_by_the_single_process_and_the_reference():
    caught(check_exact_training, server=OneEarly)
    caught(check_approximate_training, server=OneEarly)


class IgnoresRestarts(Server):
    """GC5: a worker that came back gets no question for the open round."""

    def on_peer(self, ctx, peer, state):
        if state is PeerState.DOWN:
            super().on_peer(ctx, peer, state)
        else:
            self.down.discard(peer.index)


def test_gc5_ignored_restarts_are_caught_by_a_round_that_never_closes():
    caught(check_a_restarted_worker_is_asked, server=IgnoresRestarts)


class DecodesByArrival(Server):
    """GC8: weights in the order of arrival go to answers in the order of workers."""

    def close(self, ctx):
        in_order_of_arrival, decode = list(self.answers), self.code.decode

        class Wrong:
            def __getattr__(_, name):
                return getattr(self.actual, name)

            def decode(_, received):
                return decode(in_order_of_arrival)

        self.actual, self.code = self.code, Wrong()
        try:
            super().close(ctx)
        finally:
            self.code = self.actual


def test_gc8_weights_by_arrival_are_caught_by_the_single_process_and_the_reference():
    caught(check_exact_training, server=DecodesByArrival)
    caught(check_approximate_training, server=DecodesByArrival)


class Mislabels(Worker):
    """GC9: running work goes on, and its answer is labelled with the round that the worker is in by then."""

    def on_message(self, ctx, sender, message):
        asked = (message.life, message.round)
        if asked > self.newest:
            self.newest, self.answer, self.server = asked, None, sender
            task = self.code.task(self.workload, message.value, self.index, message.round)
            ctx.compute(("gradient", message.round), task)

    def on_computed(self, ctx, tag, result):
        self.answer = Gradient(*self.newest, result)
        ctx.send(self.server, self.answer)


def test_gc9_mislabelled_answers_are_caught_by_the_reference():
    caught(check_approximate_training, worker=Mislabels)


class AnyLife(Server):
    """GC10: a restarted server takes answers to its former life."""

    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, Gradient(ctx.incarnation, message.round, message.value))


def test_gc10_answers_to_a_former_life_are_caught():
    caught(check_only_the_open_round_counts, server=AnyLife)


class SumsByArrival(Server):
    """GC11: the sum is formed in the order of arrival."""

    def close(self, ctx):
        weights = self.code.decode(list(self.answers)).weights
        used = [(weight, value) for weight, value in zip(weights, self.answers.values(), strict=True) if weight]
        total = combine(*map(list, zip(*used, strict=True)))

        class Fixed:
            def __getattr__(_, name):
                return getattr(self.actual, name)

            def step(_, state, parameters, gradient, round):
                return self.actual.step(state, parameters, total, round)

        self.actual, self.workload = self.workload, Fixed()
        try:
            super().close(ctx)
        finally:
            self.workload = self.actual


def test_gc11_sums_by_arrival_are_caught_by_permuted_arrivals():
    caught(check_arrivals_permuted, server=SumsByArrival)
    caught(check_exact_training, server=SumsByArrival)


def test_mutants_that_change_nothing_are_not_caught():
    """Controls: slower or more talkative, but not wrong."""

    class AsksTwice(Server):
        def open(self, ctx):
            super().open(ctx)
            ctx.broadcast("worker", self.question(ctx))

    class AddsZero(Worker):
        def on_computed(self, ctx, tag, result):
            super().on_computed(ctx, tag, combine([1.0], [result]))

    check_exact_training(server=AsksTwice, worker=AddsZero)
    check_arrivals_permuted(server=AsksTwice)

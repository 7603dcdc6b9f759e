"""Wrong semantics of stragglers, each with one decision changed: the assertions that ours passes must catch each."""

import msgspec
import pytest

from emuml.protocols.gradient_coding import IgnoreStragglers
from emuml.protocols.gradient_coding.messages import Gradient
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from tests.protocols.straggler_checks import DELAYS, SEMANTICS, check_event_by_event, check_parameters, emulate


def caught(check, stragglers, **mutant):
    """Assert that a check passes for ours and fails for the mutant."""
    check(stragglers)
    with pytest.raises(AssertionError):
        check(stragglers, **mutant)


class KeepsAll(Worker):
    """Every question is kept, and computed in order."""

    def keep(self, question):
        self.mailbox += (question,)


class KeepsNewest(Worker):
    """A newer question replaces the one that is kept."""

    def keep(self, question):
        self.mailbox = (question,)


def test_w22_carrying_over_in_place_of_skipping_and_the_reverse_are_caught():
    caught(check_event_by_event, "skip-stale", worker=KeepsAll)
    caught(check_event_by_event, "carry-over", worker=KeepsNewest)


class NeverInterrupts(Worker):
    """New parameters do not cancel what runs."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.interrupts = False


def test_work_that_is_not_cancelled_is_caught():
    caught(check_event_by_event, "cancel", worker=NeverInterrupts)


class Interrupts(Worker):
    """New parameters cancel what runs, whatever the semantics."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.interrupts, self.skips = True, False


@pytest.mark.parametrize("stragglers", ["skip-stale", "carry-over"])
def test_work_that_is_cancelled_where_it_is_to_be_finished_is_caught(stragglers):
    caught(check_event_by_event, stragglers, worker=Interrupts)


class StopsTheClock(Server):
    """W1: the round is logged and published when it is decided, before the others have finished."""

    def close(self, ctx):
        super().close(ctx)
        if self.held:
            self.report(ctx)

    def go_on(self, ctx):
        report, self.report = self.report, lambda ctx: None
        super().go_on(ctx)
        self.report = report


def test_w1_a_clock_that_stops_before_the_others_have_finished_is_caught():
    caught(check_event_by_event, "wait-all", server=StopsTheClock)


class NewestParameters(Worker):
    """W7: one buffer for all rounds, so that a late worker computes an old round with newer parameters."""

    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, message)
        self.mailbox = [msgspec.structs.replace(kept, value=message.value) for kept in self.mailbox]


def test_w7_an_old_round_computed_with_newer_parameters_is_caught():
    caught(check_parameters, "carry-over", worker=NewestParameters)


class AnyRound(Server):
    """W23: the answer to a closed round is taken for one to the open round."""

    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, Gradient(message.life, self.round, message.value))


@pytest.mark.parametrize("stragglers", ["skip-stale", "carry-over"])
def test_w23_a_late_answer_that_enters_the_open_round_is_caught(stragglers):
    caught(check_parameters, stragglers, server=AnyRound)


class NeverDrains(Server):
    """The run ends with the last round, whatever is still queued."""

    def go_on(self, ctx):
        if self.stop.reached(self.round + 1, 0, ctx.now):
            self.idle.update(range(self.code.workers))
        super().go_on(ctx)


def test_a_run_that_ends_before_it_is_drained_is_caught():
    with pytest.raises(AssertionError):
        check_drained(server=NeverDrains)
    check_drained()


def check_drained(**nodes):
    """After the last round the queues are worked off, and how long that took is logged."""
    run = emulate(DELAYS, IgnoreStragglers(), 2, "carry-over", **nodes)
    assert run.logs[-1].metrics == {"drain_s": 0.5, "stale": 1}


@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_ours_passes(stragglers):
    check_event_by_event(stragglers)
    check_parameters(stragglers)

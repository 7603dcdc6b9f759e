"""Oracles: what they see, when they judge, and that their own errors are not violations."""

import pytest

import emuml.testing as et
from emuml.errors import UserError
from emuml.testing.campaign import described
from emuml.testing.scenario import CrashFault, Scenario
from tests.testing.keeper import Client, Deaf, Hasty, Keeper, Kept, durable, nodes

EVERYBODY = et.faults(keep={"client"})
CRASH = Scenario(faults=(CrashFault(node="keeper-0", at_s=0.8, restart_after_s=0.5),))


def judged(describe, make=None, scenario=CRASH, **options):
    return et.run(make or nodes(), scenario, describe, faults=options.pop("faults", EVERYBODY), **options)


def test_a_protocol_that_keeps_its_word_is_not_objected_to():
    trial = judged(durable)
    assert trial.ok
    assert trial.run.stopped == "done"
    assert trial.report().startswith("no oracle objects")


def test_always_judges_after_every_step_and_ends_the_run():
    trial = judged(lambda run: run.always(lambda nodes: nodes["client"].kept < 2, "fewer than two"))

    assert (trial.signature.kind, trial.signature.name) == ("always", "fewer than two")
    assert trial.violation.node == "client-0"
    assert [row[2] for row in trial.run.trace.rows if row[1] == "client-0"].count("receive") == 2


def test_always_is_not_judged_while_a_node_that_it_reads_is_down():
    seen = []
    trial = judged(lambda run: run.always(lambda nodes: seen.append(nodes["keeper"].number) or True, "looks"))

    down = [row for row in trial.run.trace.rows if row[1] == "client-0" and 0.8 < row[0] < 1.3]
    assert down
    assert 0 < len(seen) < trial.run.events


def test_effects_are_judged_with_sender_receiver_and_nodes():
    sent = []

    def describe(run):
        run.each_sent(lambda item: sent.append((str(item.sender), type(item.message).__name__)) or True, "notes")
        run.never_sent(lambda item: isinstance(item.message, Kept) and item.message.number == 3, "no third one")

    trial = judged(describe, scenario=Scenario())
    assert trial.signature.kind == "never_sent"
    assert trial.violation.node == "keeper-0"
    assert sent[:2] == [("client-0", "Keep"), ("keeper-0", "Kept")]


def test_liveness_says_which_roles_wait_for_what():
    trial = judged(lambda run: run.eventually("done", within_s=5), nodes(client=Deaf))

    assert trial.signature == (trial.signature.__class__("eventually", "done", ("client",)))
    assert "client-0 waits for number 2" in trial.violation.text
    assert trial.run.duration_s == 75.0


def test_a_goal_may_be_reached_at_any_time_after_healing():
    class Ticking(Client):
        def on_start(self, ctx, saved):
            self.kept, self.ticks = 0, 0
            ctx.set_timer("tick", 10.0)

        def on_timer(self, ctx, name):
            self.ticks += 1
            ctx.set_timer("tick", 10.0)

    def describe(most):
        return lambda run: run.eventually(lambda nodes: nodes["client"].ticks > most, within_s=30, name="ticks")

    def passed(run):
        run.eventually(lambda nodes: nodes["client"].ticks == 3, within_s=30, name="three, long before")

    assert judged(passed, nodes(client=Ticking), Scenario()).signature.name == "three, long before"
    assert judged(describe(9), nodes(client=Ticking), Scenario()).ok
    assert judged(describe(10), nodes(client=Ticking), Scenario()).signature.name == "ticks"


def test_a_goal_of_a_run_that_stops_before_healing_is_judged_there():
    def wants(goal):
        return lambda run: (run.eventually("done"), run.eventually(goal, name="all kept"))

    last = 4
    assert judged(wants(lambda nodes: nodes["client"].kept == last)).ok
    short = judged(wants(lambda nodes: nodes["client"].kept > last))
    assert (short.signature.kind, short.signature.name) == ("eventually", "all kept")
    assert "all kept was not reached before the run was stopped" in short.report()
    assert not judged(wants(lambda nodes: nodes["client"].kept == 1), scenario=later(3.0)).ok
    assert judged(wants(lambda nodes: False), scenario=later(50.0)).ok


def later(after_s):
    """Return a scenario whose keeper is away until after so many seconds, or until after the end."""
    return Scenario(faults=(CrashFault(node="keeper-0", at_s=after_s, restart_after_s=0.5),))


def test_an_exception_of_a_node_is_a_violation_named_by_type_and_line():
    class Fails(Keeper):
        def on_saved(self, ctx, tag):
            raise KeyError(tag)

    one, two = (judged(durable, nodes(Fails), Scenario(seed=seed)) for seed in (0, 1))
    assert one.signature == two.signature
    assert one.signature.kind == "error"
    assert one.signature.name.startswith("KeyError at test_oracles.py:")


def test_an_exception_of_an_oracle_is_an_error_of_the_test():
    with pytest.raises(et.OracleError, match="'wrong' raised AttributeError"):
        judged(lambda run: run.always(lambda nodes: nodes["keeper"].no_such_field, "wrong"))
    with pytest.raises(et.OracleError, match="'asserts' raised AssertionError"):
        judged(lambda run: run.always(fails, "asserts"))
    with pytest.raises(et.OracleError, match="must not change nodes"):
        judged(lambda run: run.always(lambda nodes: setattr(nodes["keeper-0"], "number", 1), "writes"))


def fails(nodes):
    raise AssertionError


def test_the_end_is_judged_only_of_runs_that_were_stopped():
    def describe(run):
        run.at_end(lambda finished: finished.scenario.seed != 1, "not seed 1")

    assert judged(describe).ok
    assert judged(describe, scenario=Scenario(seed=1)).signature.name == "not seed 1"
    assert judged(describe, nodes(client=Deaf), CRASH.model_copy(update={"seed": 1})).ok


def test_a_goal_or_a_name_that_cannot_be_meant_is_refused():
    with pytest.raises(UserError, match="'done' or a predicate"):
        described(lambda run: run.eventually("over"))
    with pytest.raises(UserError, match="a few words"):
        described(lambda run: run.always(lambda nodes: True, ""))


def test_sometimes_is_a_matter_of_the_campaign():
    def describe(run):
        run.sometimes(lambda nodes: nodes["client"].kept == 2, "two are kept")
        run.sometimes(lambda nodes: nodes["client"].kept == 9, "nine are kept")

    found = et.explore(nodes(), describe, runs=20, faults=EVERYBODY)
    assert (found.ok, found.failure, found.missed) == (False, None, ["nine are kept"])
    assert "reached: two are kept" in found.summary()


def test_the_reference_is_compared_bit_for_bit():
    from emuml.protocols.gradient_coding import GradientCoding
    from emuml.protocols.gradient_coding.oracles import trained

    def shifted(finished):
        return [version + 0.0 if i < 2 else version + 1e-9 for i, version in enumerate(trained(finished))]

    def compared(expected, **options):
        return et.run(lambda: GradientCoding(), Scenario(), lambda run: run.reference(expected, **options))

    assert compared(trained).ok
    assert compared(shifted).signature.kind == "reference"
    assert compared(lambda finished: trained(finished)[:-1]).signature.kind == "reference"
    assert compared(shifted, when=lambda finished: finished.scenario.seed == 1).ok


def test_what_is_acknowledged_too_soon_needs_a_crash_and_is_found_at_every_seed():
    for seed in range(5):
        failure = et.explore(nodes(Hasty), durable, runs=300, seed=seed, faults=EVERYBODY).failure
        assert failure.trial.signature.name == "what was acknowledged is there"
        assert (len(failure.scenario.faults), len(failure.scenario.deviations)) == (1, 0)


def test_an_oracle_of_a_role_is_judged_after_its_steps_only():
    acting = []

    def describe(run):
        run.always(lambda nodes: acting.append(str(nodes.acting)) or True, "of keepers", of="keeper")
        run.always(lambda nodes: nodes["client"].kept < 2, "of clients", of="client")

    trial = judged(describe, scenario=Scenario())
    assert set(acting) == {"keeper-0"}
    assert trial.violation.node == "client-0"


def test_a_report_says_which_faults_were_left_out():
    trial = judged(durable, faults=et.faults(crash=0))
    assert trial.ok
    assert trial.report().splitlines()[1].startswith("1 of the scenario's faults exceed the budget")

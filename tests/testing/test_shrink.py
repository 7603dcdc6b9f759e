"""Shrinking: the same failure, locally minimal, within its budget."""

import pytest

import emuml.testing as et
from emuml.testing import shrink as module
from emuml.testing.campaign import described
from emuml.testing.scenario import CrashFault, Delays, Deviation, Scenario
from emuml.testing.shrink import PASSES, shrink, without
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier
from tests.mutants.planted import RUN_TWICE
from tests.mutants.registry import MUTANTS
from tests.testing.keeper import Client, Hasty, durable, nodes

REPEATING = [mutant for mutant in MUTANTS if RUN_TWICE not in mutant.oracles]
KEEP = et.faults(keep={"client"}, crash=4)
MANY = Scenario(
    workers=3,
    rounds=4,
    seed=3,
    faults=(
        CrashFault(node="keeper-0", at_s=1.0, restart_after_s=3.0),
        CrashFault(node="keeper-0", at_s=9.0, restart_after_s=1.0),
        CrashFault(node="keeper-0", at_s=12.0, restart_after_s=4.0),
    ),
    deviations=tuple(Deviation(message=("client-0", "keeper-0", "Keep", n), late_s=0.6) for n in range(4)),
)


def trier(describe=durable, make=None):
    return Trier(Subject(make or nodes(Hasty)), described(describe), KEEP)


def test_a_failure_comes_back_with_one_fault_and_nothing_else():
    tries = trier()
    found = tries.run(MANY)
    assert not found.ok
    shrunk = shrink(tries, found)

    assert (shrunk.scenario.workers, shrunk.scenario.rounds, shrunk.scenario.seed) == (1, 1, 0)
    assert (len(shrunk.scenario.faults), len(shrunk.scenario.deviations)) == (1, 0)
    assert shrunk.trial.signature == found.signature
    assert shrunk.scenario.size() < found.scenario.size()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", REPEATING, ids=lambda mutant: mutant.id)
def test_dropping_any_fault_or_deviation_loses_the_failure(mutant):
    failure = mutant.campaign(0).failure
    assert failure.replays < module.REPLAYS_MAX
    now = failure.scenario
    smaller = [now.model_copy(update={"faults": tuple(f for f in now.faults if f != fault)}) for fault in now.faults]
    smaller += [
        now.model_copy(update={"deviations": tuple(d for d in now.deviations if d != item)}) for item in now.deviations
    ]
    for scenario in smaller:
        trial = mutant.tried(mutant.wrong, scenario)
        assert trial.signature != failure.trial.signature


def test_another_failure_is_not_taken_for_the_one_that_was_found():
    """Fewer rounds fail as well, but in another way: they are not accepted."""

    def describe(run):
        run.at_end(lambda finished: finished.scenario.rounds <= 2, "at most two rounds")
        run.at_end(lambda finished: finished.scenario.rounds > 2, "more than two rounds")

    tries = trier(describe, nodes())
    shrunk = shrink(tries, tries.run(MANY))
    assert shrunk.trial.signature.name == "at most two rounds"
    assert shrunk.scenario == Scenario(workers=1, rounds=3)


def test_what_does_not_fail_again_is_not_shrunk_but_reported():
    tries = trier(make=flaky(nodes(Hasty), nodes()))
    found = tries.run(MANY)
    assert not found.ok
    shrunk = shrink(tries, found)
    assert shrunk.nondeterministic
    assert shrunk.replays == 1
    assert shrunk.scenario == found.scenario


def test_what_always_fails_is_small_though_its_runs_take_all_of_the_time(monkeypatch):
    monkeypatch.setattr(module, "REPLAYS_MAX", 2)
    tries = trier(lambda run: run.always(lambda nodes: False, "nothing"), nodes())
    shrunk = shrink(tries, tries.run(MANY))
    assert (shrunk.scenario.faults, shrunk.scenario.deviations) == ((), ())


def test_a_failure_of_which_two_runs_differ_says_where():
    count = iter(range(10**6))

    def make():
        return {**nodes()(), "client-0": ("client", lambda: Client(2 + next(count) % 5))}

    tries = trier(lambda run: run.at_end(lambda finished: False, "no end"), make)
    shrunk = shrink(tries, tries.run(MANY))
    assert not shrunk.nondeterministic
    assert shrunk.difference.startswith("first at ")


def flaky(first, then):
    makes = iter([first])
    return lambda: next(makes, then)()


def test_the_budget_of_replays_ends_shrinking(monkeypatch):
    monkeypatch.setattr(module, "REPLAYS_MAX", 4)
    tries = trier()
    shrunk = shrink(tries, tries.run(MANY))
    assert shrunk.replays == 4
    assert not shrunk.trial.ok


def test_a_worker_is_dropped_with_all_that_names_it_and_the_others_move_up():
    scenario = Scenario(
        workers=4,
        faults=tuple(CrashFault(node=f"worker-{i}", at_s=1) for i in range(4)),
        deviations=(
            Deviation(message=("worker-1", "server-0", "Push", 2), late_s=0.3),
            Deviation(compute=("worker-3", "t", 0), late_s=1.0),
            Deviation(tie=(("timer", "worker-1", "a", 0), ("timer", "worker-3", "a", 0))),
            Deviation(tie=(("timer", "worker-0", "a", 0), ("timer", "worker-3", "a", 0))),
        ),
    )
    dropped = without(scenario, "worker", 1, 2)
    assert [fault.node for fault in dropped.faults] == ["worker-0", "worker-1"]
    assert [item.name for item in dropped.deviations] == [
        "compute/worker-1/t/0",
        "tie/timer/worker-0/a/0|timer/worker-1/a/0",
    ]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.__name__)
def test_every_pass_proposes_what_is_smaller(step):
    rich = MANY.model_copy(
        update={
            "servers": 2,
            "faults": (MANY.faults[0].model_copy(update={"keep": ("save/1/0",)}), *MANY.faults[1:]),
            "deviations": (*MANY.deviations, Deviation(lost=("client-0", "keeper-0", 0), count=3)),
        }
    )
    proposed = list(step(rich))
    assert proposed
    assert all(smaller.size() < rich.size() for smaller in proposed)
    least = Scenario(workers=1, rounds=1, delays=Delays())
    assert list(step(least)) == []

"""One scenario on both engines: crashes strike at logged counts, the oracles of finished runs judge."""

import pytest

import emuml.testing as et
from emuml.cluster.faults import Crash
from emuml.outcome import Run
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers
from emuml.testing.campaign import described
from emuml.testing.scenario import CrashFault, Deviation, Scenario
from emuml.testing.subject import Subject
from emuml.testing.tcp import BACK_S, logical, possible
from emuml.testing.trial import Trier
from emuml.trace import Trace
from tests.mutants.coding_nodes import DecodesByArrival
from tests.mutants.planted import Swapped
from tests.mutants.registry import PARTIAL

EVERYBODY = et.faults(crash=3, keep=())


def emulated(*logs):
    trace = Trace()
    for time_s, round in logs:
        trace.add(time_s, "server-0", "log", {"round": round})
        trace.add(time_s, "server-0", "log", {"other": 1})
    return Run("des", trace)


@pytest.mark.parametrize(
    ("at_s", "back_s", "expected"),
    [
        (1.5, None, Crash("worker-0", after=("round", 1))),
        (1.5, 2.0, Crash("worker-0", after=("round", 1), restart_after=("round", 3))),
        (2.1, 0.3, Crash("worker-0", after=("round", 2), restart_after_s=BACK_S)),
        (0.5, 1.0, Crash("worker-0", at_s=0.0, restart_after=("round", 1))),
        (0.5, 0.2, Crash("worker-0", at_s=0.0, restart_after_s=BACK_S)),
    ],
)
def test_times_become_the_last_count_that_was_logged_before_them(at_s, back_s, expected):
    scenario = Scenario(faults=(CrashFault(node="worker-0", at_s=at_s, restart_after_s=back_s),))
    assert logical(scenario, emulated((1.0, 1), (2.0, 2), (3.0, 3))).faults == (expected,)


def test_who_is_needed_for_the_count_of_its_return_is_back_soon():
    """Worker 1 pushes before it crashes at 2.5 s; crashed at 0 s, it is waited for in the first round."""
    crash = CrashFault(node="worker-1", at_s=2.5, restart_after_s=1.0)
    scenario = Scenario(workers=3, servers=2, rounds=3, faults=(crash,))
    plans = []
    for barrier in (BSP(), ASP()):
        subject = Subject(lambda barrier=barrier: AsyncUpdates(barrier=barrier))
        plans.append(possible(Trier(subject, described(lambda run: run.eventually("done"))), scenario))

    assert plans[0].faults == (Crash("worker-1", at_s=0.0, restart_after_s=BACK_S),)
    assert plans[1].faults == (Crash("worker-1", at_s=0.0, restart_after=("round", 1)),)


CRASHES = Scenario(
    workers=3,
    rounds=5,
    faults=(CrashFault(node="worker-1", at_s=4.0, restart_after_s=2.0),),
    deviations=(Deviation(compute=("worker-0", "gradient", 0), late_s=1.0),),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        GradientCoding(code=IgnoreStragglers(), collect=2),
        GradientCoding(code=FractionalRepetition(2), stragglers="wait-all"),
        AsyncUpdates(barrier=SSP(1)),
    ],
    ids=str,
)
def test_ours_stands_a_scenario_over_tcp(protocol):
    emulator = et.run(lambda: protocol, CRASHES, faults=EVERYBODY)
    trial = et.run(lambda: protocol, CRASHES, faults=EVERYBODY, engine="tcp")

    assert emulator.ok
    assert trial.ok, trial.report()
    assert trial.run.engine == "tcp"
    assert any(end.startswith("worker-1 (life 1)") for end in trial.run.ends), trial.run.ends
    assert trial.scenario.deviations == ()
    assert len(trial.scenario.faults) == 1


class TakesTheFirstForAll(DecodesByArrival):
    """One worker's answer stands for every other's."""

    def close(self, ctx):
        first = self.answers[min(self.answers)]
        self.answers = dict.fromkeys(self.answers, first)
        super().close(ctx)


@pytest.mark.slow
def test_a_planted_bug_is_seen_over_tcp_by_the_same_oracle():
    wrong, describe = Swapped(PARTIAL, TakesTheFirstForAll), et.shipped(PARTIAL)
    for engine in ("des", "tcp"):
        trial = et.run(lambda: wrong, CRASHES, describe, faults=EVERYBODY, engine=engine)
        assert trial.signature.kind == "reference"

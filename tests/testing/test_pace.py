"""How long rounds may take: by hand drawn traces, and on the emulator with nodes that are slower than they promise."""

import pytest

import emuml.testing as et
from emuml.protocols.gradient_coding import GradientCoding, IgnoreStragglers
from emuml.protocols.gradient_coding.pace import closes_in_time, nobody_rests
from emuml.testing.scenario import Deviation
from tests.mutants.coding_nodes import NeverInterrupts
from tests.mutants.planted import Swapped

PROTOCOL = GradientCoding(IgnoreStragglers(), collect=2)
SLOW = et.Scenario(
    workers=3,
    deviations=(
        Deviation(compute=("worker-0", "gradient", 0), late_s=1.0),
        Deviation(compute=("worker-2", "gradient", 1), late_s=5.0),
    ),
)
"""Worker 0 is late in the first round, and is needed in the second one as worker 2 is late."""


def pace(run):
    run.at_end(lambda finished: closes_in_time(finished, PROTOCOL), "in time")
    run.at_end(nobody_rests, "nobody rests")


def test_a_round_takes_as_long_as_the_second_answer_where_two_are_collected():
    trial = et.run(lambda: PROTOCOL, SLOW, pace)

    assert trial.ok
    assert [round(item.time_s, 9) for item in trial.run.logs] == [1.6, 3.2]


def test_work_that_is_not_ended_with_its_round_makes_the_next_one_late():
    slow = Swapped(PROTOCOL, worker=NeverInterrupts)
    trial = et.run(lambda: slow, SLOW, pace)

    assert [round(item.time_s, 9) for item in trial.run.logs] == [1.6, 3.6]
    assert trial.signature.name == "in time"


def test_runs_with_faults_are_not_judged():
    slow = Swapped(PROTOCOL, worker=NeverInterrupts)
    crash = et.CrashFault(node="worker-1", at_s=0.0, restart_after_s=0.1)

    assert et.run(lambda: slow, SLOW.model_copy(update={"faults": (crash,)}), pace).ok


class Drawn:
    """A finished run of hand-drawn rows."""

    def __init__(self, *rows):
        self.trace, self.logs = self, []
        self.rows = rows


ASKED = (0.0, "worker-0", "receive", "server-0", "Parameters", 89)
BEGUN = (0.0, "worker-0", "begin", "gradient", 0)
ASKED_AGAIN = (1.0, "worker-0", "receive", "server-0", "Parameters", 89)
COMPUTED = (2.0, "worker-0", "computed", "gradient", 0)
END = (9.0, "server-0", "stop", "done")


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ((ASKED, BEGUN, COMPUTED, END), True),
        ((ASKED, END), False),
        ((ASKED, BEGUN, ASKED_AGAIN, COMPUTED, (2.0, "worker-0", "begin", "gradient", 1), END), True),
        ((ASKED, BEGUN, ASKED_AGAIN, COMPUTED, END), False),
        ((ASKED, BEGUN, ASKED_AGAIN, (1.5, "worker-0", "freed", "gradient"), END), False),
        ((ASKED, (1.0, "server-0", "fault", "Crash"), END), True),
    ],
)
def test_who_was_asked_and_has_nothing_else_to_do_begins_at_once(rows, holds):
    assert nobody_rests(Drawn(*rows)) is holds

"""What reports say of votes and deadlines: how much was not believed, and which rounds the clock closed."""

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import Uncoded, VerifiedRepetition
from emuml.report.facts import facts
from emuml.report.view import View
from tests.experiment.small import small
from tests.runtime.byzantine import WithLiars


def said(protocol, delays, name):
    """Return what is said under a name of a run of as many rounds as delays."""
    cluster = Cluster(workers=delays.shape[1], compute=DelayTrace(delays))
    result = emuml.run(small(protocol=protocol, cluster=cluster, rounds=len(delays)), out=None)
    return dict(facts(View.of_result(result))).get(name)


def test_rounds_that_the_clock_closed_are_counted():
    delays = np.array([[1.0, 1.0], [1.0, 3.0], [3.0, 3.0], [3.0, 3.0]])
    found = said(GradientCoding(Uncoded(), deadline_s=2.0), delays, "deadline")
    assert found == "3 of 4 rounds closed by the clock, 2 of them without an answer"
    assert (
        said(GradientCoding(Uncoded(), deadline_s=2.0), delays[:2], "deadline") == "1 of 2 rounds closed by the clock"
    )
    assert said(GradientCoding(Uncoded()), delays, "deadline") is None


def test_what_was_not_believed_is_counted():
    delays = np.ones((15, 6))
    code = VerifiedRepetition(3)
    assert said(GradientCoding(code), delays, "votes") == "no answer differed from the value that its group has"
    found = said(WithLiars(code, liars=(1,)), delays, "votes")
    # Of 15 lies 7 are values, 5 have another shape or dtype, one is no answer, and two say nothing of this round.
    assert found == "7 answers differed from the value that their group has, 6 were none; 0 sums lost"


@pytest.mark.parametrize("name", ["votes", "deadline"])
def test_other_runs_say_nothing_of_it(name):
    assert said(GradientCoding(Uncoded()), np.ones((1, 2)), name) is None

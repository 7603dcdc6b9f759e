"""Codes for approximate sums are clean under explored schedules and crashes of workers and of the server."""

import pytest

import emuml.testing as et
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, Expander, GradientCoding, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle
from tests.testing.soak import RUNS, SOAK
from tests.testing.test_shipped_protocols import explored

CODED = [
    GradientCoding(code=GraphCode(Cycle())),
    GradientCoding(code=GraphCode(Cycle(), tolerance=0.1), stragglers="skip-stale"),
    GradientCoding(code=GraphCode(Cycle(), tolerance=None), collect=2, stragglers="carry-over"),
    GradientCoding(code=Bernoulli(1.0), collect=2),
    GradientCoding(code=Bernoulli(1, True, "optimal"), stragglers="wait-all"),
    GradientCoding(code=BalancedRepetition(1)),
    GradientCoding(code=BalancedRepetition(1), collect=2, stragglers="carry-over"),
    GradientCoding(code=Expander(Complete()), collect=2),
]
"""All of them can be built for 3 and 4 workers."""


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("protocol", CODED, ids=str)
def test_codes_stand_explored_crashes_of_workers_and_of_the_server(protocol):
    explored(protocol, RUNS if SOAK else 60, et.faults(crash=3, keep=()), workers=(3, 4))


@pytest.mark.parametrize("protocol", CODED, ids=str)
def test_plain_runs_of_all_sizes_are_clean(protocol):
    for workers in (3, 4, 5):
        assert et.run(lambda: protocol, et.Scenario(workers=workers, rounds=3)).ok

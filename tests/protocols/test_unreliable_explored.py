"""Deadlines, verified votes and sums of what arrives, explored: no order of events and no crash breaks them."""

import pytest

import emuml.testing as et
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, StochasticCode, Uncoded, VerifiedRepetition

PROTOCOLS = [
    GradientCoding(VerifiedRepetition(3)),
    GradientCoding(VerifiedRepetition(3, on_unresolved="drop"), stragglers="wait-all", deadline_s=1.0),
    GradientCoding(StochasticCode(2, 0.25)),
    GradientCoding(StochasticCode(2, 0.25), deadline_s=0.5),
    GradientCoding(StochasticCode(2), collect=2, stragglers="skip-stale"),
    GradientCoding(FractionalRepetition(2), collect=3, deadline_s=0.75, stragglers="carry-over"),
    GradientCoding(Uncoded(), first_times=1.5),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_runs_stand_what_is_shipped_to_check_them(protocol):
    for workers in (3, 4, 6):
        assert et.run(lambda: protocol, et.Scenario(workers=workers, rounds=3)).ok


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_explored_crashes_of_workers_and_of_the_server_do_no_harm(protocol):
    found = et.explore(
        lambda: protocol,
        et.shipped(protocol),
        runs=50,
        clusters=et.clusters(workers=(3, 5)),
        faults=et.faults(crash=2, keep=()),
    )
    assert found.failure is None, found.failure.trial.report()
    assert found.ok

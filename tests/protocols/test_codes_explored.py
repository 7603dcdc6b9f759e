"""Codes and deadlines, explored: no order of events and no crash breaks what is shipped to check them."""

import pytest

import emuml.testing as et
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import (
    CyclicRepetition,
    FractionalRepetition,
    StochasticCode,
    Uncoded,
    VerifiedRepetition,
    YeAbbe,
)

PROTOCOLS = [
    GradientCoding(CyclicRepetition(1)),
    GradientCoding(CyclicRepetition(2), collect=3),
    GradientCoding(YeAbbe(1, 2)),
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
        runs=60,
        clusters=et.clusters(workers=(3, 5)),
        faults=et.faults(crash=2, keep=()),
    )
    assert found.failure is None, found.failure.trial.report()
    assert found.ok

"""Votes: equal bits and nothing else, counted up to what is needed, and what is known when it cannot be reached."""

from itertools import combinations

import numpy as np
import pytest
from crc32c import crc32c

from emuml.cluster.compute import DelayTrace
from emuml.protocols.gradient_coding import VerifiedRepetition
from emuml.protocols.gradient_coding.votes import Votes
from tests.protocols.liars import honest, verified
from tests.protocols.training import versions


def cast(*values, replication=3, adversaries=1):
    """Return the votes of one group that said these things in this order."""
    code = VerifiedRepetition(replication, adversaries).build(replication)
    votes = Votes(code, code.needed)
    for worker, value in enumerate(values):
        votes.cast(worker, None if value is None else np.array(value))
    return votes


def test_zeros_of_two_signs_differ():
    assert cast([0.0], [-0.0]).verified() == {}
    assert cast([0.0], [0.0]).verified() == {0: 0}


def test_equal_payloads_of_no_numbers_are_equal():
    one, other = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(float)
    assert cast([one], [one]).verified() == {0: 0}
    assert cast([one], [other]).verified() == {}


def twins():
    """Return two different values of the same hash, which is linear in the bits."""
    base = bytes(8)
    reduced = {}
    for bit in range(64):
        changed, combination = crc32c((1 << bit).to_bytes(8, "little")) ^ crc32c(base), 1 << bit
        while changed and changed.bit_length() in reduced:
            other, with_ = reduced[changed.bit_length()]
            changed, combination = changed ^ other, combination ^ with_
        if not changed:
            return np.frombuffer(base), np.frombuffer(combination.to_bytes(8, "little"))
        reduced[changed.bit_length()] = changed, combination
    raise AssertionError("33 changes of 32 bits are dependent")


def test_values_of_one_hash_are_told_apart():
    first, second = twins()
    assert crc32c(first.tobytes()) == crc32c(second.tobytes())
    assert first.tobytes() != second.tobytes()
    assert cast(first, second).verified() == {}
    assert cast(first, second, second).verified() == {0: 1}


def test_the_round_is_open_until_a_value_is_confirmed_or_cannot_be():
    assert not cast([1.0]).closed
    assert cast([1.0], [1.0]).closed
    assert not cast([1.0], [2.0]).closed
    assert cast([1.0], [2.0], [3.0]).closed
    assert cast(None, None).closed
    assert not cast(None, [1.0], [2.0], replication=5, adversaries=2).closed
    assert cast(None, [1.0], [2.0], [3.0], replication=5, adversaries=2).closed


@pytest.mark.parametrize(
    ("values", "replication", "text"),
    [
        (([1.0], [2.0], [3.0]), 3, "at most 1 of 3 answers are equal, and 2 must be"),
        ((None, None), 3, "at most 0 of 2 answers are equal, and 2 must be"),
        (([1.0], [1.0], [2.0], [2.0]), 4, "2 answers differ from the value that 2 sent, more than 1 adversaries"),
        (([1.0], [1.0], [2.0], None), 4, "2 answers differ from the value that 2 sent, more than 1 adversaries"),
        (([1.0], [1.0], [2.0]), 4, ""),
    ],
)
def test_why_a_group_has_no_value(values, replication, text):
    votes = cast(*values, replication=replication)
    assert votes.doubt(0) == text
    assert bool(votes.verified()) == (not text)


def test_dissenters_are_those_who_said_something_else():
    assert cast([2.0], [1.0], [1.0]).dissenters() == [0]
    assert cast([2.0], [1.0], None, [1.0], [3.0], replication=5).dissenters() == [0, 4]


@pytest.mark.slow
@pytest.mark.parametrize("liars", [liars for count in range(3) for liars in combinations(range(5), count)])
def test_every_pair_of_colluders_is_outvoted_whoever_comes_first(liars):
    size = {"replication": 5, "adversaries": 2, "workers": 5, "rounds": 1}
    for early in (0.5, 1.5):
        delays = np.ones((1, 5))
        delays[0, list(liars)] = early
        run = verified(dict.fromkeys(liars, "colluding"), compute=DelayTrace(delays), **size)
        assert run.error is None
        assert versions(run) == honest(**size)

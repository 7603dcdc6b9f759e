"""Wrong implementations of gradient codes, seen in public programs or easy to write: the checks must catch each.

Every test first shows that ours passes the very assertion that the mutant fails.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
import pytest

from emuml.protocols.gradient_coding.codes import Decoding, FractionalRepetition, GroupCode, IgnoreStragglers
from emuml.shapes import CoverOrCount
from emuml.theory import coverage_probabilities
from emuml.workloads.partitions import partition_bounds
from tests.protocols.code_checks import (
    ERASUREHEAD_MEANS,
    check_coverage,
    check_decoding,
    check_exact,
    check_replicas_equal,
    check_rows_shared_out,
    check_structure,
    check_trace_mean,
    check_unbiased,
)

GRADIENTS = np.random.default_rng(4).integers(-50, 50, (6, 3)).astype(float)


def as_mutant(mutant, code):
    """Return the wrong variant of a built code."""
    return mutant(code.workers, code.n_groups, code.block, code.scale, code.collect)


def caught(check, *arguments):
    """Assert that a check fails."""
    with pytest.raises(AssertionError):
        check(*arguments)


class Unscaled(GroupCode):
    """W4: claims to be unbiased and leaves out ``1/(1-p)``, while the baseline is rescaled."""

    def _factors(self, covered):
        return 1.0


def test_w4_missing_factor_is_caught_by_the_mean_over_all_responders():
    code = FractionalRepetition(2, "unbiased").build(6, collect=3)

    check_unbiased(code, GRADIENTS, 3)
    caught(check_unbiased, as_mutant(Unscaled, code), GRADIENTS, 3)


class TrueDivision(GroupCode):
    """W6: the first partition of a worker is ``w / r * r``, which true division makes ``w``."""

    def assignment(self, worker):
        first = int(worker / self.block * self.block)
        return tuple(range(first, first + self.block))


def test_w6_true_division_is_caught_by_the_structure():
    code = FractionalRepetition(3).build(12)

    check_structure(code, 3)
    caught(check_structure, as_mutant(TrueDivision, code), 3)


class Rotated(GroupCode):
    """W9: each replica starts its sum at its own partition, so the last bits differ."""

    def assignment(self, worker):
        held = super().assignment(worker)
        start = worker % self.block
        return held[start:] + held[:start]


def test_w9_rotated_sums_are_caught_by_comparing_the_bits_of_replicas():
    code = FractionalRepetition(3).build(12)
    gradients = np.random.default_rng(8).standard_normal((12, 5))

    check_replicas_equal(code, gradients)
    caught(check_replicas_equal, as_mutant(Rotated, code), gradients)
    caught(check_structure, as_mutant(Rotated, code), 3)


class AddedAgain(GroupCode):
    """W10: a second answer of a covered group is added once more."""

    def decode(self, received):
        decoding = super().decode(received)
        return Decoding(np.ones(len(decoding.weights)), decoding.error, decoding.covered_groups, decoding.noise_gain)


def test_w10_a_group_added_twice_is_caught_by_exact_sums():
    code = FractionalRepetition(2).build(6, collect=6)
    everybody = list(range(6))

    check_exact(code, GRADIENTS, everybody)
    caught(check_exact, as_mutant(AddedAgain, code), GRADIENTS, everybody)
    caught(check_decoding, as_mutant(AddedAgain, code), everybody)


def floor_division_bounds(rows, partitions):
    """W12: every partition has ``rows // partitions`` rows, and the remainder is in none."""
    return np.arange(partitions + 1) * (rows // partitions)


def test_w12_dropped_rows_are_caught_by_counting_them():
    check_rows_shared_out(partition_bounds(455, 30), 455, 30)
    caught(check_rows_shared_out, floor_division_bounds(455, 30), 455, 30)


@dataclass(frozen=True)
class DroppedWorkers(GroupCode):
    """W12 for workers: groups of exactly ``workers // n_groups``, and the remainder is in none."""

    @cached_property
    def group_sizes(self):
        return (self.workers // self.n_groups,) * self.n_groups

    @cached_property
    def _group_of(self):
        return np.minimum(np.arange(self.workers) // self.group_sizes[0], self.n_groups - 1)


def test_w12_workers_left_without_a_group_are_caught_by_the_structure():
    code = FractionalRepetition(3).build(11)

    check_structure(code, 3)
    caught(check_structure, as_mutant(DroppedWorkers, code), 3)


class ScaledByDesign(GroupCode):
    """W20: divides by the number that was to be collected, whatever number came."""

    def _factors(self, covered):
        return self.workers / self.collect


def test_w20_scaling_by_the_planned_number_is_caught_when_another_number_comes():
    code = IgnoreStragglers().build(6, collect=4)
    mutant = as_mutant(ScaledByDesign, code)

    check_unbiased(code, GRADIENTS, 5)
    check_unbiased(mutant, GRADIENTS, 4)
    caught(check_unbiased, mutant, GRADIENTS, 5)


def float_inclusion_exclusion(sizes, arrivals):
    """W21: the alternating sum, in floats, for equal groups."""
    m, r, n = len(sizes), sizes[0], sum(sizes)
    terms = [
        [(-1.0) ** i * float(comb(m, i)) * (comb(n - r * i, j) / comb(n, j)) for i in range(m + 1)]
        for j in range(arrivals + 1)
    ]
    return np.array([sum(row) for row in terms])


def test_w21_inclusion_and_exclusion_in_floats_is_caught_with_many_workers():
    assert float_inclusion_exclusion([2] * 5, 10) == pytest.approx(coverage_probabilities([2] * 5), abs=1e-12)

    check_coverage(coverage_probabilities, [2] * 60)
    caught(check_coverage, float_inclusion_exclusion, [2] * 60)


@dataclass(frozen=True)
class CountsGroups(CoverOrCount):
    """W24: the count is compared with the number of covered groups, not of workers."""

    def stop_index(self, order):
        groups = self.cover.group_array[order]
        first_of_group = np.sort(np.unique(groups, return_index=True)[1])
        needed = min(self.count, len(self.groups))
        return int(first_of_group[needed - 1]) + 1


def test_w24_counting_groups_is_caught_by_the_mean_on_the_trace():
    rule = FractionalRepetition(3).build(30, collect=15).stop_rule()
    mutant = CountsGroups(rule.groups, rule.count)

    check_trace_mean(rule, 3, 15)
    caught(check_trace_mean, mutant, 3, 15)
    check_trace_mean(mutant, 3, None)
    assert ERASUREHEAD_MEANS[3, None] != ERASUREHEAD_MEANS[3, 15]

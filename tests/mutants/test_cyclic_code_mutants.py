"""Wrong implementations of cyclic codes: the checks must catch each.

Every test first shows that ours passes the very assertion that the mutant fails.
"""

from itertools import combinations

import numpy as np
import pytest

from emuml.protocols.gradient_coding import CyclicMDS, CyclicRepetition
from emuml.protocols.gradient_coding.codes.cyclic import cyclic_factors, parity_check
from emuml.protocols.gradient_coding.codes.cyclic_code import CyclicCode, cyclic_rows
from emuml.protocols.gradient_coding.decoders.conditioning import Unsound
from emuml.protocols.gradient_coding.decoders.least_squares import LeastSquares
from emuml.protocols.gradient_coding.decoders.null_space import NullSpace, shortest
from emuml.protocols.gradient_coding.decoders.seam import Weights
from emuml.shapes import Count
from tests.protocols.code_checks import (
    check_exact_within_bound,
    check_h,
    check_linear_decoding,
    check_nothing_is_tabulated,
    check_unbiased,
    integer_gradients,
    subsets,
)

WORKERS, STRAGGLERS = 8, 2
GRADIENTS = integer_gradients(WORKERS, seed=4)


def code_of(factors, decoder=LeastSquares, *arguments, stragglers=STRAGGLERS):
    """Return a code with these rows on cyclic supports."""
    order = np.arange(len(factors))
    rows = cyclic_rows(factors, order)
    rule = Count(len(factors), len(factors) - stragglers)
    return CyclicCode(rows, rule, decoder(rows, *arguments), None, stragglers, 1.0, order)


def caught(check, *arguments):
    """Assert that a check fails."""
    with pytest.raises(AssertionError):
        check(*arguments)


def ours():
    return CyclicRepetition(STRAGGLERS).build(WORKERS, seed=3)


def real_part():
    """W17: the code of a difference that is even, whose factors are complex, without their imaginary parts."""
    roots = np.exp(2j * np.pi * (np.arange(STRAGGLERS) + (WORKERS - STRAGGLERS) // 2) / WORKERS)
    factors = np.poly(roots)[::-1]
    assert np.abs(factors.imag).max() > 0.1
    return np.tile(factors.real, (WORKERS, 1))


def test_w17_the_real_part_of_a_complex_code_is_caught_by_exactness():
    wrong = code_of(real_part())
    failed = 0
    for received in subsets(WORKERS, WORKERS - STRAGGLERS):
        check_exact_within_bound(ours(), GRADIENTS, received)
        failed += wrong.decode(received).error > 0.01
    assert failed > 14  # of 28
    caught(check_all_exact, wrong)
    with pytest.raises(Unsound):
        check_all_exact(code_of(real_part(), NullSpace, STRAGGLERS))


def check_all_exact(code):
    for received in subsets(WORKERS, WORKERS - STRAGGLERS):
        check_exact_within_bound(code, GRADIENTS, received)


def without_row_sums():
    """W18: H is normal numbers throughout, and its rows do not sum to 0."""
    checks = parity_check(WORKERS, STRAGGLERS, seed=3).copy()
    checks[:, -1] = [0.3, -1.2]
    return checks


def test_w18_h_without_zero_row_sums_is_caught_by_structure_and_by_exactness():
    checks = without_row_sums()
    wrong = code_of(cyclic_factors(checks))

    check_h(parity_check(WORKERS, STRAGGLERS, seed=3), ours())
    caught(check_h, checks, wrong)
    check_all_exact(ours())
    for received in [range(WORKERS), *subsets(WORKERS, WORKERS - STRAGGLERS)]:
        assert wrong.decode(received).error > 0.01
        caught(check_exact_within_bound, wrong, GRADIENTS, received)


class NeverChecked(NullSpace):
    """W19: the small system is solved whether it has a solution or not, and the weights are said to be exact."""

    def weights(self, received):
        missing = np.setdiff1d(np.arange(self.rows.workers), received)
        start, null = self.basis
        if missing.size <= self.stragglers:
            found = shortest(null[missing], -start[missing])
        else:
            found = np.linalg.lstsq(null[missing], -start[missing], rcond=None)[0]
        values = (start + null @ found)[received]
        return Weights(values, 0.0, self.rows.judged(received, values).noise_gain)


def test_w19_a_residual_that_nobody_looks_at_is_caught_beyond_s_stragglers():
    code = ours()
    factors = cyclic_factors(parity_check(WORKERS, STRAGGLERS, seed=3))
    wrong = code_of(factors, NeverChecked, STRAGGLERS)

    for received in ([0, 2, 3, 4, 6, 7], [1, 2, 5, 7]):
        check_linear_decoding(code, received)
    check_linear_decoding(wrong, [0, 2, 3, 4, 6, 7])
    caught(check_linear_decoding, wrong, [1, 2, 5, 7])


class OneStep:
    """Equal weights, whose mean over all sets of responders decodes exactly; for the code with equal rows."""

    is_cheap = True

    def __init__(self, rows):
        self.rows = rows

    def weights(self, received):
        total = float(self.rows.values.sum()) / self.rows.workers * self.answers(received)
        return self.rows.judged(received, np.full(received.size, self.rows.workers / total))

    def answers(self, received):
        return received.size


class ScaledByDesign(OneStep):
    """W20: divides by the number of answers that the code can do with, whatever number was collected."""

    def answers(self, received):
        return self.rows.workers - STRAGGLERS


def test_w20_scaling_by_the_planned_number_is_caught_when_another_number_is_collected():
    factors = np.tile([1.0, 2.0, 0.5], (WORKERS, 1))
    right, wrong = code_of(factors, OneStep), code_of(factors, ScaledByDesign)

    check_unbiased(right, GRADIENTS, 4)
    check_unbiased(wrong, GRADIENTS, WORKERS - STRAGGLERS)
    caught(check_unbiased, wrong, GRADIENTS, 4)


class Tabulated(NullSpace):
    """W25: the weights of all patterns of stragglers are computed when the code is made."""

    def __init__(self, rows, stragglers):
        super().__init__(rows, stragglers)
        patterns = combinations(range(rows.workers), rows.workers - stragglers)
        table = {received: NullSpace.weights(self, np.array(received)) for received in patterns}
        object.__setattr__(self, "table", table)

    def weights(self, received):
        return self.table.get(tuple(received.tolist())) or super().weights(received)


def test_w25_a_table_of_all_patterns_is_caught_by_its_size():
    factors = cyclic_factors(parity_check(12, 4, seed=1))  # 495 patterns

    check_nothing_is_tabulated(CyclicRepetition(4).build(12, seed=1))
    check_nothing_is_tabulated(CyclicMDS(5).build(30))
    check_nothing_is_tabulated(CyclicRepetition(20).build(60))  # 4e15 patterns: no table would ever be done
    caught(check_nothing_is_tabulated, code_of(factors, Tabulated, 4, stragglers=4))

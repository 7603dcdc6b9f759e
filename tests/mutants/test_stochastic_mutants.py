"""Wrong stochastic codes that the checks of unbiased sums must catch."""

from dataclasses import dataclass

import numpy as np
import pytest

from emuml.protocols.gradient_coding.codes.designs import placement
from emuml.protocols.gradient_coding.codes.stochastic import StochasticCode, sum_code
from emuml.theory import sum_moments
from tests.protocols.code_checks import check_unbiased, integer_gradients


@dataclass(frozen=True)
class Unscaled(StochasticCode):
    """W4: leaves out ``1/(1-p)``."""

    def build(self, workers, seed=0, collect=None):
        holders = placement(workers, self.replication, seed, "code/stochastic")
        return sum_code(holders, np.full(holders.shape, 1.0 / self.replication), workers, collect)


@dataclass(frozen=True)
class ScaledForTolerance(StochasticCode):
    """W20: scales for the number of answers that a code of this replication needs, whatever number is collected."""

    def build(self, workers, seed=0, collect=None):
        holders = placement(workers, self.replication, seed, "code/stochastic")
        present = (workers - self.replication + 1) / workers
        return sum_code(holders, np.full(holders.shape, 1.0 / (self.replication * present)), workers, collect)


@pytest.mark.parametrize("wrong", [Unscaled(3), ScaledForTolerance(3)])
def test_wrong_scaling_is_caught_by_the_mean_over_all_sets(wrong):
    check_unbiased(StochasticCode(3).build(7, collect=4), integer_gradients(7), 4)
    with pytest.raises(AssertionError):
        check_unbiased(wrong.build(7, collect=4), integer_gradients(7), 4)


def test_w4_is_seen_in_the_mean_coefficients():
    right, wrong = (
        sum_moments(code.build(7).encode_matrix, 0.25).mean for code in (StochasticCode(3, 0.25), Unscaled(3))
    )
    assert right == pytest.approx(np.ones(7), rel=1e-12)
    assert wrong == pytest.approx(np.full(7, 0.75), rel=1e-12)

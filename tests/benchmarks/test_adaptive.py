"""The benchmark of adaptive coding compares with the best fixed choice on the same delays."""

import numpy as np
import pytest

from benchmarks.adaptive import compared
from benchmarks.delay_cases import STATIONARY, Case, changing, law, stationary


def test_on_constant_delays_only_exploration_is_lost() -> None:
    """One round of load 2 among twenty of load 1."""
    case = Case("constant", 12, 20, lambda seed: lambda i, load: np.full(12, load))

    figure = compared(case, "exact", seeds=2, target=1.05)

    assert figure.ratio == pytest.approx(1.05)
    assert figure.details["best_fixed"] == "r = 1, c = 12"
    assert figure.details["standard_error"] == 0


def test_laws_have_the_form_that_their_name_says() -> None:
    fixed, scaled = law("A exponential 0.5", 5, 3, 1), law("B exponential 0.5", 5, 3, 1)

    np.testing.assert_allclose(np.asarray(fixed(2, 4.0)) - fixed(2, 1.0), 1.5)
    np.testing.assert_allclose(scaled(2, 4.0), 4 * np.asarray(scaled(2, 1.0)))
    np.testing.assert_allclose(fixed(2, 1.0), scaled(2, 1.0))


def test_cases_give_times_of_all_workers_in_all_rounds() -> None:
    cases = [*stationary(9, (4,)), *changing(9)]

    assert len(cases) == len(STATIONARY) + 6
    for case in cases:
        times_of = case.of(0)
        for i in range(case.rounds):
            times = np.asarray(times_of(i, 2.0))
            assert times.shape == (case.workers,)
            assert (times > 0).all()

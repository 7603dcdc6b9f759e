"""Where training with approximate gradients settles: exact for quadratics, a bound otherwise."""

import numpy as np
import pytest

from emuml.protocols.gradient_coding.codes import FractionalRepetition
from emuml.theory import agc_moments, descent_factor, largest_step, noise_floor, second_moment_recursion
from tests.protocols.code_checks import subsets

CENTRES = np.random.default_rng(2).standard_normal((4, 2))


@pytest.mark.parametrize(
    ("case", "step", "factor", "stationary", "unbiased_factor", "unbiased_stationary"),
    [
        ((30, 3, 15), 0.05, 0.310732759, 3.759058915e-4, 0.251976624, 4.393322956e-4),
        ((30, 5, 15), 0.05, 0.499174163, 1.046913186e-4, 0.490295965, 1.073441866e-4),
        ((12, 3, 5), 0.10, 0.443636364, 2.723311547e-3, 0.364558072, 3.371957575e-3),
    ],
)
def test_public_table(case, step, factor, stationary, unbiased_factor, unbiased_stationary):
    plain = second_moment_recursion(step, agc_moments(*case))
    unbiased = second_moment_recursion(step, agc_moments(*case), scale="unbiased")

    assert (plain.factor, unbiased.factor) == pytest.approx((factor, unbiased_factor), abs=5.1e-10)
    assert (plain.stationary, unbiased.stationary) == pytest.approx((stationary, unbiased_stationary), rel=1e-9)


def quadratic_step(point, factors, step, curvature):
    """Return every possible next point, one row per set of responders."""
    gradients = curvature * (point - CENTRES)
    return point - step * (factors @ gradients)


def all_factors(scale):
    code = FractionalRepetition(3, scale).build(12, collect=5)
    return np.array(
        [
            np.bincount(np.array(received) // 3, code.decode(received).weights, minlength=4)
            for received in subsets(12, 5)
        ]
    )


@pytest.mark.parametrize("scale", ["none", "unbiased"])
@pytest.mark.parametrize("curvature", [1.0, 2.5])
def test_one_step_of_the_recursion_over_all_sets_of_responders(scale, curvature):
    step, optimum = 0.07, CENTRES.mean(axis=0)
    spread = float(np.sum((CENTRES - optimum) ** 2))
    recursion = second_moment_recursion(step, agc_moments(12, 3, 5), curvature, spread, scale)
    start = optimum + np.array([0.3, -1.2])
    ends = quadratic_step(start, all_factors(scale), step, curvature)

    mean_square = np.mean(np.sum((ends - optimum) ** 2, axis=1))
    assert mean_square == pytest.approx(recursion.after(1, float(np.sum((start - optimum) ** 2))), rel=1e-12)


def test_many_steps_lead_to_the_stationary_value():
    recursion = second_moment_recursion(0.05, agc_moments(30, 3, 15))
    value = 7.0
    for _ in range(12):
        value = recursion.factor * value + recursion.noise

    assert recursion.after(12, 7.0) == pytest.approx(value, rel=1e-12)
    assert recursion.after(1000, 7.0) == pytest.approx(recursion.stationary, rel=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_floor_is_the_fixed_point_of_the_descent_bound(share):
    moments, pl_constant, smoothness, group_norms = agc_moments(12, 3, 5), 0.5, 4.0, 3.0
    step = share * largest_step(smoothness, moments)
    noise = smoothness * step**2 * moments.second_moment()[1] * group_norms / 2
    floor = noise_floor(step, pl_constant, smoothness, moments, group_norms)
    factor = descent_factor(step, pl_constant, smoothness, moments)

    assert factor < 1.0
    assert factor * floor + noise == pytest.approx(floor, rel=1e-12)


def test_at_the_largest_step_nothing_is_gained():
    moments = agc_moments(12, 3, 5)

    assert descent_factor(largest_step(4.0, moments), 0.5, 4.0, moments) == pytest.approx(1.0)


def test_the_descent_bound_holds_over_all_sets_of_responders():
    # The sum of four quadratics: smoothness and PL constant are both 4 h.
    step, curvature, optimum = 0.05, 1.0, CENTRES.mean(axis=0)
    moments, start = agc_moments(12, 3, 5), optimum + np.array([0.8, 0.1])
    norms = float(np.sum((curvature * (start - CENTRES)) ** 2))
    ends = quadratic_step(start, all_factors("none"), step, curvature)

    def excess(points):
        return 2.0 * curvature * np.sum((points - optimum) ** 2, axis=-1)

    noise = 4.0 * step**2 * moments.second_moment()[1] * norms / 2
    assert np.mean(excess(ends)) <= descent_factor(step, 4.0, 4.0, moments) * excess(start) + noise + 1e-12


def test_no_floor_when_no_group_can_be_missed():
    assert noise_floor(0.1, 1.0, 2.0, agc_moments(12, 3, 10), group_norms=5.0) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["none", "unbiased"])
@pytest.mark.parametrize("case", [(30, 3, 15), (30, 5, 15), (12, 3, 5)])
def test_a_simulated_training_settles_where_the_recursion_says_and_below_the_floor(case, scale):
    # Means over 60 trainings side by side: four standard errors of them; the start is forgotten within 40 steps.
    (workers, replication, collect), step, trainings, steps = case, 0.05, 60, 240
    moments, generator = agc_moments(*case), np.random.default_rng(7)
    centres = generator.standard_normal((workers // replication, 3))
    centres -= centres.mean(axis=0)
    spread, length = float(np.sum(centres**2)), step / (1 - moments.miss if scale == "unbiased" else 1)
    points, squares, norms = np.ones((trainings, 3)), np.empty((steps, trainings)), 0.0
    for t in range(steps):
        answered = np.argsort(generator.random((trainings, workers)), axis=1) < collect
        covered = answered.reshape(trainings, -1, replication).any(axis=2)
        gradients = points[:, None, :] - centres
        norms = max(norms, float(np.max(np.sum(gradients**2, axis=(1, 2))))) if t >= 40 else 0.0
        points = points - length * np.einsum("tg,tgc->tc", covered, gradients)
        squares[t] = np.sum(points**2, axis=1)
    settled = squares[40:].mean(axis=0)

    recursion = second_moment_recursion(step, moments, spread=spread, scale=scale)
    assert abs(settled.mean() - recursion.stationary) < 4 * settled.std(ddof=1) / trainings**0.5
    if scale == "none":  # the sum of m quadratics: smoothness and PL constant are m, the excess is m/2 |e|^2
        m = moments.groups
        assert m / 2 * settled.mean() <= noise_floor(step, m, m, moments, norms)

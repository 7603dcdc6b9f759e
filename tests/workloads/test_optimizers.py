"""Steps and schedules: the recursions, and that they reach the optimum."""

from dataclasses import replace

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.workloads import AcceleratedGradientDescent, Constant, Exponential, GradientDescent, InverseTime, Schedule

OPTIMIZERS = [GradientDescent, AcceleratedGradientDescent]


def train(problem, rounds):
    """Losses after each round, the first before any."""
    state, parameters = problem.start(), problem.initial
    losses = [problem.loss(parameters)]
    for i in range(rounds):
        gradient = problem.gradient(parameters, (0, 1, 2), 3, draw=i).run()
        state, parameters = problem.step(state, parameters, gradient, i)
        losses.append(problem.loss(parameters))
    return parameters, np.array(losses)


def ridge_optimum(problem):
    """Closed form: the least squares of the rows and of one row sqrt(N l2) for each parameter."""
    stacked = np.vstack([problem.features, np.sqrt(problem.rows * problem.l2) * np.eye(problem.n_parameters)])
    wanted = np.concatenate([problem.targets, np.zeros(problem.n_parameters)])
    return np.linalg.lstsq(stacked, wanted, rcond=None)[0]


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_gradient_descent_is_a_gradient_step_of_the_objective(make, model):
    problem = make(model, l2=0.05, optimizer=GradientDescent(rate=0.3))
    at = np.array([0.3, -0.2, 0.5, 0.1])
    width = 1e-5
    slope = [(problem.loss(at + e) - problem.loss(at - e)) / (2 * width) for e in width * np.eye(4)]
    state, after = problem.step(problem.start(), at, problem.gradient(at, (0, 1), 2).run(), 0)
    assert state == ()
    np.testing.assert_allclose(after, at - 0.3 * np.array(slope), rtol=0, atol=1e-8)


def test_gradient_descent_recursion():
    _, after = GradientDescent(rate=0.5).step((), np.array([2.0]), np.array([8.0]), 0, rows=4, l2=0.25)
    assert after == [(1 - 2 * 0.25 * 0.5) * 2.0 - (0.5 / 4) * 8.0]


def test_accelerated_recursion_by_hand():
    # rate 1, 1 row, l2 0, gradients 1: theta is 1, 2/3, 1/2.
    optimizer = AcceleratedGradientDescent(rate=1.0)
    at, one = np.array([5.0]), np.array([1.0])
    state = optimizer.start(at)
    seen = []
    for i in range(3):
        state, at = optimizer.step(state, at, one, i, rows=1, l2=0.0)
        seen.append((at[0], state[0][0]))
    # y0 = 5, b1 = 4, v1 = 4; y1 = 4, b2 = 3, v2 = 4 - 3/2 = 2.5; y2 = 2.75, b3 = 1.75, v3 = 3 - 2.5 = 0.5
    np.testing.assert_allclose(seen, [(4, 4), (3, 2.5), (1.75, 0.5)], rtol=1e-15)


def test_accelerated_regulariser_is_taken_at_the_parameters():
    optimizer = AcceleratedGradientDescent(rate=0.5)
    state, at = (np.array([2.0]),), np.array([8.0])
    (momentum,), after = optimizer.step(state, at, np.array([4.0]), 1, rows=2, l2=0.125)
    # theta = 2/3: y = 8/3 + 4/3 = 4; b' = 4 - 1 - 2 * 0.125 * 0.5 * 8 = 2; v' = 8 - 6 * 1.5 = -1
    np.testing.assert_allclose([after[0], momentum[0]], [2.0, -1.0], rtol=1e-15)


def keeps_the_initial_parameters(problem):
    at = problem.initial
    gradient = problem.gradient(at, (0,), 1).run()
    _, after = problem.step(problem.start(), at, gradient, 0)
    rate = problem.optimizer.rate_at(0)
    return np.allclose(after, at - rate / problem.rows * gradient - 2 * problem.l2 * rate * at, rtol=1e-14, atol=0)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_first_step_starts_at_the_initial_parameters(make, optimizer):
    assert keeps_the_initial_parameters(make(initial=np.array([1.0, -2.0, 3.0, 0.5]), optimizer=optimizer(rate=0.1)))


def test_a_momentum_point_at_zero_would_be_noticed(make):
    class Original(AcceleratedGradientDescent):  # W13
        def start(self, parameters):
            return (np.zeros_like(parameters),)

    problem = make(initial=np.array([1.0, -2.0, 3.0, 0.5]), optimizer=Original(rate=0.1))
    assert not keeps_the_initial_parameters(problem)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_linear_training_reaches_the_closed_form(make, optimizer):
    problem = make(rows=40, l2=0.1, initial=np.full(4, 2.0), optimizer=optimizer(rate=0.2))
    found, losses = train(problem, 800)
    optimum = ridge_optimum(problem)
    # Gradient descent is done to rounding; the accelerated recursion decays as a power of the round: 800**-1.5 = 4e-5.
    np.testing.assert_allclose(found, optimum, rtol=0, atol=1e-3)
    assert 0 <= losses[-1] - problem.loss(optimum) + 1e-15 < 1e-6


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_logistic_training_reaches_a_stationary_point(make, optimizer):
    problem = make("logistic", rows=40, l2=0.1, optimizer=optimizer(rate=0.5))
    found, losses = train(problem, 800)
    mean_slope = problem.gradient(found, (0,), 1).run() / problem.rows + 2 * problem.l2 * found
    assert np.abs(mean_slope).max() < 1e-4
    assert losses[-1] < losses[0]


def test_acceleration_is_faster_where_curvatures_differ(make):
    round_one = make(rows=60, l2=1e-5)
    long_one = replace(round_one, features=round_one.features * np.array([1.0, 0.3, 0.1, 0.03]))
    rate = 0.9 * long_one.rows / (2 * np.linalg.norm(long_one.features, 2) ** 2)

    def gap(optimizer):
        problem = replace(long_one, optimizer=optimizer(rate=rate))
        return train(problem, 100)[1][-1] - problem.loss(ridge_optimum(problem))

    assert gap(AcceleratedGradientDescent) < 0.3 * gap(GradientDescent)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_make_new_read_only_arrays(make, optimizer):
    problem = make(initial=np.ones(4), optimizer=optimizer(rate=0.1))
    state, at = problem.start(), problem.initial
    gradient = np.ones(4)
    before = [array.copy() for array in (*state, at, gradient)]
    after_state, after = problem.step(state, at, gradient, 0)
    for array, kept in zip((*state, at, gradient), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert not any(array.flags.writeable for array in (*state, *after_state, after, problem.initial))
    assert not any(np.shares_memory(new, old) for new in (*after_state, after) for old in (*state, at, gradient))


def test_schedules():
    assert [Constant().factor(i) for i in (0, 9)] == [1.0, 1.0]
    assert [Exponential(0.5).factor(i) for i in range(3)] == [1.0, 0.5, 0.25]
    assert [InverseTime(0.5).factor(i) for i in (0, 2, 4)] == [1.0, 0.5, 1 / 3]
    assert GradientDescent(rate=0.1, schedule=Exponential(0.98)).rate_at(3) == 0.1 * 0.98**3


def test_the_schedule_moves_the_step():
    optimizer = GradientDescent(rate=1.0, schedule=InverseTime(1.0))
    steps = [optimizer.step((), np.zeros(1), np.ones(1), i, rows=1, l2=0.0)[1][0] for i in range(3)]
    assert steps == [-1.0, -0.5, -1 / 3]


@pytest.mark.parametrize(
    ("make_it", "where"),
    [
        (lambda: GradientDescent(rate=0.0), "GradientDescent.rate"),
        (lambda: GradientDescent(rate=float("nan")), "GradientDescent.rate"),
        (lambda: AcceleratedGradientDescent(schedule="constant"), "AcceleratedGradientDescent.schedule"),
        (lambda: Exponential(1.5), "Exponential.decay"),
        (lambda: Exponential(0), "Exponential.decay"),
        (lambda: InverseTime(-1), "InverseTime.decay"),
        (lambda: GradientDescent().rate_at(0), "GradientDescent.rate"),
    ],
)
def test_wrong_settings_are_named(make_it, where):
    with pytest.raises(UserError) as caught:
        make_it()
    assert caught.value.where == where
    assert caught.value.allowed


def test_bases_say_what_is_missing():
    with pytest.raises(NotImplementedError):
        Schedule().factor(0)

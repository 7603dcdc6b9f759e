"""Gradients of partitions: right, exact in their sums, the same for replicas, and stoppable."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import ContractError, TaskCancelled
from emuml.workloads import gradients
from emuml.workloads.gradients import partition_gradient
from emuml.workloads.losses import LOSSES, gradient_sum
from emuml.workloads.partitions import partition_rows

MODELS = ["logistic", "linear"]


def full_gradient(problem, parameters):
    """The sum over all rows, by one plain formula."""
    margins = problem.features @ parameters
    if problem.model == "linear":
        return -2.0 * problem.features.T @ (problem.targets - margins)
    return -problem.features.T @ (problem.targets / (1.0 + np.exp(problem.targets * margins)))


def data_term(problem, parameters):
    return problem.rows * (problem.loss(parameters) - problem.l2 * parameters @ parameters)


def finite_differences(function, at, width=1e-5):
    steps = width * np.eye(len(at))
    return np.array([(function(at + step) - function(at - step)) / (2 * width) for step in steps])


def everything(problem, parameters, partitions, **options):
    return problem.gradient(parameters, tuple(range(partitions)), partitions, **options).run()


@pytest.mark.parametrize("model", MODELS)
def test_gradient_is_the_slope_of_the_loss(make, model):
    problem = make(model)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    slope = finite_differences(lambda b: data_term(problem, b), at)
    # Central differences: curvature errors of about 1e-10 and rounding of about 1e-16 * loss / 1e-5.
    np.testing.assert_allclose(everything(problem, at, 5), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_gradient_is_the_formula(make, model):
    problem = make(model)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    np.testing.assert_allclose(everything(problem, at, 3), full_gradient(problem, at), rtol=1e-12)


@pytest.mark.slow
@given(
    rows=st.integers(1, 60),
    share=st.floats(0, 1),
    chunk_rows=st.integers(1, 70),
    columns=st.integers(1, 6),
    seed=st.integers(0, 999),
)
def test_partitions_add_up_exactly_where_sums_are_exact(make, rows, share, chunk_rows, columns, seed):
    problem = make(rows=rows, columns=columns, chunk_rows=chunk_rows, seed=seed, whole=True)
    at = np.arange(columns, dtype=float) - 2.0
    partitions = 1 + int(share * (rows - 1))
    parts = [problem.gradient(at, (i,), partitions).run() for i in range(partitions)]
    np.testing.assert_array_equal(sum(parts), full_gradient(problem, at))
    np.testing.assert_array_equal(everything(problem, at, partitions), full_gradient(problem, at))


@given(rows=st.integers(1, 60), share=st.floats(0, 1), chunk_rows=st.integers(1, 70), seed=st.integers(0, 999))
def test_partitions_add_up_to_rounding_elsewhere(make, rows, share, chunk_rows, seed):
    problem = make("logistic", rows=rows, chunk_rows=chunk_rows, seed=seed)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    partitions = 1 + int(share * (rows - 1))
    size = np.abs(problem.features).sum()
    error = everything(problem, at, partitions) - full_gradient(problem, at)
    assert np.abs(error).max() <= 1e-12 * size


@pytest.mark.parametrize("model", MODELS)
def test_the_last_partition_and_the_last_row_count(make, model):
    # W3 leaves the last partition out of the metrics; W12 leaves the remainder rows out of every partition.
    whole = make(model, rows=23)
    targets = whole.targets.copy()
    targets[-1] *= -1.0
    other = replace(whole, targets=targets)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    assert whole.loss(at) != other.loss(at)
    assert (everything(whole, at, 5) != everything(other, at, 5)).any()
    last = [problem.gradient(at, (4,), 5).run() for problem in (whole, other)]
    assert (last[0] != last[1]).any()


@pytest.mark.parametrize("lost", ["last partition", "remainder rows"])
def test_a_gradient_without_some_rows_would_be_noticed(make, lost, monkeypatch):
    def mutant(rows, partition, partitions):
        if lost == "last partition":
            return partition_rows(rows, partition, partitions) if partition < partitions - 1 else range(1)
        size = rows // partitions
        return range(partition * size, (partition + 1) * size)

    problem = make(rows=23, whole=True)
    at = np.ones(4)
    np.testing.assert_array_equal(everything(problem, at, 5), full_gradient(problem, at))
    monkeypatch.setattr(gradients, "partition_rows", mutant)
    assert (everything(problem, at, 5) != full_gradient(problem, at)).any()


def test_owned_partitions_are_added_in_ascending_order_with_their_coefficients(make):
    problem = make("logistic")
    at = np.array([0.3, -0.2, 0.5, 0.1])
    zero, two, four = (problem.gradient(at, (i,), 5).run() for i in (0, 2, 4))
    given_backwards = problem.gradient(at, (4, 0, 2), 5, coefficients=(0.5, 3.0, -1.0))
    np.testing.assert_array_equal(given_backwards.run(), (3.0 * zero + -1.0 * two) + 0.5 * four)
    assert given_backwards.key() == problem.gradient(at, (0, 2, 4), 5, coefficients=(3.0, -1.0, 0.5)).key()


def test_replicas_have_equal_keys_and_others_do_not(make):
    at, same_value = np.ones(4), np.ones(4)
    key = make().gradient(at, (1, 2), 5, draw=7).key()
    assert key == make().gradient(at, (1, 2), 5, draw=8).key()  # without batches the draw moves no value
    assert hash(key) == hash(make().gradient(at, (1, 2), 5).key())
    others = [
        make().gradient(at, (1, 3), 5),
        make().gradient(at, (1, 2), 6),
        make().gradient(at, (1, 2), 5, coefficients=(1.0, 2.0)),
        make().gradient(same_value, (1, 2), 5),
        make(seed=4).gradient(at, (1, 2), 5),
        make(l2=0.02).gradient(at, (1, 2), 5),
    ]
    assert all(task.key() != key for task in others)


def test_the_value_depends_on_the_blocks_in_bits_only(make):
    at = np.array([0.3, -0.2, 0.5, 0.1])
    one, many = (everything(make("logistic", chunk_rows=chunk_rows), at, 2) for chunk_rows in (1, 100))
    np.testing.assert_allclose(one, many, rtol=1e-12)


def test_cost_and_shape_are_declared(make):
    assert make(rows=23).full_cost == 23.0
    task = make(rows=23).gradient(np.zeros(4), (0, 4), 5, draw=3)
    assert (task.cost, task.shape, task.dtype, task.draw, task.cancellable) == (4 + 5, (4,), "<f8", 3, True)
    assert make(rows=23, batch=2).gradient(np.zeros(4), (0, 4), 5, draw=3).cost == 4
    assert sum(make(rows=23).gradient(np.zeros(4), (i,), 5).cost for i in range(5)) == 23


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"owned": ()}, "distinct partitions of 0..4"),
        ({"owned": (1, 1)}, "distinct partitions of 0..4"),
        ({"owned": (5,)}, "distinct partitions of 0..4"),
        ({"owned": (-1,)}, "distinct partitions of 0..4"),
        ({"owned": (0, 1), "coefficients": (1.0,)}, "1 coefficients for 2 partitions"),
        ({"owned": (0,), "draw": None}, "needs a draw"),
    ],
)
def test_authors_mistakes_are_refused(make, options, message):
    owned = options.pop("owned")
    with pytest.raises(ContractError, match=message):
        make(batch=2).gradient(np.zeros(4), owned, 5, **{"draw": 0, **options})


@pytest.mark.parametrize("partitions", [1, 2])
def test_batches_are_unbiased_by_enumeration(make, partitions, monkeypatch):
    problem = make(rows=6, batch=2, whole=True)
    at = np.array([1.0, 0.0, -1.0, 2.0])
    subsets = list(combinations(range(6 // partitions), 2))
    values = []
    for choice in product(subsets, repeat=partitions):

        def chosen(rows, batch, seed, partition, draw, choice=choice):
            return rows.start + np.array(choice[partition]), len(rows) / batch

        monkeypatch.setattr(gradients, "batch_rows", chosen)
        values.append(everything(problem, at, partitions, draw=0))
    np.testing.assert_allclose(np.mean(values, axis=0), full_gradient(problem, at), rtol=1e-12)
    assert np.ptp(values, axis=0).max() > 0


def test_batches_are_equal_for_replicas_and_change_with_the_draw(make):
    at = np.ones(4)
    first, again = (make("logistic", batch=2).gradient(at, (1, 3), 5, draw=9) for _ in range(2))
    alone = [make("logistic", batch=2).gradient(at, (i,), 5, draw=9).run() for i in (1, 3)]
    assert first.key() == again.key()
    np.testing.assert_array_equal(first.run(), again.run())
    np.testing.assert_array_equal(first.run(), alone[0] + alone[1])
    weighed = make("logistic", batch=2).gradient(at, (1, 3), 5, (2.0, 0.5), draw=9)
    np.testing.assert_allclose(weighed.run(), 2.0 * alone[0] + 0.5 * alone[1], rtol=1e-13)
    other = make("logistic", batch=2).gradient(at, (1, 3), 5, draw=10)
    assert other.key() != first.key()
    assert (other.run() != first.run()).any()


def test_a_batch_is_the_scaled_sum_of_its_rows(make):
    problem = make(rows=20, batch=3, whole=True)
    at = np.ones(4)
    rows, factor = gradients.batch_rows(range(10, 20), 3, problem.seed, 1, 4)
    expected = gradient_sum(LOSSES["linear"], problem.features, problem.targets, rows, at, 128)
    np.testing.assert_array_equal(problem.gradient(at, (1,), 2, draw=4).run(), factor * expected)
    assert factor == 10 / 3


def test_a_batch_as_large_as_its_partition_is_the_partition(make):
    at = np.ones(4)
    np.testing.assert_array_equal(everything(make(batch=50), at, 3, draw=1), everything(make(), at, 3))


@pytest.mark.parametrize("asked_before_stop", [0, 1, 3])
def test_a_cancelled_gradient_stops_between_two_blocks(make, asked_before_stop):
    asked = 0

    def cancelled():
        nonlocal asked
        asked += 1
        return asked > asked_before_stop

    with pytest.raises(TaskCancelled):
        make(rows=40, chunk_rows=4).gradient(np.ones(4), (0, 1), 2).run(cancelled)
    assert asked == asked_before_stop + 1  # and not 10, as if it had gone on


def test_a_gradient_asks_once_for_each_block(make):
    asked = []
    make(rows=23, chunk_rows=4).gradient(np.ones(4), (0, 1), 2).run(lambda: bool(asked.append(1)))
    assert len(asked) == 3 + 3  # 11 and 12 rows


def test_huge_margins_do_not_overflow(make):
    with np.errstate(all="raise", under="ignore"):
        for sign in (1.0, -1.0):
            problem = make("logistic")
            at = np.full(4, sign * 1e6)
            margins = problem.targets * (problem.features @ at)
            wrong = margins < 0
            expected = -(problem.features[wrong].T @ problem.targets[wrong])
            np.testing.assert_allclose(everything(problem, at, 1), expected, rtol=1e-12)
            assert np.isfinite(problem.loss(at))


def test_logistic_slopes_at_any_margin():
    margins = np.array([-1e9, -800.0, -1.0, 0.0, 1.0, 36.0, 800.0, 1e9])
    slope = LOSSES["logistic"].slope
    with np.errstate(all="raise", under="ignore"):
        found = slope(margins, np.ones(8))
        np.testing.assert_array_equal(slope(-margins, -np.ones(8)), -found)
    # 1/(1+e) and 1/(1+e^36), the latter being exp(-36) to rounding
    expected = [-1, -1, -1 / (1 + np.exp(-1)), -0.5, -1 / (1 + np.exp(1)), -np.exp(-36.0), 0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)


def test_a_diverged_run_gives_no_warning(make):
    at = np.full(4, 1e200)
    problem = make("linear")
    assert not np.isfinite(problem.loss(at * 1e100))
    state, after = problem.step(problem.start(), at, everything(problem, at * 1e108, 3), 0)
    assert state == ()
    assert not np.isfinite(after).all()


def test_the_function_of_a_task_is_importable_and_pure(make):
    problem = make("logistic")
    at = np.ones(4)
    task = problem.gradient(at, (0,), 2)
    assert task.function is partition_gradient
    before = [array.copy() for array in (problem.features, problem.targets, at)]
    np.testing.assert_array_equal(task.run(), task.run())
    for array, kept in zip((problem.features, problem.targets, at), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shares", [1, 3, 7])
def test_pushes_add_up_to_the_gradient_of_the_objective(make, model, shares):
    problem = make(model, l2=0.3)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    total = sum(problem.push(at, share, shares, draw=0).run() for share in range(shares))
    step = 1e-6
    slopes = [(problem.loss(at + step * e) - problem.loss(at - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(total / problem.rows, slopes, rtol=1e-6, atol=1e-8)


def test_a_step_with_all_pushes_is_a_step_with_the_gradient(make):
    problem = make("logistic", l2=0.3)
    at = np.array([0.3, -0.2, 0.5, 0.1])
    pushes = sum(problem.push(at, share, 4, draw=0).run() for share in range(4))
    _, stepped = problem.step(problem.start(), at, everything(problem, at, 4), 5)
    _, applied = problem.apply(problem.start(), at, pushes, 5)
    np.testing.assert_allclose(applied, stepped, rtol=1e-13)


def test_a_push_costs_the_rows_that_it_reads(make):
    problem = make(rows=23)
    assert [problem.push(np.zeros(4), share, 4, draw=0).cost for share in range(4)] == [5.0, 6.0, 6.0, 6.0]
    assert replace(problem, batch=2).push(np.zeros(4), 1, 4, draw=0).cost == 2.0

"""Stochastic and heterogeneous codes: right on average over all outcomes, and as far off as the formulas say."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.deadlines import Deadline
from emuml.errors import UserError
from emuml.experiment.plan import plan
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import HeterogeneousCode, StochasticCode, answered_in, estimate_absence
from emuml.protocols.gradient_coding.codes.designs import difference_set
from emuml.shapes import All, Count
from emuml.theory import (
    absence_at,
    error_at_deadline,
    expected_decode_error,
    noise_floor,
    second_moment_recursion,
    stochastic_moments,
    sum_moments,
)
from tests.experiment.small import rows_of, small
from tests.protocols.code_checks import (
    check_decoding,
    check_held,
    check_order_is_nothing,
    check_unbiased,
    integer_gradients,
    messages,
)
from tests.protocols.training import Tally, train, versions

CHANCES = (0.5, 0.1, 0.0, 0.3, 0.9, 0.25, 0.05)


def outcomes(workers, absence):
    """Return every set of workers that are there, shape (2^n, n), and its chance."""
    present = np.array(list(product([0.0, 1.0], repeat=workers)))
    return present, np.prod(np.where(present == 1.0, 1.0 - np.asarray(absence), absence), axis=1)


def over_all(code, gradients, absence):
    """Return mean and mean square error of the sum over all outcomes, from what workers send."""
    present, chances = outcomes(code.workers, absence)
    found = present @ messages(code, gradients)
    return chances @ found, chances @ np.sum((found - gradients.sum(axis=0)) ** 2, axis=1)


# Designs


@pytest.mark.parametrize(
    ("workers", "size", "shared"), [(7, 3, 1), (13, 4, 1), (11, 5, 2), (31, 6, 1), (57, 8, 1), (7, 4, 2)]
)
def test_difference_sets_share_pairs_evenly(workers, size, shared):
    code = StochasticCode(size).build(workers)
    matrix = (code.encode_matrix != 0).astype(int)
    check_held(code, size)
    assert set(code.loads.tolist()) == {float(size)}
    meetings = matrix.T @ matrix
    assert set(meetings[~np.eye(workers, dtype=bool)].tolist()) == {shared}
    assert code.encode_matrix.tobytes() == StochasticCode(size).build(workers, seed=9).encode_matrix.tobytes()


def test_difference_sets_are_found_or_not():
    assert [size for size in range(1, 8) if difference_set(7, size)] == [1, 3, 4, 6, 7]
    assert difference_set(8, 3) is None
    assert difference_set(16, 6) is None, "there is one of other groups, but no cyclic one"


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(0, 2**64 - 1), st.data())
def test_any_number_of_workers_holds_every_partition_so_often(workers, seed, data):
    replication = data.draw(st.integers(1, workers))
    code = StochasticCode(replication, 0.2).build(workers, seed)
    check_held(code, replication)
    assert code.encode_matrix.sum() == pytest.approx(workers / 0.8)
    received = data.draw(st.lists(st.integers(0, workers - 1), unique=True))
    check_decoding(code, sorted(received))
    check_order_is_nothing(code, sorted(received), received)


def test_random_placements_are_those_of_the_seed():
    built = [StochasticCode(3).build(12, seed).encode_matrix.tobytes() for seed in (1, 1, 2)]
    assert built[0] == built[1] != built[2]


def test_random_placements_are_uniform():
    """Each of the 10 pairs of 5 workers with chance 1/10; chi-square of 2,500 draws below its 99.99 % quantile."""
    counts = np.zeros((5, 5))
    for seed in range(500):
        for partition in StochasticCode(2).build(5, seed).encode_matrix.T:
            counts[tuple(np.flatnonzero(partition))] += 1
    seen = counts[np.triu_indices(5, 1)]
    assert np.sum((seen - 250.0) ** 2 / 250.0) < 33.7


# Moments


@pytest.mark.parametrize(("workers", "replication"), [(7, 3), (6, 2), (5, 5), (8, 1), (1, 1)])
@pytest.mark.parametrize("absence", [0.0, 0.25, 0.9])
def test_the_sum_is_the_gradient_on_average_and_as_far_off_as_the_formula_says(workers, replication, absence):
    code, gradients = StochasticCode(replication, absence).build(workers, seed=4), integer_gradients(workers)
    whole = gradients.sum(axis=0)
    mean, error = over_all(code, gradients, absence)
    held = (code.encode_matrix != 0) @ gradients / replication

    assert mean == pytest.approx(whole, rel=1e-12)
    assert error == pytest.approx(absence / (1.0 - absence) * np.sum(held**2), rel=1e-12, abs=1e-9)
    moments = sum_moments(code.encode_matrix, absence)
    assert moments.bias(gradients) == pytest.approx(np.zeros(3), abs=1e-9)
    assert moments.mean_square_error(gradients) == pytest.approx(error, rel=1e-12, abs=1e-9)
    decode_errors = [code.decode(np.flatnonzero(there)).error for there in outcomes(workers, absence)[0]]
    assert moments.error == pytest.approx(outcomes(workers, absence)[1] @ decode_errors, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("workers", "replication"), [(7, 3), (7, 4), (11, 5), (5, 1), (4, 4)])
def test_on_a_design_the_error_depends_on_two_norms_only(workers, replication):
    gradients, absence = integer_gradients(workers, seed=2), 0.3
    _, error = over_all(StochasticCode(replication, absence).build(workers), gradients, absence)
    moments, whole = stochastic_moments(workers, replication, absence), gradients.sum(axis=0)
    norms = whole @ whole, np.sum(gradients**2)

    assert np.dot(moments.mean_square_error(), norms) == pytest.approx(error, rel=1e-12)
    assert np.dot(moments.second_moment(), norms) == pytest.approx(error + whole @ whole, rel=1e-12)


def test_the_fano_plane_by_hand():
    moments = stochastic_moments(7, 3, 0.5)
    assert moments.mean_square_error() == pytest.approx((1 / 9, 1 / 3 - 1 / 9), rel=1e-15)


@pytest.mark.parametrize("count", range(1, 8))
def test_stopped_at_a_number_of_answers_the_sum_is_unbiased_for_that_number(count):
    check_unbiased(StochasticCode(3).build(7, collect=count), integer_gradients(7), count)
    check_unbiased(StochasticCode(2).build(7, seed=5, collect=count), integer_gradients(7), count)


def test_the_expected_error_of_so_many_answers_is_known():
    code = StochasticCode(3).build(7, collect=4)
    errors = [code.decode(np.flatnonzero(there)).error for there in product([0, 1], repeat=7) if sum(there) == 4]
    assert expected_decode_error(StochasticCode(3), 7, collect=4) == pytest.approx(np.mean(errors), rel=1e-12)


# Workers that are not alike


def test_factors_of_least_variance_are_unbiased():
    for replication in (1, 2, 3, 7):
        code, gradients = HeterogeneousCode(replication, CHANCES).build(7, seed=1), integer_gradients(7)
        mean, error = over_all(code, gradients, CHANCES)
        moments = sum_moments(code.encode_matrix, CHANCES)
        assert mean == pytest.approx(gradients.sum(axis=0), rel=1e-12)
        assert moments.mean_square_error(gradients) == pytest.approx(error, rel=1e-12, abs=1e-9)
        assert moments.error == pytest.approx(np.sum(moments.variance), rel=1e-12, abs=1e-24)


@settings(max_examples=40)
@given(st.lists(st.floats(0.01, 0.95), min_size=2, max_size=7), st.data())
def test_variances_are_the_least_possible(chances, data):
    workers = len(chances)
    code = HeterogeneousCode(data.draw(st.integers(1, workers)), tuple(chances)).build(workers, seed=3)
    absence, matrix = np.array(chances), code.encode_matrix
    moments, holds = sum_moments(matrix, absence), matrix != 0
    assert moments.variance == pytest.approx(1.0 / (holds.T @ ((1.0 - absence) / absence)), rel=1e-12)
    plain = holds / ((1.0 - absence) @ holds)  # unbiased, too
    assert np.all(moments.variance <= sum_moments(plain, absence).variance * (1.0 + 1e-12))
    moved = (
        matrix + np.array(data.draw(st.lists(st.floats(-1, 1), min_size=workers, max_size=workers)))[:, None] * holds
    )
    moved = moved / ((1.0 - absence) @ moved) if np.all((1.0 - absence) @ moved > 0.1) else plain
    assert np.all(moments.variance <= sum_moments(moved, absence).variance * (1.0 + 1e-9))


def test_equal_chances_give_the_stochastic_code():
    equal = HeterogeneousCode(3, (0.25,) * 7).build(7).encode_matrix
    assert equal == pytest.approx(StochasticCode(3, 0.25).build(7).encode_matrix, rel=1e-15)
    drawn = [code.build(8, seed=6).encode_matrix for code in (HeterogeneousCode(3, (0.5,) * 8), StochasticCode(3, 0.5))]
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-15)


def test_workers_that_are_never_missing_share_their_partitions_alone():
    matrix = HeterogeneousCode(4, (0.0, 0.5, 0.0, 0.25)).build(4).encode_matrix
    assert matrix.tolist() == [[0.5] * 4, [0.0] * 4, [0.5] * 4, [0.0] * 4]
    code = HeterogeneousCode(4, (0.0, 0.5, 0.0, 0.25)).build(4)
    assert [len(code.assignment(worker)) for worker in range(4)] == [4, 0, 4, 0], (
        "what counts for nothing is not computed"
    )


@pytest.mark.parametrize("tiny", [1e-300, 5e-324])
def test_chances_next_to_nothing_are_no_numbers_beyond_all_bounds(tiny):
    matrix = HeterogeneousCode(2, (tiny, 0.5)).build(2).encode_matrix
    assert matrix[0] == pytest.approx([1.0, 1.0])
    assert np.all(np.isfinite(matrix))


def test_chances_are_estimated_from_rounds():
    flags = np.ones((10, 3), bool)
    flags[:3, 1] = flags[:, 2] = False
    found = estimate_absence(flags, floor=0.05)
    assert found.observed == pytest.approx((0.0, 0.3, 1.0))
    assert found.used == pytest.approx((0.05, 0.3, 0.95))
    assert estimate_absence(flags).floor == pytest.approx(1 / 12)
    assert HeterogeneousCode(2, found.used).build(3).workers == 3


@pytest.mark.parametrize("given", [([[2, 0]], None), ([], None), ([True], None), ([[True]], 0.0), ([[True]], 0.6)])
def test_what_was_not_observed_is_refused(given):
    with pytest.raises(UserError):
        estimate_absence(*given)


def test_estimates_come_from_a_run():
    """Worker 2 is late in every second round."""
    delays = np.ones((8, 3))
    delays[::2, 2] = 5.0
    run = train(Tally(), StochasticCode(2, 0.1), 3, 8, compute=DelayTrace(delays), deadline=Deadline(after_s=2.0))
    flags = answered_in([log.metrics["covered_set"] for log in run.logs], 3)
    assert estimate_absence(flags).observed == (0.0, 0.0, 0.5)


# Refusals


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StochasticCode(0), "replication"),
        (lambda: StochasticCode(2, 1.0), "absence"),
        (lambda: StochasticCode(5).build(4), "nearest is 4"),
        (lambda: StochasticCode(2).build(4, collect=5), "nearest is 4"),
        (lambda: HeterogeneousCode(2, (0.5, 1.0)), "absence"),
        (lambda: HeterogeneousCode(2, (0.5, 0.5)).build(3), "one for each worker"),
        (lambda: HeterogeneousCode(3, (0.5, 0.5)).build(2), "nearest is 2"),
    ],
)
def test_impossible_parameters_are_refused(make, text):
    with pytest.raises(UserError, match=text):
        make()


def test_rounds_close_as_asked():
    assert StochasticCode(2).build(4).stop_rule() == All(4)
    assert StochasticCode(2).build(4, collect=3).stop_rule() == Count(4, 3)


# Training


LAW = ShiftedExponential(0.1, 0.5)
SEVEN = Cluster(workers=7, compute=LAW)


@pytest.mark.parametrize("code", [StochasticCode(3, 0.2), StochasticCode(2), HeterogeneousCode(3, CHANCES)])
@pytest.mark.parametrize("closing", [{"deadline_s": 0.7}, {"first_times": 3.0}, {"collect": 5}, {}])
def test_tiers_and_replays_agree(code, closing):
    experiment = small(protocol=GradientCoding(code, **closing), cluster=SEVEN, rounds=6)
    event, array = (emuml.run(experiment, tier=tier, journal=tier == "event", out=None) for tier in ("event", "auto"))
    arrays = emuml.run(experiment, tier="array", out=None)
    assert rows_of(arrays) == rows_of(event) == rows_of(array)
    assert emuml.replay(event).parameters_sha256 == event.parameters_sha256 == arrays.parameters_sha256


@pytest.mark.slow
def test_the_mean_error_of_rounds_is_that_of_the_deadline():
    code, deadline_s = StochasticCode(3, absence_at(LAW, 0.7, 3.0)), 0.7
    protocol = GradientCoding(code, deadline_s=deadline_s)
    result = emuml.run(small(protocol=protocol, cluster=SEVEN, rounds=1000), tier="array", out=None)
    errors = result.metrics["decode_error"][1:]
    expected = error_at_deadline(code, 7, LAW, protocol.deadline)
    assert abs(errors.mean() - expected) < 4 * errors.std() / len(errors) ** 0.5
    assert expected == pytest.approx(sum_moments(code.build(7).encode_matrix, code.absence).error, rel=1e-12)
    (promise,) = [promise for promise in protocol.oracles() if promise.name == "decode_error"]
    assert promise.function == "emuml.theory:error_at_deadline"


@pytest.mark.slow
def test_a_plan_knows_how_long_rounds_with_a_deadline_take():
    protocol = GradientCoding(StochasticCode(3, 0.2), deadline_s=0.7)
    experiment = small(protocol=protocol, cluster=SEVEN, rounds=400)
    found = plan(experiment).duration_s
    assert found.low <= emuml.run(experiment, tier="array", out=None).duration_s <= found.high


@pytest.mark.slow
def test_training_settles_where_the_recursion_says_and_below_the_floor():
    """One quadratic for each of 7 partitions of the Fano plane; four standard errors of 60 trainings side by side."""
    absence, step, trainings, steps = 0.3, 0.05, 60, 240
    generator, moments = np.random.default_rng(7), stochastic_moments(7, 3, absence)
    centres = generator.standard_normal((7, 3))
    centres -= centres.mean(axis=0)
    matrix, points, squares, norms = StochasticCode(3, absence).build(7).encode_matrix, np.ones((60, 3)), [], 0.0
    for t in range(steps):
        factors = (generator.random((trainings, 7)) >= absence) @ matrix
        gradients = points[:, None, :] - centres
        norms = max(norms, float(np.max(np.sum(gradients**2, axis=(1, 2))))) if t >= 40 else 0.0
        points = points - step * np.einsum("tg,tgc->tc", factors, gradients)
        squares.append(np.sum(points**2, axis=1))
    settled = np.array(squares)[40:].mean(axis=0)
    recursion = second_moment_recursion(step, moments, spread=float(np.sum(centres**2)))
    assert abs(settled.mean() - recursion.stationary) < 4 * settled.std(ddof=1) / trainings**0.5
    assert 3.5 * settled.mean() <= noise_floor(step, 7, 7, moments, norms)


# Crashes

crash_times = st.integers(1, 60).map(lambda n: n / 16)
crashes = st.lists(
    st.builds(
        lambda w, at_s, back: Crash(f"worker-{w}", at_s=at_s, restart_after_s=back),
        st.integers(0, 6),
        crash_times,
        st.none() | crash_times,
    ),
    max_size=5,
    unique_by=lambda crash: crash.node,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    crashes, st.sampled_from([StochasticCode(3, 0.2), HeterogeneousCode(3, CHANCES)]), st.integers(0, 3), st.booleans()
)
def test_any_crashes_end_with_errors_that_are_logged(faults, code, seed, by_clock):
    deadline = Deadline(after_s=1.0) if by_clock else Deadline()
    run = train(Tally(), code, 7, 6, compute=LAW, faults=faults, seed=seed, latency_s=0.05, deadline=deadline)
    built = code.build(7)

    assert run.error is None
    assert len(run.logs) == 6
    for log in run.logs:
        received = np.flatnonzero(answered_in([log.metrics["covered_set"]], 7)[0])
        assert log.metrics["arrivals"] == len(received)
        assert log.metrics["decode_error"] == built.decode(received).error
        assert log.metrics["arrivals"] + log.metrics["down"] >= 7 or by_clock


def test_a_restarted_worker_answers_the_open_round():
    faults = [Crash("worker-2", at_s=0.5, restart_after_s=0.25)]
    run = train(Tally(), StochasticCode(2), 4, 2, compute=Constant(1.0), faults=faults)
    assert [log.metrics["arrivals"] for log in run.logs] == [4, 4]
    assert versions(run) == versions(train(Tally(), StochasticCode(2), 4, 2))


def test_plans_say_by_how_much_a_sum_overshoots():
    (remark,) = StochasticCode(3, 0.5).build(7).remarks
    assert "off by 7 partitions when all 7 are there" in remark
    assert StochasticCode(3).build(7).remarks == StochasticCode(3).build(7, collect=4).remarks == ()

"""Problems on sparse rows: the dense problem of the same rows, replicas and engines bit for bit, and stoppable."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.errors import TaskCancelled, UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import InputFolder, Inputs, from_spec, to_spec
from emuml.workloads import CsrMatrix, GradientDescent, LinearRegression, LogisticRegression
from emuml.workloads.curvature import SMALL, largest_eigenvalue
from emuml.workloads.gradients import partition_gradient
from emuml.workloads.losses import LOSSES, add_gradients
from emuml.workloads.partitions import partition_rows

MODELS = ["logistic", "linear"]
AT = np.array([0.3, -0.2, 0.5, 0.1])


def one_hot(rows=90, levels=(7, 5, 11), seed=5):
    """A one-hot matrix of a few columns of levels, and labels that follow the first one."""
    draws = np.random.default_rng(seed)
    codes = np.column_stack([draws.integers(0, count, rows) for count in levels])
    indices = codes + np.concatenate([[0], np.cumsum(levels)[:-1]])
    ones = np.ones(indices.size), indices.ravel(), np.arange(rows + 1) * len(levels)
    labels = np.where(codes[:, 0] + draws.normal(size=rows) > 3, 1.0, 0.0)
    return sparse.csr_array(ones, shape=(rows, sum(levels))), labels


def sparsely(problem):
    """The same problem on sparse rows."""
    features, held = (
        CsrMatrix.from_scipy(sparse.csr_array(X)) for X in (problem.features, problem.validation_features)
    )
    return replace(problem, features=features, validation_features=held)


def thinned(problem):
    """A problem most of whose entries are 0."""
    return replace(problem, features=np.where(np.abs(problem.features) > 1, problem.features, 0.0))


def everything(problem, parameters, partitions, **options):
    return problem.gradient(parameters, tuple(range(partitions)), partitions, **options).run()


def rounding(problem, at):
    """A bound on how far two orders of summation lie apart, for each parameter.

    With unit round-off u: a prediction errs by columns u |x| |b|, its slope by the curvature times that and by 4 u of
    itself, and the sum over the rows by rows u of the sum of its sizes; each of the two sums errs once.
    """
    u, (rows, columns) = 2.0**-53, problem.features.shape
    loss, size = LOSSES[problem.model], np.abs(problem.features)
    slopes = np.abs(loss.slope(problem.features @ at, problem.targets))
    of_slopes = loss.curvature * columns * u * (size @ np.abs(at)) + 4 * u * slopes
    return 2 * (size.T @ of_slopes + (rows + 1) * u * (size.T @ slopes))


@pytest.mark.parametrize("model", MODELS)
@given(rows=st.integers(1, 60), share=st.floats(0, 1), chunk_rows=st.integers(1, 70), seed=st.integers(0, 999))
def test_gradients_are_those_of_the_dense_problem_to_rounding(make, model, rows, share, chunk_rows, seed):
    dense = thinned(make(model, rows=rows, seed=seed))
    partitions = 1 + int(share * (rows - 1))
    found = everything(replace(sparsely(dense), chunk_rows=chunk_rows), AT, partitions)
    assert (np.abs(found - everything(dense, AT, partitions)) <= rounding(dense, AT)).all()


@given(rows=st.integers(1, 60), share=st.floats(0, 1), chunk_rows=st.integers(1, 70), seed=st.integers(0, 999))
def test_gradients_are_those_of_the_dense_problem_exactly_where_sums_are_exact(make, rows, share, chunk_rows, seed):
    dense, at = thinned(make(rows=rows, seed=seed, whole=True)), np.array([1.0, -2.0, 3.0, 0.0])
    partitions = 1 + int(share * (rows - 1))
    thin = replace(sparsely(dense), chunk_rows=chunk_rows)
    owned = tuple(range(0, partitions, 2))
    factors = tuple(2.0 - i for i in owned)
    for options in ({}, {"coefficients": factors}):
        found, expected = (p.gradient(at, owned, partitions, **options).run() for p in (thin, dense))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("model", MODELS)
def test_gradient_is_the_slope_of_the_loss(make, model):
    problem, width = sparsely(thinned(make(model))), 1e-5
    loss = [[problem.loss(AT + sign * step) for sign in (1, -1)] for step in width * np.eye(4)]
    slope = problem.rows * (np.subtract(*np.transpose(loss)) / (2 * width) - 2 * problem.l2 * AT)
    # Central differences: curvature errors of about 1e-10 and rounding of about 1e-16 * loss / 1e-5.
    np.testing.assert_allclose(everything(problem, AT, 5), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_metrics_are_those_of_the_dense_problem(make, model):
    dense = thinned(make(model))
    assert sparsely(dense).metrics(AT) == pytest.approx(dense.metrics(AT), rel=1e-13)


def test_blocks_change_no_bit(make):
    problem = sparsely(thinned(make("logistic")))
    sums = {everything(replace(problem, chunk_rows=chunk), AT, 3).tobytes() for chunk in (1, 2, 5, 8, 100)}
    assert len(sums) == 1


def test_batches_are_those_of_the_dense_problem(make):
    dense = thinned(make(rows=23, whole=True, batch=3))
    for draw in range(5):
        found, expected = (p.gradient(AT, (0, 2, 3), 4, draw=draw).run() for p in (sparsely(dense), dense))
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    other = sparsely(dense).gradient(AT, (0, 2, 3), 4, draw=5).run()
    assert (other != found).any()


def test_replicas_are_equal_bit_for_bit_in_whatever_order_they_own(make):
    problem = sparsely(thinned(make("logistic")))
    first, second = (problem.gradient(AT, owned, 5, factors) for owned, factors in [
        ((0, 2, 4), (3.0, -1.0, 0.5)), ((4, 0, 2), (0.5, 3.0, -1.0))
    ])  # fmt: skip
    assert first.key() == second.key()
    assert first.run().tobytes() == second.run().tobytes()


@pytest.mark.parametrize("asked_before_stop", [0, 1, 3])
def test_a_cancelled_gradient_stops_between_two_blocks(make, asked_before_stop):
    asked = 0

    def cancelled():
        nonlocal asked
        asked += 1
        return asked > asked_before_stop

    with pytest.raises(TaskCancelled):
        sparsely(make(rows=40, chunk_rows=4)).gradient(np.ones(4), (0, 1), 2).run(cancelled)
    assert asked == asked_before_stop + 1


def test_a_gradient_asks_once_for_each_block(make):
    asked = []
    sparsely(make(rows=23, chunk_rows=4)).gradient(np.ones(4), (0, 1), 2).run(lambda: bool(asked.append(1)))
    assert len(asked) == 3 + 3  # 11 and 12 rows


def test_a_diverged_run_gives_no_warning(make):
    problem, at = sparsely(thinned(make("linear"))), np.full(4, 1e308)
    assert not np.isfinite(problem.loss(at))
    state, after = problem.step(problem.start(), at, everything(problem, at, 3), 0)
    assert state == ()
    assert not np.isfinite(after).all()


def test_a_declaration_takes_sparse_rows_as_they_are():
    X, y = one_hot()
    problem = LogisticRegression(data=(X, y)).problem(7)
    dense = LogisticRegression(data=(X.toarray(), y), standardize=False).problem(7)
    assert isinstance(problem.features, CsrMatrix)
    assert problem.features.values is None
    np.testing.assert_array_equal(problem.features.to_scipy().toarray(), dense.features)
    np.testing.assert_array_equal(problem.validation_features.to_scipy().toarray(), dense.validation_features)
    np.testing.assert_array_equal(problem.targets, dense.targets)
    assert (problem.features.indices[problem.features.indptr[1:] - 1] == X.shape[1]).all()  # ones, stored last
    assert problem.optimizer.rate == pytest.approx(dense.optimizer.rate, rel=1e-12)
    assert (problem.chunk_rows, dense.chunk_rows) == (4096, 128)


def test_settings_of_sparse_rows():
    X, y = one_hot()
    plain = LogisticRegression(data=(X, y), intercept=False, standardize=False, chunk_rows=16, validation=0.0).problem(
        7
    )
    assert plain.features.shape == X.shape
    assert plain.chunk_rows == 16
    with pytest.raises(UserError, match="got true for a sparse matrix") as caught:
        LinearRegression(data=(X, y), standardize=True).problem(7)
    assert caught.value.where == "LinearRegression.standardize"


def test_declarations_of_sparse_rows_are_equal_by_content_and_survive_their_spec():
    X, y = one_hot()
    declared, inputs = LogisticRegression(data=(X, y)), Inputs()
    again = from_spec(to_spec(declared, inputs), inputs)
    assert again == declared == LogisticRegression(data=(X.copy(), y))
    assert declared != LogisticRegression(data=(X.toarray(), y))
    assert len(inputs.arrays) == 3
    assert again.problem(7) == declared.problem(7)
    assert declared.problem(7).inputs_sha256[0] == declared.data[0].digest


@pytest.mark.parametrize("batch", [None, 4])
def test_a_problem_from_mapped_files_gives_the_same_bits(tmp_path, batch):
    here, kept = LogisticRegression(data=one_hot(), batch=batch).problem(3), Inputs()
    spec = to_spec(here, kept)
    kept.write(tmp_path)
    inputs = InputFolder(tmp_path)
    there = from_spec(spec, inputs)
    assert there == here
    at = np.linspace(-1, 1, here.n_parameters)
    found, expected = (p.gradient(at, (0, 2, 5), 6, (1.0, -0.5, 2.0), draw=3).run() for p in (there, here))
    assert found.tobytes() == expected.tobytes()
    assert there.metrics(at) == here.metrics(at)
    mapped = inputs.arrays[spec["features"]["indices"]["input"]]
    assert np.shares_memory(mapped, there.features.indices)


@pytest.mark.parametrize("columns", [3, SMALL, SMALL + 1, 700])
@pytest.mark.parametrize("signed", [False, True])
def test_the_largest_eigenvalue_is_that_of_the_full_matrix(columns, signed):
    draws = np.random.default_rng(columns)
    X = np.where(draws.random((150, columns)) < 0.05, draws.normal(size=(150, columns)) if signed else 1.0, 0.0)
    X[0, 0] = 1.0
    found = largest_eigenvalue(CsrMatrix.from_scipy(sparse.csr_array(X)))
    assert found == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=1e-9)
    assert found == largest_eigenvalue(CsrMatrix.from_scipy(sparse.csr_array(X)))


@pytest.mark.parametrize("columns", [5, 500])
def test_a_matrix_of_zeros_has_no_curvature(columns):
    assert largest_eigenvalue(CsrMatrix(np.zeros(4, np.int64), np.empty(0, np.int32), columns)) == 0.0


@pytest.mark.parametrize("columns", [3, SMALL + 50])
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_entries_far_from_one_curve_as_they_should(columns, size):
    found = largest_eigenvalue(CsrMatrix.from_scipy(sparse.csr_array(size * np.eye(3, columns))))
    assert found == pytest.approx(size**2, rel=1e-12)


@pytest.mark.parametrize("columns", [3, SMALL + 50])
@pytest.mark.parametrize("full", [False, True])
def test_entries_whose_squares_overflow_need_a_rate(columns, full):
    X = 1e200 * np.eye(3, columns)
    with pytest.raises(UserError, match=r"curvature inf; allowed: .* whose squares are finite; give a rate"):
        LinearRegression(data=(X if full else sparse.csr_array(X), np.arange(3.0)), standardize=False).problem(1)


def test_the_iteration_starts_where_no_symmetry_hides_the_answer():
    # Rows (1, -1): the eigenvector of the largest eigenvalue is orthogonal to the vector of ones.
    pairs = np.kron(np.eye(150), [1.0, -1.0])
    pairs[0] *= 3.0
    assert largest_eigenvalue(CsrMatrix.from_scipy(sparse.csr_array(pairs))) == pytest.approx(18.0, rel=1e-9)


def experiment(**options):
    """Six workers, two replicas, on one-hot rows."""
    return emuml.Experiment(
        workload=LogisticRegression(data=one_hot(), optimizer=GradientDescent(rate=1.0), chunk_rows=8, **options),
        protocol=GradientCoding(FractionalRepetition(2), collect=4),
        cluster=Cluster(workers=6, compute=ShiftedExponential(0.01, 0.02)),
        rounds=6,
        seed=3,
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 4])
def test_both_engines_and_the_replay_give_the_same_bits(tmp_path, batch):
    declared = experiment(batch=batch)
    real = emuml.run(declared, "tcp", runtime=RuntimeSettings(processes="shared"), out=tmp_path / "run")
    again = emuml.replay(tmp_path / "run")
    assert again.parameters_sha256 == real.parameters_sha256
    exact = replace(declared, protocol=GradientCoding(FractionalRepetition(2)))
    emulated = emuml.run(exact)
    deployed = emuml.run(exact, "tcp", runtime=RuntimeSettings(processes="shared"))
    assert emulated.parameters_sha256 == deployed.parameters_sha256
    assert emulated.metrics.final["train_loss"] < np.log(2)


def test_a_run_folder_keeps_sparse_rows(tmp_path):
    result = emuml.run(experiment(), out=tmp_path / "run")
    assert len(list((tmp_path / "run" / "inputs").iterdir())) == 3
    assert emuml.replay(tmp_path / "run").parameters_sha256 == result.parameters_sha256


@pytest.mark.parametrize(("owned", "blocks"), [(tuple(range(10)), 1), ((0, 1, 5, 6, 7), 2), ((0, 2, 4), 3)])
def test_partitions_that_follow_each_other_are_one_block_with_the_same_sum(owned, blocks):
    X, y = one_hot()
    problem = LogisticRegression(data=(X, y)).problem(3)
    at = np.linspace(-1.0, 1.0, problem.n_parameters)
    asked = []
    found = partition_gradient(problem, at, owned, 10, cancelled=lambda: bool(asked.append(1)))
    assert len(asked) == blocks
    total = np.zeros(problem.n_parameters)
    for partition in owned:
        rows = partition_rows(problem.rows, partition, 10)
        add_gradients(LOSSES["logistic"], problem.features, problem.targets, rows, at, 1.0, total, 4096)
    assert np.array_equal(found, total)


def test_partitions_with_other_coefficients_stay_apart():
    problem = LogisticRegression(data=one_hot()).problem(3)
    at = np.linspace(-1.0, 1.0, problem.n_parameters)
    each = [partition_gradient(problem, at, (i,), 2) for i in (0, 1)]
    assert np.allclose(partition_gradient(problem, at, (0, 1), 2, (2.0, 3.0)), 2 * each[0] + 3 * each[1], rtol=1e-13)

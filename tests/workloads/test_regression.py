"""Declarations: what they accept, and the problems they make."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.spec import Inputs, array_digest, from_spec, to_spec
from emuml.streams import stream_key, words_at
from emuml.workloads import AcceleratedGradientDescent, GradientDescent, LinearRegression, LogisticRegression
from emuml.workloads.auc import auc

draws = np.random.default_rng(0)
X = draws.normal(size=(50, 3)) * [1.0, 20.0, 0.1] + [5.0, 0.0, -3.0]
y = (X[:, 0] > 5).astype(float)


def test_defaults():
    declared = LogisticRegression()
    assert (declared.data, declared.l2, declared.validation) == ("breast-cancer", 1e-4, 0.2)
    assert (declared.chunk_rows, declared.standardize) == (None, None)
    assert declared.optimizer == GradientDescent()
    assert LinearRegression().data == "diabetes"


@pytest.mark.slow
def test_breast_cancer_trains():
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install emuml[data]")
    problem = LogisticRegression(l2=1e-4).problem(7)
    assert (problem.rows, len(problem.validation_targets), problem.n_parameters) == (455, 114, 31)
    assert problem.names[-1] == "intercept"
    state, at = problem.start(), problem.initial
    assert problem.loss(at) == pytest.approx(np.log(2), rel=1e-15)
    for i in range(60):
        state, at = problem.step(state, at, problem.gradient(at, (0, 1, 2), 3).run(), i)
    metrics = problem.metrics(at)
    assert {name.removeprefix("validation_") for name in metrics} == {"train_loss", "loss", "accuracy", "auc"}
    assert len(metrics) == 6
    assert metrics["train_loss"] < 0.2
    assert metrics["validation_accuracy"] > 0.9


def test_each_row_is_trained_on_or_held_back_once():
    raw = LinearRegression(data=(X, y), intercept=False, standardize=False, validation=0.3).problem(7)
    assert len(raw.validation_features) == 15
    together = np.vstack([raw.features, raw.validation_features])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))
    targets = np.concatenate([raw.targets, raw.validation_targets])
    by_row = {tuple(row): target for row, target in zip(X, y, strict=True)}
    assert [by_row[tuple(row)] for row in together] == list(targets)


def test_the_order_of_rows_follows_the_seed():
    one, again, other = (LinearRegression(data=(X, y)).problem(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.features, again.features)
    assert one == again
    assert (one.features != other.features).any()
    assert one != other


def test_the_order_of_rows_is_its_named_stream():
    problem = LinearRegression(data=(X, y), intercept=False, standardize=False, validation=0.2).problem(9)
    order = np.argsort(words_at(stream_key(9, "", "data-order"), np.arange(50)))
    np.testing.assert_array_equal(problem.validation_features, X[order[:10]])
    np.testing.assert_array_equal(problem.features, X[order[10:]])


def test_columns_are_scaled_by_the_training_rows():
    constant = np.hstack([X, np.full((50, 1), 0.1)])
    problem = LinearRegression(data=(constant, y), validation=0.5).problem(7)
    np.testing.assert_allclose(problem.features[:, :3].mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(problem.features[:, :3].std(axis=0), 1, rtol=1e-13)
    assert (problem.features[:, 3] == 0).all()
    assert (problem.features[:, 4] == 1).all()
    assert (problem.validation_features[:, 4] == 1).all()
    assert np.abs(problem.validation_features[:, :3].mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2), (False, True), (3.5, 7.0)])
def test_any_two_labels_become_minus_and_plus_one(labels):
    given = np.where(y == 1, labels[1], labels[0])
    problem = LogisticRegression(data=(X, given)).problem(7)
    np.testing.assert_array_equal(problem.targets, LogisticRegression(data=(X, y)).problem(7).targets)
    assert set(problem.targets) == {-1.0, 1.0}
    # The first column, standardised, splits the classes: the larger label lies on its upper side.
    assert problem.features[problem.targets == 1, 0].min() > problem.features[problem.targets == -1, 0].max()


@pytest.mark.parametrize(
    ("labels", "shown"),
    [(np.arange(50) % 5, "5 distinct labels (0, 1, 2, 3, ...)"), (np.ones(50), "1 distinct labels (1)")],
)
def test_other_numbers_of_labels_are_refused(labels, shown):
    with pytest.raises(UserError) as caught:
        LogisticRegression(data=(X, labels)).problem(7)
    assert str(caught.value) == f"LogisticRegression.data.y: got {shown}; allowed: exactly two labels"


@pytest.mark.parametrize(("declare", "factor"), [(LogisticRegression, 0.25), (LinearRegression, 2.0)])
@pytest.mark.parametrize("rows", [50, 3])
def test_the_default_rate_is_one_over_the_largest_curvature(declare, factor, rows):
    chosen = np.r_[0 : rows - 1, np.argmin(y == y[0])]  # both labels
    problem = declare(data=(X[chosen], y[chosen]), l2=0.01, validation=0.0).problem(7)
    curvature = factor * np.linalg.norm(problem.features, 2) ** 2 / problem.rows + 2 * 0.01
    assert problem.optimizer.rate == pytest.approx(1 / curvature, rel=1e-12)
    assert declare(data=(X, y), optimizer=GradientDescent(rate=3.0)).problem(7).optimizer.rate == 3.0
    kept = declare(data=(X, y), optimizer=AcceleratedGradientDescent()).problem(7).optimizer
    assert isinstance(kept, AcceleratedGradientDescent)


def test_linear_metrics():
    problem = LinearRegression(data=(X, y), l2=0.5, validation=0.2).problem(7)
    at = np.array([0.1, 0.2, -0.1, 0.4])
    metrics = problem.metrics(at)
    errors = problem.targets - problem.features @ at
    held = problem.validation_targets - problem.validation_features @ at
    assert metrics["mse"] == pytest.approx(np.mean(errors**2), rel=1e-13)
    assert metrics["validation_mse"] == pytest.approx(np.mean(held**2), rel=1e-13)
    assert metrics["train_loss"] == problem.loss(at) == pytest.approx(np.mean(errors**2) + 0.5 * at @ at, rel=1e-13)
    assert metrics["validation_loss"] == pytest.approx(np.mean(held**2) + 0.5 * at @ at, rel=1e-13)


def test_logistic_metrics():
    problem = LogisticRegression(data=(X, y), l2=0.5).problem(7)
    at = np.array([2.0, 0.2, -0.1, 0.4])
    metrics = problem.metrics(at)
    margins = problem.targets * (problem.features @ at)
    assert metrics["train_loss"] == pytest.approx(np.mean(np.log1p(np.exp(-margins))) + 0.5 * at @ at, rel=1e-13)
    assert metrics["accuracy"] == np.mean(margins > 0)
    held = problem.validation_targets * (problem.validation_features @ at)
    assert metrics["validation_accuracy"] == np.mean(held > 0)
    assert metrics["auc"] == auc(problem.features @ at, problem.targets > 0)
    assert metrics["validation_auc"] == auc(problem.validation_features @ at, problem.validation_targets > 0)


def test_an_area_is_absent_where_all_rows_are_of_one_class():
    problem = LogisticRegression(data=(X, y), validation=0.02).problem(7)
    assert len(problem.validation_targets) == 1
    metrics = problem.metrics(problem.initial)
    assert metrics["auc"] == 0.5
    assert "validation_accuracy" in metrics
    assert "validation_auc" not in metrics


@pytest.mark.parametrize(("share", "held"), [(0.0, 0), (0.001, 1), (0.2, 10), (0.21, 11), (0.999, 49)])
def test_as_many_rows_are_held_back_as_scikit_learn_does(share, held):
    problem = LinearRegression(data=(X, y), validation=share).problem(7)
    assert (len(problem.validation_targets), problem.rows) == (held, 50 - held)
    if held < 49 and held:
        selection = pytest.importorskip("sklearn.model_selection", reason="needs scikit-learn: pip install emuml[data]")
        assert len(selection.train_test_split(X, test_size=share)[1]) == held


def test_no_validation_rows_no_validation_metrics():
    problem = LogisticRegression(data=(X, y), validation=0.0).problem(7)
    assert problem.rows == 50
    assert set(problem.metrics(problem.initial)) == {"train_loss", "accuracy", "auc"}


def test_initial_parameters():
    assert (LinearRegression(data=(X, y)).problem(7).initial == 0).all()
    one, again, other = (LinearRegression(data=(X, y), initial_scale=2.0).problem(s).initial for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()
    half = LinearRegression(data=(X, y), initial_scale=1.0).problem(1).initial
    np.testing.assert_array_equal(one, 2.0 * half)


def test_provenance_of_the_data():
    problem = LinearRegression(data=(X, y)).problem(7)
    assert problem.source == "arrays given by the caller"
    assert problem.inputs_sha256 == (array_digest(X), array_digest(y))


def test_equal_declarations_are_equal_and_hash_so(tmp_path):
    assert LogisticRegression() == LogisticRegression()
    assert LogisticRegression() != LogisticRegression(l2=1)
    assert LogisticRegression(data="x.npz") != LinearRegression(data="x.npz")
    assert LogisticRegression(data=tmp_path / "x.npz") == LogisticRegression(data=str(tmp_path / "x.npz"))
    one, again, other = (
        LogisticRegression(data=(X, y)),
        LogisticRegression(data=(X.copy(), y)),
        LogisticRegression(data=(X + 1, y)),
    )
    assert one == again
    assert len({one, again, other}) == 2
    assert LogisticRegression() != "breast-cancer"


def test_declarations_are_frozen_and_own_their_arrays():
    mine = X.copy()
    declared = LogisticRegression(data=(mine, y))
    before = hash(declared)
    mine[0, 0] = 99.0
    assert declared.data[0][0, 0] == X[0, 0]
    assert mine.flags.writeable
    assert not declared.data[0].flags.writeable
    assert hash(declared) == before
    with pytest.raises(FrozenInstanceError):
        declared.l2 = 3.0


@pytest.mark.parametrize(
    "declared",
    [
        LogisticRegression(),
        LinearRegression(data=(X, y), optimizer=AcceleratedGradientDescent(rate=0.5), batch=4, initial_scale=1),
    ],
)
def test_declarations_survive_their_spec(declared):
    inputs = Inputs()
    spec = to_spec(declared, inputs)
    assert spec["kind"] in ("logistic-regression", "linear-regression")
    assert from_spec(spec, inputs) == declared
    assert len(inputs.arrays) == (0 if isinstance(declared.data, str) else 2)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"l2": -1}, "LogisticRegression.l2"),
        ({"validation": 1.0}, "LogisticRegression.validation"),
        ({"batch": 0}, "LogisticRegression.batch"),
        ({"chunk_rows": 0}, "LogisticRegression.chunk_rows"),
        ({"initial_scale": -1}, "LogisticRegression.initial_scale"),
        ({"optimizer": "adam"}, "LogisticRegression.optimizer"),
        ({"data": 5}, "LogisticRegression.data"),
        ({"data": (X, y, y)}, "LogisticRegression.data"),
        ({"data": (X, y[:3])}, "LogisticRegression.data.y"),
        ({"data": (X * np.nan, y)}, "LogisticRegression.data.X"),
    ],
)
def test_wrong_settings_are_named(options, where):
    with pytest.raises(UserError) as caught:
        LogisticRegression(**options)
    assert caught.value.where == where
    assert caught.value.allowed


def test_an_objective_without_curvature_needs_a_rate():
    flat = {"data": (np.ones((4, 1)), np.array([0.0, 1.0, 0.0, 1.0])), "intercept": False, "l2": 0.0}
    with pytest.raises(UserError, match=r"curvature 0\.0"):
        LinearRegression(**flat).problem(7)
    assert LinearRegression(**flat, optimizer=GradientDescent(rate=1.0)).problem(7).rows == 3

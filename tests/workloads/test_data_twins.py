"""Synthetic twins: what they promise of shapes and values, for several seeds; that training on them means something."""

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.streams import generator
from emuml.workloads import data
from emuml.workloads.data.encoding import distinct_pairs
from emuml.workloads.data.facts import ORIGINALS
from emuml.workloads.data.profiles import profiled
from emuml.workloads.data.skew import skewed
from emuml.workloads.optimizers import AcceleratedGradientDescent, Exponential
from emuml.workloads.regression import LinearRegression, LogisticRegression

LABELS = {"covertype": ({1.0, 2.0}, 283_301), "amazon-access": ({0.0, 1.0}, round(0.942 * 32_769))}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_a_twin_has_the_shape_of_the_original(name, seed):
    table, original = data.load(f"{name}-twin", seed, "here"), ORIGINALS[name]
    assert table.X.shape == (original.rows, original.one_hot_columns)
    assert table.X.values is None
    codes = table.X.indices.reshape(original.rows, -1)
    assert codes.shape[1] == len(original.columns) + len(original.pairs)
    # Every row has one entry in each column's block, and every column of the blocks occurs.
    ends = np.cumsum(original.cardinalities)
    for j, (first, end) in enumerate(zip(ends - original.cardinalities, ends, strict=True)):
        counts = np.bincount(codes[:, j] - first)
        assert len(counts) == end - first
        assert counts.all()
    assert np.bincount(codes.ravel(), minlength=table.X.columns).all()
    if name in LABELS:
        labels, positive = LABELS[name]
        assert set(table.y) == labels
        assert np.count_nonzero(table.y == max(labels)) == positive


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 11))
def test_amazon_pairs_come_out_exactly_for_every_seed(seed):
    assert data.load("amazon-access-twin", seed, "here").X.columns == 241_914


@pytest.mark.parametrize("name", sorted(ORIGINALS))
@pytest.mark.parametrize("rows", [10, 11, 700])
def test_a_smaller_twin_has_no_more_values_than_rows(name, rows):
    table, original = data.load(f"{name}-twin:{rows}", 3, "here"), ORIGINALS[name]
    codes = table.X.indices.reshape(rows, -1)
    found = [len(np.unique(column)) for column in codes.T[: len(original.columns)]]
    wanted = [min(values, rows) for values in original.cardinalities]
    if name == "covertype":  # so few rows cannot have each of 35 soils
        assert found[:10] == wanted[:10]
        assert all(few <= most for few, most in zip(found, wanted, strict=True))
    else:
        assert found == wanted
    assert table.source == f"synthetic {name}-twin, {rows} rows x {table.X.columns} one-hot columns, seed 3"
    assert len(np.unique(table.y)) == (2 if name in LABELS else rows)


def test_a_covertype_twin_has_one_area_and_one_soil_in_each_row():
    codes = data.load("covertype-twin:2000", 1, "here").X.indices.reshape(2000, -1)
    ones = codes - codes.min(axis=0)
    occurring = codes.max(axis=0) > codes.min(axis=0)
    assert (ones[:, 10:14].sum(axis=1) == 1).all()
    assert (ones[:, 14:].sum(axis=1) == 1).all()
    assert np.flatnonzero(~occurring).tolist() == [14, 18, 27, 28, 50]


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_a_twin_follows_the_seed(name):
    one, again, other = (data.load(f"{name}-twin:400", seed, "here") for seed in (1, 1, 2))
    assert one.X == again.X
    np.testing.assert_array_equal(one.y, again.y)
    assert one.X != other.X
    assert (one.y != other.y).any()


def test_nothing_of_a_twin_is_read(monkeypatch):
    monkeypatch.setenv("EMUML_DATA", "/nowhere/at/all")
    assert len(data.load("kc-house-twin:20", 1, "here").y) == 20


@pytest.mark.parametrize("rows", ["", "9", "-20", "1e3", "covtype.data"])
def test_a_wrong_number_of_rows_is_refused(rows):
    with pytest.raises(UserError) as caught:
        data.load(f"covertype-twin:{rows}", 1, "here")
    assert caught.value.what == f"got covertype-twin:{rows}"
    assert "covertype-twin:ROWS with at least 10 rows" in caught.value.allowed


def test_skewed_values_all_occur_and_fall_as_zipf():
    rows, values = 200_000, 50
    counts = np.sort(np.bincount(skewed(generator(7, "", "skew"), rows, values), minlength=values))[::-1]
    assert counts.min() >= 1
    share = np.arange(1, values + 1) ** -0.9
    expected = 1 + (rows - values) * share / share.sum()
    # Multinomial: 5 standard deviations of each count; sorting moves neighbours by less.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("total", [3_000, 3_001, 3_010, 3_500])
def test_profiles_reach_any_number_of_pairs_in_between(total):
    cardinalities, pairs = (80, 60, 8, 10, 20, 15, 40, 5, 15), ORIGINALS["amazon-access"].pairs
    columns = profiled(generator(5, "", "profiles"), 300, cardinalities, pairs, total)
    assert distinct_pairs(list(zip(columns, cardinalities, strict=True)), pairs) == total
    assert tuple(len(np.unique(column)) for column in columns) == cardinalities


@pytest.mark.parametrize("total", [10, 10**6])
def test_profiles_refuse_what_cannot_be(total):
    cardinalities, pairs = (80, 60, 8, 10, 20, 15, 40, 5, 15), ORIGINALS["amazon-access"].pairs
    with pytest.raises(ValueError, match=f"{total} pairs are not between"):
        profiled(generator(5, "", "profiles"), 300, cardinalities, pairs, total)


def metrics_after(problem, rounds):
    """Return the metrics after steps on gradients of all rows."""
    state, parameters = problem.start(), problem.initial
    for number in range(rounds):
        gradient = problem.gradient(parameters, (0,), 1).run()
        state, parameters = problem.step(state, parameters, gradient, number)
    return problem.metrics(parameters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "rounds"), [("amazon-access-twin", 10, 100), ("covertype-twin:20000", 0.1, 60)]
)
def test_labels_can_be_learned_but_not_all(name, rate, rounds):
    workload = LogisticRegression(data=name, l2=1e-5, optimizer=AcceleratedGradientDescent(rate=rate))
    found = metrics_after(workload.problem(0), rounds)
    assert 0.8 < found["validation_auc"] < 0.95
    assert found["validation_auc"] < found["auc"]


@pytest.mark.slow
def test_prices_can_be_learned_but_not_all():
    optimizer = AcceleratedGradientDescent(rate=0.1, schedule=Exponential(0.98))
    problem = LinearRegression(data="kc-house-twin", l2=1 / 17_290, optimizer=optimizer).problem(0)
    explained = 1 - metrics_after(problem, 100)["validation_mse"] / problem.validation_targets.var()
    assert 0.4 < explained < 0.8


def test_prices_are_spread_as_the_original():
    prices = data.load("kc-house-twin", 4, "here").y
    assert prices.min() > 0
    assert np.log(prices).mean() == pytest.approx(-0.768)
    assert np.log(prices).std() == pytest.approx(0.527)

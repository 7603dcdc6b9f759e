"""The area under the ROC curve: a count of pairs, exact, and without meaning where there are none."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.workloads.auc import auc

scores = st.sampled_from([0.0, -0.0, 0.25, -1.0, 1e-300, math.inf, -math.inf]) | st.floats(allow_nan=False)
rows = st.lists(st.tuples(scores, st.booleans()), min_size=2, max_size=40)


def pair_by_pair(values, positive):
    """The definition: each pair of one row of each class counts 1 in order, 1/2 tied."""
    above = [value for value, is_positive in zip(values, positive, strict=True) if is_positive]
    below = [value for value, is_positive in zip(values, positive, strict=True) if not is_positive]
    counts = sum(Fraction((a > b) * 2 + (a == b), 2) for a in above for b in below)
    return float(counts / (len(above) * len(below))) if above and below else math.nan


@given(rows)
def test_it_is_the_share_of_ordered_pairs(pairs):
    values, positive = (np.array(column) for column in zip(*pairs, strict=True))
    expected = pair_by_pair(values.tolist(), positive.tolist())
    assert auc(values, positive) == expected or math.isnan(expected)
    assert math.isnan(auc(values, positive)) == math.isnan(expected)


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_it_is_that_of_scikit_learn(decimals):
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn: pip install emuml[data]")
    draws = np.random.default_rng(decimals)
    positive = draws.random(2000) < 0.3
    values = np.round(draws.normal(size=2000) + positive, decimals)
    # Theirs integrates the curve in floating point: a rounding of about 1e-16 for each of 2000 steps.
    assert auc(values, positive) == pytest.approx(metrics.roc_auc_score(positive, values), abs=1e-12)


def test_order_is_all_that_counts():
    draws = np.random.default_rng(1)
    values, positive = draws.normal(size=300), draws.random(300) < 0.5
    found = auc(values, positive)
    assert auc(np.exp(values), positive) == found
    assert auc(-values, positive) == 1 - found
    assert auc(values[::-1], positive[::-1]) == found


def test_constant_scores_are_a_coin_toss():
    assert auc(np.zeros(7), np.arange(7) < 3) == 0.5


@pytest.mark.parametrize("place", [0, 3])
def test_scores_that_are_no_numbers_have_none(place):
    values = np.arange(4.0)
    values[place] = np.nan
    assert math.isnan(auc(values, np.array([True, True, False, False])))

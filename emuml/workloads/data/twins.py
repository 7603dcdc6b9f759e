"""Synthetic twins of the real data sets: the same shapes, made from the seed and used only when they are named.

1. A twin has as many rows as the original, as many distinct values in every input column, and as many one-hot columns
   in all; so messages, memory and partitions are those of the original. Values and their meaning are made up.
2. A few values of a column are frequent and most are rare (Zipf's law).
3. Targets come from a sparse linear model that is hidden in frequent values, with noise: training means something, and
   losses are not those of the original.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emuml.errors import UserError
from emuml.streams import generator
from emuml.workloads.data.encoding import one_hot
from emuml.workloads.data.facts import ORIGINALS
from emuml.workloads.data.limits import check_fits, whole_number
from emuml.workloads.data.profiles import profiled
from emuml.workloads.data.skew import Draws, Whole, skewed
from emuml.workloads.data.table import Table, Vector

NAMES = tuple(f"{name}-twin" for name in ORIGINALS)

SIGNAL = {"covertype": 3.0, "kc-house": 2.0, "amazon-access": 2.5}
"""Standard deviation of the hidden model over that of the noise, which is logistic for labels."""

POSITIVE = {"covertype": 283_301 / 495_141, "amazon-access": 0.942}
"""Share of the larger label: Covertype's is counted, Amazon's is published."""

LOG_PRICE_MEAN, LOG_PRICE_SPREAD = -0.768, 0.527
"""Of the natural logarithm of the original's prices in millions of dollars."""

FEWEST_ROWS = 10


def load(name: str, rows: str | None, seed: int, where: str) -> Table:
    """Make a twin.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    rows : str, optional
        How many; columns then have at most as many distinct values. Default: those of the original.
    seed : int
        Stream ``data/NAME/ROWS`` of it.
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If rows is no number, below 10, or more than fit into memory.

    Examples
    --------
    >>> load("kc-house-twin", "100", 7, "data").X.nnz
    1800
    """
    set_name = name.removesuffix("-twin")
    original = ORIGINALS[set_name]
    count = original.rows if rows is None else whole_number(rows)
    if count is None or count < FEWEST_ROWS:
        raise UserError(f"got {name}:{rows}", where, f"{name}:ROWS with at least {FEWEST_ROWS} rows, or {name}")
    check_fits(8 * count * len(original.columns), f"{name}:{count}", where)
    draws = generator(seed, "", f"data/{name}/{count}")
    cardinalities = [min(values, count) for values in original.cardinalities]
    if set_name == "covertype":
        columns = _terrain(draws, count, cardinalities)
    elif original.pairs:
        total = original.one_hot_columns - sum(cardinalities) if count == original.rows else None
        columns = profiled(draws, count, cardinalities, original.pairs, total)
    else:
        columns = [skewed(draws, count, values) for values in cardinalities]
    X = one_hot(columns, original.pairs, where)
    hidden = SIGNAL[set_name] * _hidden(draws, columns)
    y = _labels(draws, hidden, set_name) if set_name in POSITIVE else _prices(draws, hidden)
    source = f"synthetic {name}, {X.shape[0]} rows x {X.shape[1]} one-hot columns, seed {seed}"
    return Table(X, y, source)


def _terrain(draws: Draws, rows: int, cardinalities: Sequence[int]) -> list[Whole]:
    """Return ten measures, and indicators of which each row has one of four and one of forty set."""
    columns = [skewed(draws, rows, values) for values in cardinalities[:10]]
    for group in (cardinalities[10:14], cardinalities[14:]):
        occurring = np.flatnonzero(np.array(group) == 2)
        chosen = occurring[skewed(draws, rows, min(len(occurring), rows))]
        columns.extend((chosen == indicator).astype(np.int64) for indicator in range(len(group)))
    return columns


def _hidden(draws: Draws, columns: Sequence[Whole]) -> Vector:
    """Return a linear function of the most frequent tenth of each column's values, of mean 0 and variance 1.

    Columns weigh the same, so that none of them decides and each seed gives data about as hard.
    """
    total = np.zeros(len(columns[0]))
    for column in columns:
        counts = np.bincount(column)
        frequent = np.argsort(-counts, kind="stable")[: max(1, len(counts) // 10)]
        weights = np.zeros(len(counts))
        weights[frequent] = draws.standard_normal(len(frequent))
        total += _standard(weights[column])
    return _standard(total)


def _labels(draws: Draws, hidden: Vector, set_name: str) -> Vector:
    """Return the larger label for that share of rows whose score is highest, noise included."""
    smaller, larger = ORIGINALS[set_name].labels
    scores = hidden + draws.logistic(size=len(hidden))
    positive = int(np.clip(round(POSITIVE[set_name] * len(scores)), 1, len(scores) - 1))
    y = np.full(len(scores), float(smaller))
    y[np.argsort(scores, kind="stable")[len(scores) - positive :]] = larger
    return y


def _prices(draws: Draws, hidden: Vector) -> Vector:
    """Return prices in millions: log-normal, with mean and spread of the logarithm as the original's."""
    scores = _standard(hidden + draws.standard_normal(len(hidden)))
    prices: Vector = np.exp(LOG_PRICE_MEAN + LOG_PRICE_SPREAD * scores)
    return prices


def _standard(values: Vector) -> Vector:
    spread = float(values.std())
    return (values - float(values.mean())) / (spread if spread > 0 else 1.0)

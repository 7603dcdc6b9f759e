"""ErasureHead's training in a plain loop: no engine, no messages, no code objects; what losses are held against.

Rows, their order and their split are those of the problem. A round is a list of the groups whose rows are summed, of
how many groups, and the factor on the sum: from the sorted delays of a scheme, or from what a real run has decoded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from emuml.experiment.result import Result
from emuml.workloads.auc import auc
from emuml.workloads.csr import CsrMatrix
from emuml.workloads.problem import RegressionProblem

WORKERS = 30
Floats = NDArray[np.float64]

SCHEMES: dict[str, tuple[int, int, str]] = {
    "uncoded": (1, 30, "none"),
    "ignore 3": (1, 27, "covered"),
    "ignore 15": (1, 15, "covered"),
    "ignore 15 unscaled": (1, 15, "none"),
    "cyclic s=2": (1, 28, "exact"),
    "FRC r=3": (3, 30, "none"),
    "AGC r=3 c=15": (3, 15, "none"),
    "AGC unbiased": (3, 15, "unbiased"),
    "AGC covered": (3, 15, "covered"),
    "AGC r=5 c=15": (5, 15, "none"),
}
"""Replicas of each row, answers at which a round closes at the latest, scaling; all is known of what is exact."""


class Decoded(NamedTuple):
    """What a round has of the gradient."""

    covered: list[int]
    groups: int
    factor: float = 1.0


def by_delays(scheme: str, delays: Floats) -> Iterator[Decoded]:
    """Yield what rounds decode whose workers answer in the order of their delays; shape (rounds, 30)."""
    replicas, collect, scale = SCHEMES[scheme]
    groups = WORKERS // replicas
    p = math.comb(WORKERS - replicas, collect) / math.comb(WORKERS, collect)
    for row in delays:
        seen: set[int] = set()
        for arrived, worker in enumerate(np.argsort(row, kind="stable").tolist()):
            if arrived == collect or len(seen) == groups:
                break
            seen.add(worker // replicas)
        if scale == "exact":
            seen = set(range(groups))
        factor = {"none": 1.0, "exact": 1.0, "unbiased": 1 / (1 - p), "covered": groups / len(seen)}[scale]
        yield Decoded(sorted(seen), groups, factor)


def by_run(run: Result) -> Iterator[Decoded]:
    """Yield what the rounds of a run without rescaling have decoded."""
    for row in run.metrics.rows[1:]:
        bits, groups = int(row["covered_set"], 16), int(row["groups"])
        yield Decoded([group for group in range(groups) if bits >> group & 1], groups)


def train(
    problem: RegressionProblem, rounds: Iterable[Decoded], rate: float, decay: float = 1.0
) -> tuple[Floats, Floats]:
    """Train by accelerated gradient descent.

    In round i, ``theta = 2/(i+2)`` and ``eta = rate decay^i``: ``y = (1-theta) b + theta v``,
    ``b' = y - (eta/N) g - 2 l2 eta b``, ``v' = b + (b'-b)/theta``; ``b`` and ``v`` start at zero.

    Returns
    -------
    (losses, parameters)
        Training losses after each round, that of the start first; the last parameters.
    """
    X, y = as_scipy(problem.features), problem.targets
    b = v = np.zeros(X.shape[1])
    losses = [loss(problem, X, y, b)]
    for i, decoded in enumerate(rounds):
        theta, eta = 2 / (i + 2), rate * decay**i
        ahead = (1 - theta) * b + theta * v
        stepped = ahead - eta / len(y) * gathered(problem, X, b, decoded) - 2 * problem.l2 * eta * b
        b, v = stepped, b + (stepped - b) / theta
        losses.append(loss(problem, X, y, b))
    return np.array(losses), b


def gathered(problem: RegressionProblem, X: Any, b: Floats, decoded: Decoded) -> Floats:
    """Return the sum that the server makes of a round's answers."""
    edges, each = problem.partition_bounds(WORKERS), WORKERS // decoded.groups
    chosen = np.concatenate([np.arange(edges[j * each], edges[(j + 1) * each]) for j in decoded.covered])
    rows, y = (X, problem.targets) if len(chosen) == len(problem.targets) else (X[chosen], problem.targets[chosen])
    if problem.model == "linear":
        found = -2.0 * (rows.T @ (y - rows @ b))
    else:
        found = -(rows.T @ (y / (1 + np.exp(y * (rows @ b)))))
    return np.asarray(decoded.factor * found)


def loss(problem: RegressionProblem, X: Any, y: Floats, b: Floats) -> float:
    """Return mean loss and regulariser."""
    seen = X @ b
    each = (y - seen) ** 2 if problem.model == "linear" else np.logaddexp(0.0, -y * seen)
    return float(each.mean() + problem.l2 * b @ b)


def quality(problem: RegressionProblem, losses: Floats, b: Floats) -> dict[str, float]:
    """Return the last losses, and for two classes the area under the ROC curve of the rows held back."""
    X, y = as_scipy(problem.validation_features), problem.validation_targets
    found = {"train loss": float(losses[-1]), "test loss": loss(problem, X, y, b)}
    return found if problem.model == "linear" else found | {"AUC": auc(X @ b, y > 0)}


def as_scipy(X: Any) -> Any:
    """Return a dense matrix as it is, a sparse one as one of SciPy's."""
    if not isinstance(X, CsrMatrix):
        return X
    values = np.ones(len(X.indices)) if X.values is None else X.values
    return scipy.sparse.csr_matrix((values, X.indices, X.indptr), shape=X.shape)

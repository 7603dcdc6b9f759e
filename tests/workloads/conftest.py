"""Small problems, made without any data set."""

from collections.abc import Callable

import numpy as np
import pytest

from emuml.workloads.optimizers import GradientDescent
from emuml.workloads.problem import RegressionProblem

Maker = Callable[..., RegressionProblem]


def make_problem(model="linear", rows=23, columns=4, *, seed=3, whole=False, held=5, **options):
    """A problem of random numbers; with ``whole``, of small integers, whose sums are exact in any order."""
    draws = np.random.default_rng(seed)
    shapes = (rows + held, columns), rows + held
    X, y = (draws.integers(-4, 5, shape).astype(float) if whole else draws.normal(size=shape) for shape in shapes)
    if model == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    settings = {"initial": np.zeros(columns), "optimizer": GradientDescent(rate=0.1), "l2": 0.01, "chunk_rows": 4}
    return RegressionProblem(model, X[held:], y[held:], X[:held], y[:held], **{**settings, **options})


@pytest.fixture(scope="session")
def make() -> Maker:
    return make_problem

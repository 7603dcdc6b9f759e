"""Declarations of linear models: which data, objective and optimizer. They hold no state and make problems.

``problem(seed)`` runs once, in the launcher: it loads the data, puts the rows in a seeded order, holds some back for
validation, scales the columns by the training rows, and settles the rate. Nodes rebuild the problem and never see this.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.memory import owned, rebuilt, sealed
from emuml.spec import Inputs, array_digest, check, to_spec
from emuml.streams import generator, stream_key, words_at
from emuml.workloads.csr import CsrMatrix, Matrix
from emuml.workloads.curvature import largest_eigenvalue
from emuml.workloads.data import Table, is_file, load, table_arrays
from emuml.workloads.losses import LOSSES
from emuml.workloads.optimizers import GradientDescent, Optimizer
from emuml.workloads.problem import RegressionProblem

Vector = NDArray[np.float64]
Data = str | Path | tuple[NDArray[Any] | CsrMatrix, NDArray[Any]]

CHUNK_ROWS = {"dense": 128, "sparse": 4096}
"""Rows of a block unless the declaration says so: see benchmarks/csr.py for the sparse ones."""


@dataclass(frozen=True, eq=False)
class Regression:
    """What both declarations share; use :class:`LogisticRegression` or :class:`LinearRegression`.

    Parameters
    ----------
    data : str, Path or (X, y)
        ``"breast-cancer"``, ``"digits"`` (odd digits against even ones), ``"diabetes"``, ``"two-gaussians"`` or
        ``"two-gaussians:ROWSxCOLUMNS"`` (synthetic), a one-hot encoded set (``"covertype"``, ``"kc-house"``,
        ``"amazon-access"``, ``NAME:PATH``, or its synthetic ``NAME-twin``; see docs/data.md), a path to an ``.npz``
        file with arrays X and y, or two arrays of shapes (rows, columns) and (rows,), which are copied unless nobody
        can write to them. X may be sparse: a :class:`~emuml.workloads.csr.CsrMatrix`, or any matrix of
        ``scipy.sparse``.
    l2 : float
        Weight of the squared norm of all parameters, the intercept included.
    optimizer : Optimizer
        Without a rate it takes 1/L, L being the largest curvature of the objective.
    validation : float
        Fraction of the rows held back, >= 0 and < 1, rounded up to whole rows; one row at least is trained on.
    batch : int, optional
        Rows that are drawn of each partition for a gradient. Default: all of them.
    chunk_rows : int, optional
        Rows of a block; a cancelled gradient stops between two blocks. Default: 128, or 4096 of a sparse matrix.
    intercept : bool
        Append a column of ones.
    standardize : bool, optional
        Give each column mean 0 and variance 1 over the training rows; constant ones become 0. Default: yes, but not
        for sparse matrices, which it would fill.
    initial_scale : float
        Standard deviation of the normal initial parameters; 0 for zeros.

    Raises
    ------
    UserError
        Naming the field, its value and what is allowed.
    """

    data: Data = "breast-cancer"
    l2: Annotated[float, Ge(0)] = 1e-4
    optimizer: Optimizer = field(default_factory=GradientDescent)
    validation: Annotated[float, Ge(0), Lt(1)] = 0.2
    batch: Annotated[int | None, Gt(0)] = None
    chunk_rows: Annotated[int | None, Gt(0)] = None
    intercept: bool = True
    standardize: bool | None = None
    initial_scale: Annotated[float, Ge(0)] = 0.0

    model: ClassVar[Literal["logistic", "linear"]]

    def __post_init__(self) -> None:
        if isinstance(self.data, Path):
            object.__setattr__(self, "data", str(self.data))
        elif not isinstance(self.data, str):
            object.__setattr__(self, "data", self._own_arrays())
        check(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        return rebuilt(self)

    @cached_property
    def _content(self) -> str:
        return json.dumps(to_spec(self, Inputs()))

    @property
    def _where(self) -> str:
        return f"{type(self).__name__}.data"

    def problem(self, seed: int) -> RegressionProblem:
        """Load the data and return what is trained.

        Parameters
        ----------
        seed : int
            Experiment seed, 0 <= seed < 2**64; the order of the rows is stream ``data-order`` of it.

        Raises
        ------
        UserError
            If the data cannot be had or used; the message says where and what would be accepted.
        """
        assert not isinstance(self.data, Path)
        table = load(self.data, seed, self._where)
        targets = self._targets(table.y)
        order = np.argsort(words_at(stream_key(seed, "", "data-order"), np.arange(len(targets))), kind="stable")
        # Rounded up, as scikit-learn's train_test_split does, so that the sizes of published splits come out.
        held, kept = np.split(order, [min(math.ceil(self.validation * len(order)), len(order) - 1)])
        train, validation = self._design(table.X, kept, held)
        return RegressionProblem(
            model=self.model,
            features=train,
            targets=targets[kept],
            validation_features=validation,
            validation_targets=targets[held],
            initial=self._initial(train.shape[1], seed),
            optimizer=self._settled(train),
            l2=self.l2,
            batch=self.batch,
            chunk_rows=self.chunk_rows or CHUNK_ROWS["sparse" if isinstance(train, CsrMatrix) else "dense"],
            seed=seed,
            names=self._names(table),
            source=table.source,
            inputs_sha256=(_digest(table.X), array_digest(table.y)),
        )

    def embedded(self, seed: int) -> Regression:
        """Return the same declaration with the arrays of a data file in place of its path."""
        if not isinstance(self.data, str) or not is_file(self.data):
            return self
        table = load(self.data, seed, self._where)
        return replace(self, data=(table.X, table.y))

    def _own_arrays(self) -> tuple[Matrix, Vector]:
        if not isinstance(self.data, (tuple, list)) or len(self.data) != 2:
            raise UserError(f"got {type(self.data).__name__}", self._where, "a name, a path to an .npz file, or (X, y)")
        X, y = table_arrays(*self.data, self._where)
        return X if isinstance(X, CsrMatrix) else owned(X), owned(y)

    def _targets(self, y: Vector) -> Vector:
        return y

    def _design(self, X: Matrix, kept: NDArray[np.int64], held: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
        """Return what is trained on and what is held back: columns scaled, the constant one appended."""
        if not isinstance(X, CsrMatrix):
            features = self._scaled(X, kept)
            return sealed(features[kept]), sealed(features[held])  # so that the problem need not copy them
        if self.standardize:
            raise UserError(
                "got true for a sparse matrix",
                f"{type(self).__name__}.standardize",
                "false, or left out",
                "columns of mean 0 have no zeros left; a dense array can be standardized",
            )
        parts = X.take(kept), X.take(held)
        return (parts[0].with_constant_column(), parts[1].with_constant_column()) if self.intercept else parts

    def _scaled(self, X: Vector, kept: NDArray[np.int64]) -> Vector:
        if self.standardize is not False:
            train = X[kept]
            mean, spread = train.mean(axis=0), train.std(axis=0)
            # A constant column has a spread of rounding errors; dividing by it would make noise of size 1.
            varies = spread > 1e-12 * np.maximum(np.abs(mean), 1e-300)
            X = np.where(varies, (X - mean) / np.where(varies, spread, 1.0), 0.0)
        return np.hstack([X, np.ones((len(X), 1))]) if self.intercept else X

    def _initial(self, n_parameters: int, seed: int) -> Vector:
        if self.initial_scale == 0:
            return np.zeros(n_parameters)
        return self.initial_scale * generator(seed, "", "initial").standard_normal(n_parameters)

    def _settled(self, features: Matrix) -> Optimizer:
        """Return the optimizer with a rate: 1/L, L = curvature * (largest eigenvalue of X'X) / rows + 2 l2."""
        if self.optimizer.rate is not None:
            return self.optimizer
        largest = largest_eigenvalue(features)
        curvature = float(LOSSES[self.model].curvature * largest / len(features) + 2.0 * self.l2)
        if not 0 < curvature < float("inf"):
            allowed = "columns that vary and whose squares are finite"
            raise UserError(f"the objective has curvature {curvature}", self._where, allowed, "give a rate")
        return replace(self.optimizer, rate=1.0 / curvature)

    def _names(self, table: Table) -> tuple[str, ...]:
        if not table.names:
            return ()
        return (*table.names, "intercept") if self.intercept else table.names


def _digest(X: Matrix) -> str:
    return X.digest if isinstance(X, CsrMatrix) else array_digest(X)


@dataclass(frozen=True, eq=False)
class LogisticRegression(Regression):
    """Two classes by a linear margin: mean of ``log(1 + exp(-y x.b))`` plus ``l2 |b|^2``, y = -1 or +1.

    Parameters are those of :class:`Regression`. The data have exactly two distinct labels; the larger one becomes +1.

    Examples
    --------
    >>> problem = LogisticRegression(data=(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1]))).problem(7)
    >>> problem.rows, problem.n_parameters
    (3, 2)
    """

    model = "logistic"

    def _targets(self, y: Vector) -> Vector:
        labels = np.unique(y)
        if len(labels) != 2:
            shown = ", ".join(f"{label:g}" for label in labels[:4]) + (", ..." if len(labels) > 4 else "")
            raise UserError(f"got {len(labels)} distinct labels ({shown})", f"{self._where}.y", "exactly two labels")
        return np.where(y == labels[1], 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class LinearRegression(Regression):
    """Least squares: mean of ``(y - x.b)^2`` plus ``l2 |b|^2``, y in its own units.

    Parameters are those of :class:`Regression`.

    Examples
    --------
    >>> problem = LinearRegression(data=(np.array([[1.0], [2.0]]), np.array([2.0, 4.0])), validation=0.5).problem(7)
    >>> problem.rows
    1
    """

    data: Data = "diabetes"

    model = "linear"

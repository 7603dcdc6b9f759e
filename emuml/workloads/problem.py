"""A regression on a dense or sparse matrix, ready to train: what node processes rebuild and ask for gradients.

1. Every row belongs to exactly one partition; partition sizes differ by at most one row.
2. A gradient is a sum over rows, in ascending order of partition, then block, so that replicas are equal bit for bit.
   Of dense rows blocks and then partitions are added up; sparse rows are added one by one, in place.
3. The regulariser and the division by the number of rows belong to the step and never to a worker.

Nothing here reads files, clocks or unnamed randomness, or needs more than numpy and our kernels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from emuml.errors import ContractError, UserError
from emuml.memory import owned, rebuilt
from emuml.spec import Inputs, check, to_spec
from emuml.task import Task
from emuml.workloads.auc import auc
from emuml.workloads.csr import CsrMatrix, Matrix
from emuml.workloads.gradients import partition_gradient, share_gradient
from emuml.workloads.losses import LOSSES, predict
from emuml.workloads.optimizers import Optimizer, State
from emuml.workloads.partitions import partition_bounds, partition_rows

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressionProblem:
    """Data, objective and optimizer of a linear model; equal problems have equal content.

    Arrays are shared if they are read-only, contiguous float64 and so is who owns their memory; others are copied.

    The objective is ``(1/rows) * sum(loss of a row) + l2 * |parameters|^2``; see
    :data:`emuml.workloads.losses.LOSSES` for the losses.

    Parameters
    ----------
    model : {"logistic", "linear"}
        Which loss.
    features : ndarray of float64 or CsrMatrix, shape (rows, n_parameters)
        Training rows in the order in which partitions take them.
    targets : ndarray of float64, shape (rows,)
        For logistic: -1 or +1.
    validation_features, validation_targets : as ``features`` and ``targets``
        Rows that no gradient sees; there may be none.
    initial : ndarray of float64, shape (n_parameters,)
        Parameters before the first step.
    optimizer : Optimizer
        With a rate.
    l2 : float
        Weight of the squared norm.
    batch : int, optional
        Rows that are drawn of each partition for a gradient. Default: all of them.
    chunk_rows : int
        Rows of a block; a cancelled gradient stops between two blocks.
    seed : int
        Of the streams that choose batches.
    names : tuple of str
        One name for each parameter, or none at all.
    source : str
        Where the data come from.
    inputs_sha256 : tuple of str
        Digests (:func:`emuml.spec.array_digest`) of X and y as they were loaded.

    Raises
    ------
    UserError
        If shapes do not fit together, a logistic target is not -1 or +1, or the optimizer has no rate.
    """

    model: Literal["logistic", "linear"]
    features: Matrix
    targets: Vector
    validation_features: Matrix
    validation_targets: Vector
    initial: Vector
    optimizer: Optimizer
    l2: Annotated[float, Ge(0)] = 0.0
    batch: Annotated[int | None, Gt(0)] = None
    chunk_rows: Annotated[int, Gt(0)] = 128
    seed: Annotated[int, Ge(0)] = 0
    names: tuple[str, ...] = ()
    source: str = "arrays"
    inputs_sha256: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self)
        for name in ("features", "targets", "validation_features", "validation_targets", "initial"):
            if not isinstance(value := getattr(self, name), CsrMatrix):
                object.__setattr__(self, name, owned(np.asarray(value)))
        self._check_shapes()
        if self.names and len(self.names) != len(self.initial):
            raise UserError(f"got {len(self.names)} names", "RegressionProblem.names", f"none or {len(self.initial)}")
        if self.model == "logistic" and not (np.abs(self.targets) == 1).all():
            raise UserError("not all targets are -1 or +1", "RegressionProblem.targets", "-1 and +1 for logistic")
        self.optimizer.rate_at(0)

    def _check_shapes(self) -> None:
        columns = self.features.shape[1:]
        wanted = {
            "features": (max(len(self.features), 1), *(columns if len(columns) == 1 else ("columns",))),
            "targets": (len(self.features),),
            "validation_features": (len(self.validation_features), *columns),
            "validation_targets": (len(self.validation_features),),
            "initial": columns,
        }
        for name, shape in wanted.items():
            found = getattr(self, name).shape
            if found != shape:
                raise UserError(f"has shape {found}", f"RegressionProblem.{name}", f"shape {shape}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegressionProblem):
            return NotImplemented
        return self is other or (hash(self) == hash(other) and self._content == other._content)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        return rebuilt(self)

    @cached_property
    def _hash(self) -> int:
        # Cheap, because the emulator asks for every task; equality digests the arrays.
        return hash((self.model, self.features.shape, self.l2, self.batch, self.chunk_rows, self.seed, self.source))

    @cached_property
    def _content(self) -> str:
        return json.dumps(to_spec(self, Inputs()))

    @property
    def rows(self) -> int:
        """Number of training rows."""
        return len(self.features)

    @property
    def n_parameters(self) -> int:
        """Number of parameters: columns of the data, and one more with an intercept."""
        return len(self.initial)

    @property
    def full_cost(self) -> float:
        """Cost of one pass over the training rows, in rows."""
        return float(self.rows)

    def partition_bounds(self, partitions: int) -> NDArray[np.int64]:
        """Return where partitions of the training rows begin and end, shape (partitions + 1,).

        Partition i has the rows from ``bounds[i]`` to ``bounds[i + 1] - 1``; every row is in one, and sizes differ by
        at most one.

        Raises
        ------
        UserError
            If there are not from one to as many partitions as rows.
        """
        return partition_bounds(self.rows, partitions)

    def gradient(
        self,
        parameters: Vector,
        owned: tuple[int, ...],
        partitions: int,
        coefficients: tuple[float, ...] | None = None,
        draw: int | None = None,
    ) -> Task:
        """Return the task of summing gradients over some partitions.

        Parameters
        ----------
        parameters : ndarray of float64, shape (n_parameters,)
        owned : tuple of int
            Partitions, distinct; they are added in ascending order, whatever the order here.
        partitions : int
            How many partitions the rows are cut into.
        coefficients : tuple of float, optional
            Factor of each owned partition, in the order of ``owned``. Default: 1.
        draw : int, optional
            Round or clock: names the batch, the same for all who own a partition, and the task's delay. Needed with
            ``batch``.

        Returns
        -------
        Task
            Its value is a float64 array of shape (n_parameters,); with ``batch``, an unbiased estimate of the sum. Its
            cost is the number of rows that it reads. Tasks with equal problems, partitions and coefficients, and the
            same parameters, have equal keys.

        Raises
        ------
        ContractError
            If partitions repeat or do not exist, or an argument is missing.
        """
        mine, factors = _in_order(owned, coefficients)
        if not mine or len(set(mine)) < len(mine) or mine[0] < 0 or mine[-1] >= partitions:
            raise ContractError(f"owned must be distinct partitions of 0..{partitions - 1}, got {owned}")
        if self.batch is not None and draw is None:
            raise ContractError("a gradient over batches needs a draw, such as the round")
        rows, most = self.rows, self.batch or self.rows
        cost = sum([min(len(partition_rows(rows, i, partitions)), most) for i in mine])
        position = None if self.batch is None else draw
        inputs = (self, parameters, mine, partitions, factors, position)
        return Task(partition_gradient, inputs, self._cost(cost), self._shape, draw=draw, cancellable=True)

    def _cost(self, rows: int) -> float:
        """Return the cost of reading so many rows, the same object every time: tasks are kept by the million."""
        return self._costs.setdefault(rows, float(rows))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return self.initial.shape  # an array makes a tuple each time

    @cached_property
    def _costs(self) -> dict[int, float]:
        return {}

    def start(self) -> State:
        """Return the optimizer's state before the first step from ``initial``."""
        return tuple(_frozen(array) for array in self.optimizer.start(self.initial))

    def step(self, state: State, parameters: Vector, gradient: Vector, round_index: int) -> tuple[State, Vector]:
        """Return state and parameters after one step; see :meth:`emuml.workloads.optimizers.Optimizer.step`.

        Parameters
        ----------
        state : tuple of ndarray
            From :meth:`start` or the step before.
        parameters, gradient : ndarray of float64, shape (n_parameters,)
            ``gradient`` is a sum over all training rows, or an estimate of it.
        round_index : int
            Counted from 0.

        Returns
        -------
        (state, parameters)
            New read-only arrays; the old ones stay as they were.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # A diverging run must end by its losses, not by a warning.
            after, stepped = self.optimizer.step(state, parameters, gradient, round_index, rows=self.rows, l2=self.l2)
        return tuple(_frozen(array) for array in after), _frozen(stepped)

    def push(self, parameters: Vector, share: int, shares: int, draw: int) -> Task:
        """Return the task of one share of the objective's gradient, the penalty included.

        Parameters
        ----------
        parameters : ndarray of float64, shape (n_parameters,)
        share, shares : int
            Which partition of the rows, of how many.
        draw : int
            The clock: names the batch and the task's delay.

        Returns
        -------
        Task
            Its value is a float64 array of shape (n_parameters,): the gradient sum of the rows, and their part of
            ``2 l2 rows parameters``. Summed over all shares it is ``rows`` times the gradient of the objective.
        """
        rows = len(partition_rows(self.rows, share, shares))
        cost, position = self._cost(min(rows, self.batch or rows)), None if self.batch is None else draw
        inputs = (self, parameters, share, shares, position)
        return Task(share_gradient, inputs, cost, self._shape, draw=draw, cancellable=True)

    def apply(self, state: State, parameters: Vector, push: Vector, clock: int) -> tuple[State, Vector]:
        """Return state and parameters after one step with what :meth:`push` gives, or with a sum of such pushes."""
        with np.errstate(over="ignore", invalid="ignore"):
            after, stepped = self.optimizer.step(state, parameters, push, clock, rows=self.rows, l2=0.0)
        return tuple(_frozen(array) for array in after), _frozen(stepped)

    @property
    def has_state(self) -> bool:
        """Whether a step depends on the steps before it."""
        return bool(self.optimizer.start(self.initial))

    def loss(self, parameters: Vector) -> float:
        """Return the objective at ``parameters``: mean loss over all training rows and the regulariser."""
        return self.metrics(parameters)["train_loss"]

    def metrics(self, parameters: Vector) -> dict[str, float]:
        """Evaluate parameters on all rows; for observers, never for handlers.

        Returns
        -------
        dict of str to float
            ``train_loss`` and ``validation_loss``: mean loss plus regulariser, over training and validation rows.
            Logistic: ``accuracy``, ``validation_accuracy``, fractions of rows whose class is predicted (+1 at a margin
            of 0); ``auc``, ``validation_auc``, areas under the ROC curve, see :func:`emuml.workloads.auc.auc`. Linear:
            ``mse``, ``validation_mse``, in squared units of the target. Without validation rows their keys are absent,
            as that of an area is where all rows are of one class.
        """
        values = self._metrics_on(self.features, self.targets, parameters, ("train_loss", ""))
        if len(self.validation_features):
            held_out = (self.validation_features, self.validation_targets)
            values |= self._metrics_on(*held_out, parameters, ("validation_loss", "validation_"))
        return values

    def _metrics_on(
        self, features: Matrix, targets: Vector, parameters: Vector, names: tuple[str, str]
    ) -> dict[str, float]:
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = predict(features, parameters, self.chunk_rows)
            mean_loss = float(np.mean(LOSSES[self.model].value(predictions, targets)))
            loss = mean_loss + self.l2 * float(parameters @ parameters)
        if self.model == "linear":
            return {names[0]: loss, f"{names[1]}mse": mean_loss}
        positive = targets > 0
        values = {names[0]: loss, f"{names[1]}accuracy": float(np.mean((predictions >= 0) == positive))}
        if 0 < np.count_nonzero(positive) < len(positive):
            values[f"{names[1]}auc"] = auc(predictions, positive)
        return values


def _in_order(
    owned: tuple[int, ...], coefficients: tuple[float, ...] | None
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Return partitions in ascending order with their factors; those given, not copied, if they are so already."""
    if coefficients is not None and len(coefficients) != len(owned):
        raise ContractError(f"got {len(coefficients)} coefficients for {len(owned)} partitions")
    if len(owned) == 1 and type(owned[0]) is int:
        return owned, None if coefficients is None else (float(coefficients[0]),)
    order = sorted(range(len(owned)), key=owned.__getitem__)
    mine = tuple([int(owned[i]) for i in order])
    if mine == owned and set(map(type, owned)) == {int}:
        mine = owned
    return mine, None if coefficients is None else tuple([float(coefficients[i]) for i in order])


def _frozen(array: NDArray[np.float64]) -> Vector:
    """Return what the optimizer made as a read-only C-ordered float64 array, without copying what is one already."""
    plain = np.ascontiguousarray(np.asarray(array), np.float64).view()
    plain.flags.writeable = False
    return plain

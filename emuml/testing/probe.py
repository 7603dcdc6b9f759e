"""A problem made for oracles: tiny, exact, and its parameters say which updates are in them.

Asynchronous protocols: coordinate ``p`` of the table is the sum of ``2**clock`` over the pushes of worker ``p``, so the
set of applied pushes is read off, and a push that is applied twice carries into the next bit. Synchronous ones:
gradients differ by partition, round and parameters, and are whole numbers, so that sums are exact in any order; steps
have momentum, so that optimizer state that is lost or kept in the wrong place shows in the parameters.

``Rough`` has gradients whose sums depend on their order, for oracles that compare bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.lazy import array_of
from emuml.task import Task

Vector = NDArray[Any]
ROWS = 60
_PRIME = 1_000_003


class Probe:
    """The problem; it serves workers of both kinds of protocols.

    Parameters
    ----------
    workers : int
        How many there are.
    """

    rows = ROWS
    full_cost = float(ROWS)
    has_state = False

    def __init__(self, workers: int) -> None:
        self.initial = np.zeros(workers)
        self.initial.flags.writeable = False

    def partition_bounds(self, partitions: int) -> NDArray[np.int64]:
        """Return the bounds of equal partitions."""
        if partitions > ROWS:
            raise UserError(f"got {partitions} for {ROWS} rows", "partitions", f"at most {ROWS}")
        return np.linspace(0, ROWS, partitions + 1).astype(np.int64)

    def gradient(
        self,
        parameters: Vector,
        owned: tuple[int, ...],
        partitions: int,
        coefficients: tuple[float, ...] | None = None,
        draw: int | None = None,
    ) -> Task:
        """Return the task of a coded sum over partitions."""
        cost = self.full_cost * len(owned) / partitions
        return Task(coded_sum, (parameters, owned, coefficients, draw), cost, parameters.shape, draw=draw)

    def push(self, parameters: Vector, share: int, shares: int, draw: int) -> Task:
        """Return the task whose value is ``2**draw`` at the coordinate of the share."""
        return Task(bit, (parameters, share, draw), self.full_cost / shares, parameters.shape, draw=draw)

    def start(self) -> tuple[Vector]:
        """Return the state before the first step: no momentum."""
        return (np.zeros_like(self.initial),)

    def step(self, state: Any, parameters: Vector, gradient: Vector, round: int) -> tuple[Any, Vector]:
        """Return state and parameters after a step with momentum; sums modulo a prime stay whole and small."""
        momentum = np.mod(state[0] + np.asarray(gradient), _PRIME)
        return (momentum,), np.mod(parameters + momentum, _PRIME)

    def apply(self, state: Any, parameters: Vector, push: Vector, clock: int) -> tuple[Any, Vector]:
        """Return state and parameters after a push, or a sum of pushes; pushes have no momentum."""
        return state, parameters + push

    def metrics(self, parameters: Vector) -> Mapping[str, float]:
        """Return nothing."""
        return {}


class Rough(Probe):
    """The same for synchronous protocols, with gradients and steps that round: the order of additions shows.

    Examples
    --------
    >>> problem = Rough(6)
    >>> parts = [problem.gradient(problem.initial, (partition,), 6, draw=0).run() for partition in range(6)]
    >>> bool((sum(parts) == sum(reversed(parts))).all())
    False
    """

    def gradient(
        self,
        parameters: Vector,
        owned: tuple[int, ...],
        partitions: int,
        coefficients: tuple[float, ...] | None = None,
        draw: int | None = None,
    ) -> Task:
        """Return the task of a coded sum over partitions."""
        exact = super().gradient(parameters, owned, partitions, coefficients, draw)
        return Task(rough_sum, exact.inputs, exact.cost, exact.shape, draw=draw)

    def step(self, state: Any, parameters: Vector, gradient: Vector, round: int) -> tuple[Any, Vector]:
        """Return state and parameters after a step with momentum."""
        momentum = 0.9 * state[0] + np.asarray(gradient)
        return (momentum,), parameters - 0.01 * momentum


def rough_sum(parameters: Vector, owned: tuple[int, ...], coefficients: Any, draw: int) -> Vector:
    """Return numbers of many digits and sizes that differ by partition, round and parameters."""
    total = np.zeros_like(parameters)
    places = np.arange(1.0, len(parameters) + 1.0)
    for i, partition in enumerate(owned):
        part = np.sin(np.asarray(parameters) + places * (partition + 1.0) + draw) * 10.0 ** (partition % 3)
        total = total + (1.0 if coefficients is None else coefficients[i]) * part
    return total


def coded_sum(parameters: Vector, owned: tuple[int, ...], coefficients: Any, draw: int) -> Vector:
    """Return whole numbers that differ by partition, round and parameters."""
    total = np.zeros_like(parameters)
    for i, partition in enumerate(owned):
        part = np.mod((np.asarray(parameters) + 3.0) * (7.0 * partition + 11.0) + 13.0 * draw, 1009.0)
        total = total + (1.0 if coefficients is None else coefficients[i]) * part
    return total


def bit(parameters: Vector, share: int, draw: int) -> Vector:
    """Return zeros, and ``2**draw`` at the share."""
    value = np.zeros_like(parameters)
    value[share] = 2.0**draw
    return value


def clocks(table: Any, worker: int) -> int | None:
    """Return how many pushes of a worker a table holds, if they are the first ones, each once; else ``None``.

    Examples
    --------
    >>> clocks([7.0, 5.0], 0), clocks([7.0, 5.0], 1)
    (3, None)
    """
    value = int(array_of(table)[worker] if not isinstance(table, list) else table[worker])
    return value.bit_length() if value & (value + 1) == 0 else None

"""A task: a pure function of immutable inputs, with a declared cost and result shape.

Engines run it: the emulator when its value is read, the runtime off the event loop. Nothing here knows which.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import ContractError

Cancelled = Callable[[], bool]


def never_cancelled() -> bool:
    """Return False: the default for tasks that nobody can cancel."""
    return False


@dataclass(frozen=True, slots=True)
class Task:
    """Work for one slot of a node.

    Parameters
    ----------
    function : callable
        Pure; called as ``function(*inputs)``, or ``function(*inputs, cancelled)`` if ``cancellable``. In the second
        form it asks ``cancelled()`` between chunks and raises :class:`emuml.errors.TaskCancelled` if that is true.
    inputs : tuple
        Immutable values; arrays are made read-only when the task is handed to ``ctx.compute``.
    cost : float
        Work units, finite and > 0. Delay laws see it as load: cost / (cost of a full pass / number of workers).
    shape, dtype
        Of the array it returns.
    draw : int, optional
        Position of its delay in the node's delay stream, such as the round; a redo uses the same draw.
        Default: how many tasks this incarnation has started before.
    whole : float, optional
        Cost of the whole that this task is a share of, at least ``cost``: it takes ``cost / whole`` of the time that
        the whole takes in this draw, so that shares of one draw take as long as the whole, up to rounding.
        Default: it is a whole by itself.
    """

    function: Callable[..., NDArray[Any]]
    inputs: tuple[Any, ...]
    cost: float
    shape: tuple[int, ...]
    dtype: str = "<f8"
    draw: int | None = None
    cancellable: bool = False
    whole: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.cost < float("inf")):
            raise ContractError(f"a task's cost must be finite and > 0, got {self.cost!r}")
        if self.whole is not None and not (self.cost <= self.whole < float("inf")):
            raise ContractError(f"a share of cost {self.cost!r} needs a whole that costs as much, got {self.whole!r}")

    def seconds(self, law: Callable[[int, float], float], draw: int, unit_cost: float) -> float:
        """Return how long the task takes by a law that maps (draw, load) to seconds; ``unit_cost`` is load 1."""
        if self.whole is None:
            return law(draw, self.cost / unit_cost)
        return law(draw, self.whole / unit_cost) * (self.cost / self.whole)

    def run(self, cancelled: Cancelled = never_cancelled) -> NDArray[Any]:
        """Evaluate the task.

        Returns
        -------
        ndarray, read-only, of the declared shape and dtype

        Raises
        ------
        ContractError
            If the function returned something else than it declared.
        """
        extra = (cancelled,) if self.cancellable else ()
        inputs = [item.value() if hasattr(item, "evaluated") else item for item in self.inputs]
        value: object = self.function(*inputs, *extra)
        if not isinstance(value, np.ndarray) or value.shape != self.shape or value.dtype != np.dtype(self.dtype):
            got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise ContractError(f"task {self.name} declared {self.dtype} {self.shape} and returned {got}")
        if type(value) is not np.ndarray or value.base is not None or not value.flags.c_contiguous:
            value = np.ascontiguousarray(value).reshape(self.shape)
        value.flags.writeable = False
        return value

    @property
    def name(self) -> str:
        """Name of the function, for traces and errors."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def key(self) -> Hashable:
        """Return what identifies the value: the function, and its inputs by identity (arrays) or value."""
        return (self.function, *map(_identity, self.inputs))


def _identity(item: object) -> Hashable:
    """Return what tells an input from every other: 3, 3.0 and True differ, and so do 0.0 and -0.0.

    Arrays, and results that may not be made yet, are known by identity.
    """
    kind = type(item)
    if kind is int or item is None:
        return kind, item
    if hasattr(item, "__array_ufunc__"):
        return id(item)
    if isinstance(item, float):
        return float, item.hex()
    if kind is tuple:
        return tuple(map(_identity, item))  # type: ignore[call-overload]
    return kind, item

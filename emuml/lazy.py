"""Compute results that are not evaluated before somebody reads them, and the one way to form sums of them.

Protocols put results into messages and hand them to :func:`combine`, which sums in a fixed order. On the emulator a
result is a :class:`Deferred`, over TCP an array; a protocol that reads one cannot tell, but makes the emulator work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml._kernels import weighted_sum
from emuml.errors import ContractError
from emuml.task import Task


class Deferred(np.lib.mixins.NDArrayOperatorsMixin):
    """The value of a task, made when first read. Its shape and dtype are known before.

    Reading it in any way that reads an array (arithmetic, indexing, numpy functions, methods) makes the value, so that
    code which computes with an answer works as it does over TCP; code that only sends it on or hands it to
    :func:`combine` leaves it to whoever needs it.

    Parameters
    ----------
    task : Task
    tag, node : optional
        They name the task in errors, because laziness moves the moment of an error.
    """

    __slots__ = ("__weakref__", "_node", "_tag", "_value", "dtype", "shape", "task")

    def __init__(self, task: Task, tag: object = None, node: object = None) -> None:
        # Kept after evaluation too: replicas are recognised by the identity of the inputs, which must stay alive.
        self.task = task
        self._value: NDArray[Any] | None = None
        self.shape = task.shape
        self.dtype = np.dtype(task.dtype)
        self._tag, self._node = tag, node

    @property
    def evaluated(self) -> bool:
        """Whether the value has been made."""
        return self._value is not None

    def value(self) -> NDArray[Any]:
        """Return the array, evaluating the task the first time.

        Raises
        ------
        Exception
            What the task raises, with a note that names the node, the tag and when it started.
        """
        if self._value is None:
            try:
                self._value = self.task.run()
            except Exception as error:
                error.add_note(f"while evaluating the result of task {self._tag!r} of {self._node}")
                raise
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(array_of, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.value()[key]

    def __setitem__(self, key: Any, item: Any) -> None:
        self.value()[key] = item  # raises as for any array that was sent: it is read-only

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value())

    def __contains__(self, item: Any) -> bool:
        return item in self.value()

    def __float__(self) -> float:
        return float(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<result {self.dtype} {self.shape}{'' if self.evaluated else ', not evaluated'}>"


def _plain(argument: Any) -> Any:
    """Return an argument of a numpy function with the results in it as arrays."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(_plain(item) for item in argument)
    return array_of(argument)


def array_of(result: Any) -> Any:
    """Return the array behind a compute result; anything else as it is."""
    return result.value() if isinstance(result, Deferred) else result


def combine(weights: Sequence[float] | NDArray[np.float64], results: Sequence[NDArray[Any] | Deferred]) -> NDArray[Any]:
    """Return ``sum_j weights[j] * results[j]``, added in the order given.

    The first term starts the sum, so a single result of weight 1 comes back bit for bit. The order is the caller's:
    give results by worker or partition id, never by arrival.

    Parameters
    ----------
    weights : sequence of float, length k
        Dimensionless.
    results : sequence of arrays or compute results, length k >= 1
        Of one shape and dtype (float64 or float32).

    Returns
    -------
    ndarray
        A fresh array.

    Raises
    ------
    ContractError
        If lengths, shapes or dtypes differ, or nothing is given.

    Examples
    --------
    >>> combine([1.0, 2.0], [np.array([1.0, 2.0]), np.array([10.0, 0.5])])
    array([21.,  3.])
    """
    if len(weights) != len(results) or not len(results):
        raise ContractError(
            f"combine needs as many weights as results and at least one, got {len(weights)}, {len(results)}"
        )
    arrays = [array_of(result) for result in results]
    first = arrays[0]
    for position, array in enumerate(arrays):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise ContractError(
                f"combine: result {position} is {array.dtype} {array.shape}, result 0 is {first.dtype} {first.shape}"
            )
    out = np.empty(first.size, first.dtype)
    flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    weighted_sum(np.asarray(weights, np.float64), flat, out)
    return out.reshape(first.shape)

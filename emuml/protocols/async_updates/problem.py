"""What asynchronous protocols need of a workload beyond :class:`emuml.protocol.Problem`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from emuml.protocol import Problem


@runtime_checkable
class SharedProblem(Problem, Protocol):
    """A problem whose objective is a sum of shares, one for each worker, with the penalty cut into shares, too."""

    def push(self, parameters: NDArray[Any], share: int, shares: int, draw: int) -> Any:
        """Return the task whose value is the gradient sum of one share of the objective, penalty included."""

    def apply(self, state: Any, parameters: NDArray[Any], push: NDArray[Any], clock: int) -> tuple[Any, NDArray[Any]]:
        """Return the optimizer's state and the parameters after one step with a push, or with a sum of pushes."""

    @property
    def has_state(self) -> bool:
        """Whether steps depend on the steps before them."""

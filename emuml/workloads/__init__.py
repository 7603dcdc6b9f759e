"""What is trained: declarations of workloads, the problems that nodes rebuild from them, and the rules of their steps.

Each name is imported when it is first used, because a node process needs the problem and never the declarations or
the loaders of named data sets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "LogisticRegression": "emuml.workloads.regression",
    "LinearRegression": "emuml.workloads.regression",
    "RegressionProblem": "emuml.workloads.problem",
    "CsrMatrix": "emuml.workloads.csr",
    "GradientDescent": "emuml.workloads.optimizers",
    "AcceleratedGradientDescent": "emuml.workloads.optimizers",
    "Optimizer": "emuml.workloads.optimizers",
    "Schedule": "emuml.workloads.optimizers",
    "Constant": "emuml.workloads.optimizers",
    "Exponential": "emuml.workloads.optimizers",
    "InverseTime": "emuml.workloads.optimizers",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from emuml.workloads.csr import CsrMatrix as CsrMatrix
    from emuml.workloads.optimizers import AcceleratedGradientDescent as AcceleratedGradientDescent
    from emuml.workloads.optimizers import Constant as Constant
    from emuml.workloads.optimizers import Exponential as Exponential
    from emuml.workloads.optimizers import GradientDescent as GradientDescent
    from emuml.workloads.optimizers import InverseTime as InverseTime
    from emuml.workloads.optimizers import Optimizer as Optimizer
    from emuml.workloads.optimizers import Schedule as Schedule
    from emuml.workloads.problem import RegressionProblem as RegressionProblem
    from emuml.workloads.regression import LinearRegression as LinearRegression
    from emuml.workloads.regression import LogisticRegression as LogisticRegression


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'emuml.workloads' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

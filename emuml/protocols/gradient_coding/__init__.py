"""Gradient coding: redundant partial gradients, so that a step needs no answer from stragglers.

Codes say who computes what and how answers combine; ``GradientCoding`` is the protocol that runs them. It is imported
when it is first used, so that theory and tests of codes load no node.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emuml.protocols.gradient_coding.codes import (
    BalancedRepetition,
    Bernoulli,
    BuiltCode,
    CyclicMDS,
    CyclicRepetition,
    Decoding,
    Expander,
    FractionalRepetition,
    GraphCode,
    GroupCode,
    HeterogeneousCode,
    IgnoreStragglers,
    LinearCode,
    PartialWork,
    StochasticCode,
    Uncoded,
    VerifiedRepetition,
    YeAbbe,
    answered_in,
    estimate_absence,
)

if TYPE_CHECKING:
    from emuml.protocols.gradient_coding.protocol import GradientCoding as GradientCoding

__all__ = [
    "GradientCoding",
    "Uncoded",
    "IgnoreStragglers",
    "FractionalRepetition",
    "VerifiedRepetition",
    "StochasticCode",
    "HeterogeneousCode",
    "estimate_absence",
    "answered_in",
    "CyclicRepetition",
    "CyclicMDS",
    "YeAbbe",
    "BalancedRepetition",
    "GraphCode",
    "Expander",
    "Bernoulli",
    "PartialWork",
    "BuiltCode",
    "GroupCode",
    "LinearCode",
    "Decoding",
]


def __getattr__(name: str) -> Any:
    if name != "GradientCoding":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("emuml.protocols.gradient_coding.protocol"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

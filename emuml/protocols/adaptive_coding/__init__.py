"""Adaptive coding: redundancy and the number of answers to wait for are chosen online, from observed arrivals.

``AdaptiveCoding`` is the protocol; its nodes are those of gradient coding with a code for each round. The choice itself
(``chooser.py``) knows no node: it is told of rounds and says what the next one uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emuml.protocols.adaptive_coding.protocol import AdaptiveCoding as AdaptiveCoding

__all__ = ["AdaptiveCoding"]


def __getattr__(name: str) -> Any:
    if name != "AdaptiveCoding":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("emuml.protocols.adaptive_coding.protocol"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

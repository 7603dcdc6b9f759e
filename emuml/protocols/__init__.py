"""The protocols that come with emuml, each imported when it is first used.

A protocol is pure: it declares nodes whose handlers send, compute and save through their context, and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emuml.protocols.adaptive_coding import AdaptiveCoding as AdaptiveCoding
    from emuml.protocols.async_updates import AsyncUpdates as AsyncUpdates
    from emuml.protocols.gradient_coding import GradientCoding as GradientCoding
    from emuml.protocols.sequential_coding import SequentialGradientCoding as SequentialGradientCoding

_HOMES = {
    "GradientCoding": "emuml.protocols.gradient_coding",
    "AdaptiveCoding": "emuml.protocols.adaptive_coding",
    "AsyncUpdates": "emuml.protocols.async_updates",
    "SequentialGradientCoding": "emuml.protocols.sequential_coding",
}

__all__ = ["GradientCoding", "AdaptiveCoding", "AsyncUpdates", "SequentialGradientCoding"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

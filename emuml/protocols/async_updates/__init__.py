"""Asynchronous updates: workers at their own pace, held back by a barrier.

Barriers say who may start which iteration; ``AsyncUpdates`` is the protocol that runs them. It is imported when it is
first used, so that theory and tests of barriers load no node.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emuml.protocols.async_updates.barriers import ASP, BSP, SSP, Barrier

if TYPE_CHECKING:
    from emuml.protocols.async_updates.protocol import AsyncUpdates as AsyncUpdates

__all__ = ["AsyncUpdates", "Barrier", "BSP", "SSP", "ASP"]


def __getattr__(name: str) -> Any:
    if name != "AsyncUpdates":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("emuml.protocols.async_updates.protocol"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Sequential gradient coding: codes over several rounds, which need less work for stragglers that come in bursts.

``SelectiveRepetition`` (SR-SGC) and ``MultiplexedCoding`` (M-SGC) say who does what in which round;
``SequentialGradientCoding`` is the protocol that runs them. It is imported when it is first used, so that theory and
tests of codes load no node.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emuml.protocols.sequential_coding.multiplexed import MultiplexedCoding
from emuml.protocols.sequential_coding.seam import Chunk, Schedule, Sequence, SequentialCode
from emuml.protocols.sequential_coding.selective import SelectiveRepetition

if TYPE_CHECKING:
    from emuml.protocols.sequential_coding.protocol import SequentialGradientCoding as SequentialGradientCoding

__all__ = [
    "SequentialGradientCoding",
    "SequentialCode",
    "SelectiveRepetition",
    "MultiplexedCoding",
    "Sequence",
    "Schedule",
    "Chunk",
]


def __getattr__(name: str) -> Any:
    if name != "SequentialGradientCoding":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("emuml.protocols.sequential_coding.protocol"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""When training ends: plain conditions, combinable with ``|``.

Protocols ask ``reached(rounds, updates, now_s)`` at their steps. ``TargetLoss`` needs an observer, because loss is
never computed inside a handler: engines ask ``reached_by(metrics)`` for each observed version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

from emuml.errors import UserError
from emuml.spec import check

STEPS_MAX = 10**12
"""More rounds or updates are no training but a slip of the finger."""
LIMIT_MAX_S = 1e12


@dataclass(frozen=True)
class StopCondition:
    """Base of all stop conditions."""

    def __post_init__(self) -> None:
        check(self)

    def reached(self, rounds: int, updates: int, now_s: float) -> bool:
        """Tell whether training is over after so many rounds and updates at ``now_s`` seconds of the run."""
        return False

    def reached_by(self, metrics: Mapping[str, float]) -> bool:
        """Tell whether observed metrics end the training."""
        return False

    def steps_max(self) -> int | None:
        """Return after how many rounds or updates training is over at the latest, if that is known."""
        return None

    def seconds_max(self) -> float | None:
        """Return after how many seconds of the engine's clock training is over at the latest, if that is known."""
        return None

    def watched(self) -> frozenset[str]:
        """Return the names of the metrics that :meth:`reached_by` looks at."""
        return frozenset()

    def __or__(self, other: StopCondition) -> StopCondition:
        return AnyOf((*_parts(self), *_parts(other)))


def _parts(condition: StopCondition) -> tuple[StopCondition, ...]:
    return condition.conditions if isinstance(condition, AnyOf) else (condition,)


@dataclass(frozen=True)
class Never(StopCondition):
    """No condition: the nodes stop by themselves."""


@dataclass(frozen=True)
class Rounds(StopCondition):
    """After ``count`` rounds, at most 10**12.

    Parameters
    ----------
    count : int
        How many.
    """

    count: Annotated[int, Gt(0), Le(STEPS_MAX)]

    def steps_max(self) -> int:
        """See :class:`StopCondition`."""
        return self.count

    def reached(self, rounds: int, updates: int, now_s: float) -> bool:
        """See :class:`StopCondition`."""
        return rounds >= self.count


@dataclass(frozen=True)
class Updates(StopCondition):
    """After ``count`` updates of the parameters, at most 10**12.

    Parameters
    ----------
    count : int
        How many.
    """

    count: Annotated[int, Gt(0), Le(STEPS_MAX)]

    def steps_max(self) -> int:
        """See :class:`StopCondition`."""
        return self.count

    def reached(self, rounds: int, updates: int, now_s: float) -> bool:
        """See :class:`StopCondition`."""
        return updates >= self.count


@dataclass(frozen=True)
class Seconds(StopCondition):
    """At the first step at or after ``limit_s`` seconds of the engine's clock, at most 1e12.

    Parameters
    ----------
    limit_s : float
        Seconds of the engine's clock.
    """

    limit_s: Annotated[float, Ge(0), Le(LIMIT_MAX_S)]

    def seconds_max(self) -> float:
        """See :class:`StopCondition`."""
        return self.limit_s

    def reached(self, rounds: int, updates: int, now_s: float) -> bool:
        """See :class:`StopCondition`."""
        return now_s >= self.limit_s


@dataclass(frozen=True)
class TargetLoss(StopCondition):
    """When the observed ``metric`` is at most ``value``.

    Parameters
    ----------
    value : float
        To be reached or passed downwards.
    metric : str
        A metric of the workload.
    """

    value: float
    metric: str = "train_loss"

    def watched(self) -> frozenset[str]:
        """See :class:`StopCondition`."""
        return frozenset({self.metric})

    def reached_by(self, metrics: Mapping[str, float]) -> bool:
        """See :class:`StopCondition`."""
        return self.metric in metrics and metrics[self.metric] <= self.value


@dataclass(frozen=True)
class AnyOf(StopCondition):
    """Whichever of ``conditions`` comes first; there is at least one, for nothing ends by none.

    Parameters
    ----------
    conditions : tuple of StopCondition
        At least one.
    """

    conditions: tuple[StopCondition, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.conditions:
            raise UserError("got []", "AnyOf.conditions", "at least one condition")

    def steps_max(self) -> int | None:
        """See :class:`StopCondition`."""
        return min((most for c in self.conditions if (most := c.steps_max()) is not None), default=None)

    def seconds_max(self) -> float | None:
        """See :class:`StopCondition`."""
        return min((most for c in self.conditions if (most := c.seconds_max()) is not None), default=None)

    def reached(self, rounds: int, updates: int, now_s: float) -> bool:
        """See :class:`StopCondition`."""
        return any(condition.reached(rounds, updates, now_s) for condition in self.conditions)

    def watched(self) -> frozenset[str]:
        """See :class:`StopCondition`."""
        return frozenset().union(*(condition.watched() for condition in self.conditions))

    def reached_by(self, metrics: Mapping[str, float]) -> bool:
        """See :class:`StopCondition`."""
        return any(condition.reached_by(metrics) for condition in self.conditions)

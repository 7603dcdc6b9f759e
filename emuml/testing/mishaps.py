"""What goes wrong in a scenario: crashes, cuts, pauses and slow nodes, each at a time and for a time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from emuml.cluster.faults import Crash, Fault, Hang, Partition, SlowNode

STEP_S = 0.1
"""Times of scenarios are multiples of it."""


def tenths(time_s: Any) -> Any:
    """Round a time to a decimal of 0.1 s."""
    return round(time_s, 1) + 0.0 if isinstance(time_s, (int, float)) else time_s


Time = Annotated[float, BeforeValidator(tenths), Field(ge=0, le=1e6)]
Lasts = Annotated[float, BeforeValidator(tenths), Field(gt=0, le=1e6)]


class Strict(BaseModel):
    """Frozen, and without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Mishap(Strict):
    """What all of them answer."""

    at_s: Time

    @property
    def nodes(self) -> tuple[str, ...]:
        """Whom it takes away from the others while it lasts."""
        return ()

    @property
    def lasts_s(self) -> float | None:
        """How many seconds it lasts; None for ever."""
        return None

    @property
    def ends_s(self) -> float:
        """When it is over."""
        return float("inf") if self.lasts_s is None else self.at_s + self.lasts_s

    @property
    def extent(self) -> int:
        """How much there is to it besides its times: the less, the simpler."""
        return 0

    def without(self, gone: set[str]) -> Any:
        """Return what is left of it without some nodes, or None."""
        return None if gone & set(self.nodes) else self

    def as_fault(self) -> Fault:
        """Return the clock form that engines take."""
        raise NotImplementedError


class CrashFault(_Mishap):
    """A node stops at ``at_s``, and comes back ``restart_after_s`` later, or never.

    ``keep`` names the saves that were pending then and survive, such as ``"save/TAG/0"``.
    """

    kind: Literal["crash"] = "crash"
    node: str
    restart_after_s: Time | None = None
    keep: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Whom it takes away."""
        return (self.node,)

    @property
    def lasts_s(self) -> float | None:
        """How many seconds the node is down; None for ever."""
        return self.restart_after_s

    @property
    def extent(self) -> int:
        """How many saves survive it."""
        return len(self.keep)

    def as_fault(self) -> Fault:
        """Return the clock form that engines take."""
        return Crash(self.node, at_s=self.at_s, restart_after_s=self.restart_after_s)


class CutFault(_Mishap):
    """Nothing passes between two groups of nodes for ``for_s``; if the second one is empty, it is everybody else.

    With ``one_way`` only what the first group sends to the second one is cut off.
    """

    kind: Literal["cut"] = "cut"
    between: tuple[Annotated[tuple[str, ...], Field(min_length=1)], tuple[str, ...]]
    for_s: Lasts
    one_way: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """Whom it takes away from the others: the first group."""
        return self.between[0]

    @property
    def lasts_s(self) -> float | None:
        """How many seconds it lasts."""
        return self.for_s

    @property
    def extent(self) -> int:
        """How many nodes it names, and whether it is of one direction only."""
        return len(self.between[0]) + len(self.between[1]) + self.one_way

    def without(self, gone: set[str]) -> Any:
        """Return the cut between those who are left, or None."""
        first, second = (tuple(node for node in group if node not in gone) for group in self.between)
        if not first or (self.between[1] and not second):
            return None
        return self.model_copy(update={"between": (first, second)})

    def as_fault(self) -> Fault:
        """Return the clock form that engines take."""
        return Partition(*self.between, for_s=self.for_s, at_s=self.at_s, one_way=self.one_way)


class PauseFault(_Mishap):
    """A node stands still for ``for_s``: it handles nothing and computes nothing, then goes on."""

    kind: Literal["pause"] = "pause"
    node: str
    for_s: Lasts

    @property
    def nodes(self) -> tuple[str, ...]:
        """Whom it takes away from the others."""
        return (self.node,)

    @property
    def lasts_s(self) -> float | None:
        """How many seconds it lasts."""
        return self.for_s

    def as_fault(self) -> Fault:
        """Return the clock form that engines take."""
        return Hang(self.node, self.for_s, at_s=self.at_s)


class SlowFault(_Mishap):
    """Tasks of a node take ``factor`` times as long for ``for_s``."""

    kind: Literal["slow"] = "slow"
    node: str
    factor: Annotated[int, Field(ge=2, le=1000)] = 4
    for_s: Lasts

    @property
    def lasts_s(self) -> float | None:
        """How many seconds it lasts."""
        return self.for_s

    def without(self, gone: set[str]) -> Any:
        """Return it, or None if the node is gone."""
        return None if self.node in gone else self

    def as_fault(self) -> Fault:
        """Return the clock form that engines take."""
        return SlowNode(self.node, float(self.factor), self.for_s, at_s=self.at_s)


def _kind(given: Any) -> str:
    return str(given.get("kind", "crash")) if isinstance(given, dict) else str(getattr(given, "kind", "crash"))


Mishap = Annotated[
    Annotated[CrashFault, Tag("crash")]
    | Annotated[CutFault, Tag("cut")]
    | Annotated[PauseFault, Tag("pause")]
    | Annotated[SlowFault, Tag("slow")],
    Discriminator(_kind),
]
"""One of them; a crash where the kind is not said."""
AnyMishap = CrashFault | CutFault | PauseFault | SlowFault

"""Faults, one by one: what strikes whom, and when.

The clock form (``at_s``) is executed at a time of the engine's clock. The logical form (``after=("round", 17)``) is
executed at the step boundary at which some node first logs that count, before anything that is recorded after the log
is sent; it is the form that equality between engines rests on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import check

After = tuple[str, int]
"""A logged counter and the value at which the fault strikes, such as ``("round", 17)``."""


@dataclass(frozen=True)
class Fault:
    """Base of all faults; exactly one of ``at_s`` and ``after`` says when one strikes.

    Parameters
    ----------
    node : str
        Whom it strikes, such as ``"worker-3"``.
    at_s : float, optional
        Seconds of the engine's clock.
    after : (str, int), optional
        A logged counter and its value, such as ``("round", 17)``.
    for_s : float
        How many seconds it lasts.
    """

    def __post_init__(self) -> None:
        check(self)
        for field, name in self.named():
            _check_node(name, f"{type(self).__name__}.{field}")
        self._check_when()

    def named(self) -> list[tuple[str, str]]:
        """Return the fields that name nodes, such as ``first[0]``, each with the name."""
        found = []
        for field in ("node", "nodes", "first", "second"):
            value = getattr(self, field, None)
            if isinstance(value, str):
                found.append((field, value))
            elif value is not None:
                found += [(f"{field}[{i}]", name) for i, name in enumerate(value)]
        return found

    @property
    def target(self) -> NodeId:
        """The one node that this fault strikes; faults of links and groups have none."""
        return NodeId.parse(vars(self)["node"])

    def _check_when(self) -> None:
        at_s, after = getattr(self, "at_s", None), getattr(self, "after", None)
        if (at_s is None) == (after is None):
            raise UserError(
                "exactly one of at_s and after says when", f"{type(self).__name__}", "at_s=2.5 or after=('round', 17)"
            )
        for name in ("after", "restart_after"):
            counter = getattr(self, name, None)
            if counter is not None and counter[1] < 0:  # never logged, so it would never be due
                raise UserError(f"got {counter[1]}", f"{type(self).__name__}.{name}", "a counter and an integer >= 0")


def _check_node(node: str, where: str) -> None:
    try:
        NodeId.parse(node)
    except ValueError as error:
        raise UserError(str(error), where) from None


@dataclass(frozen=True)
class Crash(Fault):
    """A node stops at once, without any clean-up; it may come back as a fresh incarnation.

    Parameters
    ----------
    restart_after_s : float, optional
        Seconds from the crash to the start of the next incarnation.
    restart_after : (str, int), optional
        Logged counter at which the next incarnation starts.
    """

    node: str
    at_s: Annotated[float, Ge(0)] | None = None
    restart_after_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None
    restart_after: After | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restart_after_s is not None and self.restart_after is not None:
            raise UserError("two times of restart", "Crash", "restart_after_s or restart_after")


@dataclass(frozen=True)
class Start(Fault):
    """A node that is absent at first joins; until then it is not there."""

    node: str
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


@dataclass(frozen=True)
class GroupCrash(Fault):
    """Nodes that have something in common crash together: spot instances are reclaimed, a rack loses its power.

    All that crash in one instant vanish before anybody is told.

    Parameters
    ----------
    nodes : tuple of str
        Whom it strikes.
    restart_after_s : float, optional
        Seconds from the crash of each to the start of its next incarnation; by default they never come back.
    warning_s : float
        Seconds from the announcement, which is when this fault strikes, to the first crash. Nodes are not told: the
        trace has it.
    within_s : float
        Seconds from the first crash to the last one; they are evenly spread, in the order of ``nodes``.
    """

    nodes: tuple[str, ...]
    at_s: Annotated[float, Ge(0)] | None = None
    restart_after_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None
    warning_s: Annotated[float, Ge(0)] = 0.0
    within_s: Annotated[float, Ge(0)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_group(self.nodes, "GroupCrash.nodes")

    def crashes(self) -> tuple[tuple[NodeId, float], ...]:
        """Return the nodes, each with the seconds from the moment at which this fault strikes to its crash."""
        step_s = self.within_s / max(len(self.nodes) - 1, 1)
        return tuple((NodeId.parse(node), self.warning_s + i * step_s) for i, node in enumerate(self.nodes))


@dataclass(frozen=True)
class Hang(Fault):
    """A node stands still for ``for_s`` seconds, as a stopped process does, then goes on.

    It handles nothing meanwhile: messages wait for it in their order, timers fire late, its tasks stand still. What it
    had sent goes on, and so does its disk. The others hear nothing of it.
    """

    node: str
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


@dataclass(frozen=True)
class Partition(Fault):
    """Nothing passes between two groups of nodes for ``for_s`` seconds.

    What has left its sender arrives. All else waits there, and leaves when the cut heals, unless the session is over
    by then because one end heard nothing for too long.

    Parameters
    ----------
    first, second : tuple of str
        Nodes of either side; if ``second`` is empty, it is everybody else.
    one_way : bool
        Whether only what ``first`` sends to ``second`` is cut off.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None
    one_way: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_group(self.first, "Partition.first")
        both = sorted(set(self.first) & set(self.second))
        if both:
            raise UserError(f"{both[0]!r} is on both sides", "Partition.second", "nodes that are not in first")

    def links(self, ids: Iterable[NodeId]) -> list[tuple[NodeId, NodeId]]:
        """Return the (sender, receiver) pairs that are cut, given all nodes."""
        first = [NodeId.parse(node) for node in self.first]
        second = [NodeId.parse(node) for node in self.second] or [id for id in ids if id not in first]
        there = [(a, b) for a in first for b in second]
        return there if self.one_way else there + [(b, a) for a, b in there]


def isolated(*nodes: str, for_s: float, at_s: float | None = None, after: After | None = None) -> Partition:
    """Return a partition that cuts nodes off from everybody else, but not from each other."""
    return Partition(nodes, (), for_s, at_s, after)


@dataclass(frozen=True)
class LinkFault(Fault):
    """Base of what happens to the link between two nodes, in both directions.

    Parameters
    ----------
    first, second : str
        The ends of the link.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        first, second = self.ends
        if first == second:
            raise UserError(f"{first} is both ends", f"{type(self).__name__}.second", "another node")

    @property
    def ends(self) -> tuple[NodeId, NodeId]:
        """Both ends."""
        return NodeId.parse(vars(self)["first"]), NodeId.parse(vars(self)["second"])


@dataclass(frozen=True)
class SlowLink(LinkFault):
    """The latency between two nodes grows by ``latency_s`` for ``for_s`` seconds, and bytes take longer to leave.

    Parameters
    ----------
    latency_s : float
        Seconds that are added.
    slowdown : float
        How many times as long a byte takes to leave; a message that is leaving is slowed down for its rest.
    """

    first: str
    second: str
    latency_s: Annotated[float, Ge(0)]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None
    slowdown: Annotated[float, Ge(1)] = 1.0


@dataclass(frozen=True)
class Lossy(LinkFault):
    """Packets between two nodes are lost for ``for_s`` seconds; streams send them again, so loss shows as delay.

    Each message is one packet, lost with probability ``loss`` each time it is sent, and sent again after a timeout that
    doubles from one time to the next, up to 64 times the first. What follows on the link waits. A message that is lost
    k times is so late by ``timeout_s * (2**k - 1)`` seconds for k <= 7; on average, but for that limit, by ``timeout_s
    * loss / (1 - 2 * loss)`` where ``loss < 1/2``. The signs of life that failures are noticed by are not lost.

    Parameters
    ----------
    loss : float
        Probability that a packet is lost, > 0 and < 1.
    timeout_s : float
        Seconds until the first repetition.

    References
    ----------
    RFC 6298, section 5 (exponential backoff); its least timeout is 1 s, that of Linux 0.2 s.
    """

    first: str
    second: str
    loss: Annotated[float, Gt(0), Lt(1)]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None
    timeout_s: Annotated[float, Gt(0)] = 0.2


@dataclass(frozen=True)
class SlowNode(Fault):
    """Compute of a node takes ``factor`` times as long for ``for_s`` seconds; of a running task, its rest does.

    Factors of several at one time multiply. It belongs to the machine: a restart does not end it.

    Parameters
    ----------
    factor : float
        How many times as long.
    """

    node: str
    factor: Annotated[float, Gt(0)]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


def _check_group(nodes: tuple[str, ...], where: str) -> None:
    twice = next((node for i, node in enumerate(nodes) if node in nodes[:i]), None)
    if not nodes or twice is not None:
        raise UserError("it is empty" if twice is None else f"{twice!r} twice", where, "different nodes, at least one")

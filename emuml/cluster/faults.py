"""Fault plans as data: what goes wrong, when, for whom. The same object on both engines.

The clock form (``at_s``) is executed at a time of the engine's clock. The logical form (``after=("round", 17)``) is
executed at the step boundary at which some node first logs that count, before anything of that step is sent; it is the
form that equality between engines rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt

from emuml.errors import UserError, did_you_mean
from emuml.node import NodeId
from emuml.spec import Inputs, check, checked, class_of, from_spec, to_spec

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
        _check_node(getattr(self, "node", None), type(self).__name__)
        self._check_when()

    @property
    def target(self) -> NodeId:
        """The one node that this fault strikes; faults of links have none."""
        return NodeId.parse(vars(self)["node"])

    def _check_when(self) -> None:
        at_s, after = getattr(self, "at_s", None), getattr(self, "after", None)
        if (at_s is None) == (after is None):
            raise UserError(
                "exactly one of at_s and after says when", f"{type(self).__name__}", "at_s=2.5 or after=('round', 17)"
            )


def _check_node(node: str | None, where: str) -> None:
    if node is not None:
        try:
            NodeId.parse(node)
        except ValueError as error:
            raise UserError(str(error), f"{where}.node") from None


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
class Hang(Fault):
    """A node handles nothing for ``for_s`` seconds, then goes on."""

    node: str
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


@dataclass(frozen=True)
class Partition(Fault):
    """Messages between two groups of nodes stop for ``for_s`` seconds.

    Parameters
    ----------
    first, second : tuple of str
        Nodes of either side.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


@dataclass(frozen=True)
class SlowLink(Fault):
    """The latency between two nodes grows by ``latency_s`` for ``for_s`` seconds.

    Parameters
    ----------
    first, second : str
        The ends of the link.
    latency_s : float
        Seconds that are added.
    """

    first: str
    second: str
    latency_s: Annotated[float, Gt(0)]
    for_s: Annotated[float, Gt(0)]
    at_s: Annotated[float, Ge(0)] | None = None
    after: After | None = None


@dataclass(frozen=True)
class SlowNode(Fault):
    """Compute of a node takes ``factor`` times as long for ``for_s`` seconds.

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


@dataclass(frozen=True)
class FaultPlan:
    """Faults of one run, in any order.

    Parameters
    ----------
    faults : tuple of Fault
        Both engines execute :class:`Crash` and :class:`Start`; plans with others are refused by name for now.
    """

    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.faults, (list, tuple)):
            raise UserError(f"got {self.faults!r}", "FaultPlan.faults", "a list of faults")
        object.__setattr__(self, "faults", tuple(self.faults))
        check(self)

    def __bool__(self) -> bool:
        return bool(self.faults)

    @classmethod
    def from_file(cls, path: str | Path) -> FaultPlan:
        """Read a plan from YAML: a list of faults, each with ``kind`` and its fields.

        Raises
        ------
        UserError
            Naming the fault by its position, the field and what is allowed.
        """
        import yaml

        path = Path(path)
        try:
            items = yaml.safe_load(path.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise UserError(str(error).replace("\n", " "), str(path)) from None
        items = items.get("faults", items) if isinstance(items, dict) else items
        if not isinstance(items, list):
            raise UserError("a fault plan is a list of faults", str(path))
        return cls(tuple(_fault(item, f"{path}: fault {i}") for i, item in enumerate(items)))

    def to_file(self, path: str | Path) -> None:
        """Write the plan as YAML that :meth:`from_file` reads back."""
        import yaml

        items = [{k: v for k, v in to_spec(fault, Inputs()).items() if v is not None} for fault in self.faults]
        Path(path).write_text(yaml.safe_dump(items, sort_keys=False))

    def checked_for(self, ids: Iterable[NodeId], supported: Sequence[type[Fault]], engine: str) -> FaultPlan:
        """Return the plan if every fault names known nodes and this engine can execute it.

        Raises
        ------
        UserError
            Before anything runs.
        """
        known = {str(node) for node in ids}
        for fault in self.faults:
            if not isinstance(fault, tuple(supported)):
                allowed = ", ".join(cls.__name__ for cls in supported)
                raise UserError(f"engine {engine} cannot execute {type(fault).__name__}", "faults", allowed)
            node = getattr(fault, "node", None)
            if node is not None and node not in known:
                raise UserError(f"{node!r} is not in the roster", "faults", hint=did_you_mean(node, known))
        return self

    @staticmethod
    def missed(faults: Iterable[Fault]) -> list[str]:
        """Return a sentence for each fault that a run ended without."""
        return [f"planned but never due: {fault}" for fault in faults]

    def triggers(self) -> frozenset[After]:
        """Return all logged counters at which something of this plan happens."""
        found = {getattr(fault, name, None) for fault in self.faults for name in ("after", "restart_after")}
        return frozenset(after for after in found if after is not None)


def _fault(item: Any, where: str) -> Fault:
    if not isinstance(item, dict) or not isinstance(item.get("kind"), str):
        raise UserError(f"got {item!r}", where, "a mapping with 'kind'")
    cls = class_of(item["kind"])
    if not issubclass(cls, Fault):
        raise UserError(f"{item['kind']!r} is no fault", where)
    try:
        return checked(from_spec(item, Inputs()), Fault, where)  # type: ignore[no-any-return]
    except TypeError as error:
        raise UserError(str(error), where) from None
    except UserError as error:
        raise UserError(error.what, f"{where}: {error.where}", error.allowed, error.hint) from None

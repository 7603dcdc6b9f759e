"""Fault plans as data: what goes wrong, when, for whom. The same object on both engines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emuml.cluster import timeline
from emuml.cluster.fault_kinds import After as After
from emuml.cluster.fault_kinds import Crash as Crash
from emuml.cluster.fault_kinds import Fault as Fault
from emuml.cluster.fault_kinds import GroupCrash as GroupCrash
from emuml.cluster.fault_kinds import Hang as Hang
from emuml.cluster.fault_kinds import LinkFault as LinkFault
from emuml.cluster.fault_kinds import Lossy as Lossy
from emuml.cluster.fault_kinds import Partition as Partition
from emuml.cluster.fault_kinds import SlowLink as SlowLink
from emuml.cluster.fault_kinds import SlowNode as SlowNode
from emuml.cluster.fault_kinds import Start as Start
from emuml.cluster.fault_kinds import isolated as isolated
from emuml.errors import UserError, did_you_mean
from emuml.names import kind_of
from emuml.node import NodeId
from emuml.roster import Ids, Roster
from emuml.spec import Inputs, check, checked, class_of, from_spec, to_spec

if TYPE_CHECKING:
    from emuml.cluster.failure_laws import FailureLaw

HINTED_MAX = 10_000
"""The nearest name is looked for among so many nodes; among a million it would take minutes."""

NAMED_MAX = 5
"""So many faults that were never due are named; of the others only their number is told."""


@dataclass(frozen=True)
class FaultPlan:
    """Faults of one run, in any order.

    Parameters
    ----------
    faults : tuple of Fault
        The emulator executes all of them, the TCP runtime :class:`Crash` and :class:`Start`; it refuses plans with
        others by name.
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
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", str(path), "a file with a list of faults") from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise UserError(str(error).replace("\n", " "), str(path)) from None
        items = items.get("faults", items) if isinstance(items, dict) else items
        if not isinstance(items, list):
            raise UserError("a fault plan is a list of faults", str(path))
        return cls(tuple(_fault(item, f"{path}: fault {i}") for i, item in enumerate(items)))

    @classmethod
    def drawn(cls, law: FailureLaw, ids: Iterable[NodeId] | Roster, until_s: float, seed: int = 0) -> FaultPlan:
        """Draw a plan from a law of failures.

        Parameters
        ----------
        law : FailureLaw
            Such as ``WeibullFailures``; see :mod:`emuml.cluster.failure_laws`.
        ids : iterable of NodeId, or Roster
            All nodes of the run.
        until_s : float
            No node fails later; in place of that of the law.
        seed : int
            Of the draws.
        """
        changed: FailureLaw = replace(law, until_s=until_s)  # type: ignore[call-arg]
        return changed.plan(ids.ids if isinstance(ids, Roster) else ids, seed)

    def plan(self, ids: Iterable[NodeId], seed: int) -> FaultPlan:
        """Return the plan that a run executes: this one, as it is. Laws of failures draw theirs."""
        return self

    def __add__(self, other: FaultPlan) -> FaultPlan:
        """Return what both plans hold, without faults of nodes that the others have struck down already."""
        return FaultPlan(timeline.possible((*self.faults, *other.faults)))

    def to_file(self, path: str | Path) -> None:
        """Write the plan as YAML that :meth:`from_file` reads back."""
        import yaml

        items = [{k: v for k, v in to_spec(fault, Inputs()).items() if v is not None} for fault in self.faults]
        Path(path).write_text(yaml.safe_dump(items, sort_keys=False))

    def checked_for(self, ids: Collection[NodeId], supported: Sequence[type[Fault]], engine: str) -> FaultPlan:
        """Return the plan if every fault names known nodes, can come to pass, and can be executed by this engine.

        Raises
        ------
        UserError
            Before anything runs: the first of :meth:`problems`.
        """
        for problem in self.problems(ids, supported, engine):
            raise problem
        return self

    def problems(self, ids: Collection[NodeId], supported: Sequence[type[Fault]], engine: str) -> list[UserError]:
        """Return everything that makes this plan impossible for a roster and an engine."""
        is_known = ids.names if isinstance(ids, Ids) else frozenset(map(str, ids if self.faults else ())).__contains__
        found = []
        for i, fault in enumerate(self.faults):
            if not isinstance(fault, tuple(supported)):
                allowed = ", ".join(map(kind_of, supported))
                what = f"engine {engine} cannot execute {kind_of(type(fault))}"
                found.append(UserError(what, f"faults[{i}].kind", allowed))
            for field, name in fault.named():
                if not is_known(name):
                    hint = did_you_mean(name, map(str, ids)) if len(ids) <= HINTED_MAX else ""
                    found.append(UserError(f"{name!r} is not in the roster", f"faults[{i}].{field}", hint=hint))
        return found + timeline.problems(self.faults)

    def gone_for_good(self) -> dict[str, int]:
        """Return the nodes that crash at a given time and never come back, each with the index of the fault."""
        found = {}
        for i, fault in enumerate(self.faults):
            is_crash = isinstance(fault, (Crash, GroupCrash)) and fault.restart_after_s is None
            if is_crash and getattr(fault, "restart_after", None) is None and vars(fault)["at_s"] is not None:
                found.update(dict.fromkeys((name for _, name in fault.named()), i))
        return found

    @staticmethod
    def missed(faults: Iterable[Fault]) -> list[str]:
        """Return a sentence for each fault that a run ended without; laws draw many, of which a few are named."""
        found = list(faults)
        more = [f"{len(found) - NAMED_MAX} more"] if len(found) > NAMED_MAX else []
        return [f"planned but never due: {text}" for text in (*map(_brief, found[:NAMED_MAX]), *more)]

    def triggers(self) -> frozenset[After]:
        """Return all logged counters at which something of this plan happens."""
        found = {getattr(fault, name, None) for fault in self.faults for name in ("after", "restart_after")}
        return frozenset(after for after in found if after is not None)


def _brief(fault: Fault) -> str:
    """Return a fault as one would write it: without what is left at its default."""
    given = [(item.name, getattr(fault, item.name), item.default) for item in fields(fault)]
    return f"{type(fault).__name__}({', '.join(f'{name}={value!r}' for name, value, usual in given if value != usual)})"


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

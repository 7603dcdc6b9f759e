"""What may go wrong in an explored run: a budget that keeps explorers inside the node contract.

A protocol is judged only by faults that it claims to stand. What would exceed the budget is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt

from emuml.errors import UserError, did_you_mean
from emuml.node import NodeId
from emuml.spec import check
from emuml.testing.mishaps import AnyMishap, CrashFault, PauseFault


@dataclass(frozen=True)
class Quorum:
    """At most ``n - least`` of the n nodes of a role are down at one time."""

    least: Annotated[int, Ge(0)]
    of: str

    def __post_init__(self) -> None:
        check(self)


def quorum(least: int, of: str) -> Quorum:
    """Return the rule that ``least`` nodes of a role live at any time."""
    return Quorum(least, of)


@dataclass(frozen=True)
class Budget:
    """Limits of the faults of one run.

    Parameters
    ----------
    crash : int
        Crashes per run.
    cut, pause, slow : int
        Cuts, pauses and slow nodes per run, of anybody: wrong suspicion is legal.
    restart_within_s : float
        Every crash that is not for good restarts within so many seconds; all else ends within them.
    for_good : int
        How many crashes of a run may stay without restart.
    keep : collection of str or Quorum, optional
        Roles or ids that never crash, and quorums, which count who is down, cut off or paused. ``None``: all roles but
        those that the protocol says it survives.
    heal_s : float
        From then on there is no fault and no deviation, and everybody is up; liveness is judged after it.
    """

    crash: Annotated[int, Ge(0)] = 2
    restart_within_s: Annotated[float, Gt(0)] = 12.0
    for_good: Annotated[int, Ge(0)] = 0
    keep: frozenset[str | Quorum] | None = None
    heal_s: Annotated[float, Gt(0)] = 70.0
    cut: Annotated[int, Ge(0)] = 1
    pause: Annotated[int, Ge(0)] = 1
    slow: Annotated[int, Ge(0)] = 1

    def __post_init__(self) -> None:
        check(self)

    def may_crash(self, ids: Iterable[NodeId], survives: Collection[str]) -> list[str]:
        """Return the names of the nodes that may crash, given the roles whose crashes the protocol says it survives."""
        return [str(id) for id in ids if self._may(id, survives)]

    def _may(self, id: NodeId, survives: Collection[str]) -> bool:
        if self.crash == 0:
            return False
        return id.role in survives if self.keep is None else not {id.role, str(id)} & self.keep

    def check_names(self, ids: Iterable[NodeId]) -> None:
        """Refuse rules about roles that nobody has: a misspelt one would let everybody crash."""
        roles = sorted({id.role for id in ids})
        for rule in self.keep or ():
            name = rule.of if isinstance(rule, Quorum) else rule
            if name not in roles and name.rpartition("-")[0] not in roles:
                raise UserError(
                    f"nobody is called {name!r}", "faults.keep", ", ".join(roles), did_you_mean(name, roles)
                )

    def applied(
        self, faults: Iterable[AnyMishap], ids: Collection[NodeId], survives: Collection[str]
    ) -> tuple[tuple[AnyMishap, ...], int]:
        """Return the faults that are within the budget, in order of time, and how many were dropped."""
        allowed, given = set(self.may_crash(ids, survives)), sorted(faults, key=_in_time)
        limits = {"crash": self.crash, "cut": self.cut, "pause": self.pause, "slow": self.slow}
        legal: list[AnyMishap] = []
        for fault in given:
            is_allowed = not isinstance(fault, CrashFault) or fault.node in allowed
            has_left = sum(other.kind == fault.kind for other in legal) < limits[fault.kind]
            if is_allowed and has_left and self._fits(fault, legal, ids):
                legal.append(fault)
        return tuple(legal), len(given) - len(legal)

    def _fits(self, fault: AnyMishap, before: list[AnyMishap], ids: Collection[NodeId]) -> bool:
        if fault.lasts_s is None:
            if sum(other.lasts_s is None for other in before) >= self.for_good:
                return False
        elif fault.lasts_s > self.restart_within_s:
            return False
        if fault.at_s + (fault.lasts_s or 0.0) >= self.heal_s:
            return False
        lasting = [other for other in before if other.ends_s >= fault.at_s]
        down = {node for other in lasting if isinstance(other, CrashFault) for node in other.nodes}
        still = {node for other in lasting if isinstance(other, PauseFault) for node in other.nodes}
        if isinstance(fault, CrashFault | PauseFault):
            held = down if isinstance(fault, CrashFault) else down | still
            if fault.node in held:
                return False
        away = {node for other in lasting for node in other.nodes}
        return self._leaves_quorums({*away, *fault.nodes}, ids)

    def _leaves_quorums(self, down: set[str], ids: Collection[NodeId]) -> bool:
        rules = [rule for rule in self.keep or () if isinstance(rule, Quorum)]
        return all(sum(id.role == rule.of and str(id) not in down for id in ids) >= rule.least for rule in rules)


def _in_time(fault: AnyMishap) -> tuple[float, str, tuple[str, ...]]:
    return fault.at_s, fault.kind, fault.nodes or (getattr(fault, "node", ""),)


def faults(
    crash: int = 2,
    *,
    restart_within_s: float = 12.0,
    for_good: int = 0,
    keep: Iterable[str | Quorum] | None = None,
    heal_s: float = 70.0,
    cut: int = 1,
    pause: int = 1,
    slow: int = 1,
) -> Budget:
    """Return a budget of faults; see :class:`Budget`."""
    rules = None if keep is None else _rules(keep)
    return Budget(crash, restart_within_s, for_good, rules, heal_s, cut, pause, slow)


def _rules(keep: object) -> frozenset[str | Quorum]:
    given = list(keep) if isinstance(keep, Iterable) and not isinstance(keep, str) else None
    if given is None or not all(isinstance(rule, (str, Quorum)) for rule in given):
        raise UserError(f"got {keep!r}", "faults.keep", "a set of roles, ids and et.quorum(...), such as {'server'}")
    return frozenset(given)


@dataclass(frozen=True)
class Clusters:
    """Ranges of scenarios, both ends included."""

    workers: tuple[int, int] = (2, 4)
    rounds: tuple[int, int] = (2, 4)
    seeds: Annotated[int, Gt(0)] = 4
    servers: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        check(self)
        for name, (low, high) in (("workers", self.workers), ("rounds", self.rounds), ("servers", self.servers)):
            if not 1 <= low <= high:
                raise UserError(f"got {(low, high)}", f"clusters.{name}", "(least, most), 1 <= least <= most")


def clusters(
    workers: tuple[int, int] = (2, 4),
    rounds: tuple[int, int] = (2, 4),
    seeds: int = 4,
    servers: tuple[int, int] = (1, 1),
) -> Clusters:
    """Return ranges of workers, rounds and servers, and how many seeds of protocol streams are tried."""
    return Clusters(workers, rounds, seeds, servers)


DEFAULT_BUDGET = Budget()
DEFAULT_CLUSTERS = Clusters()

"""Oracles: what decides that a run is wrong. A description is built once for a test; predicates are pure.

An exception of a predicate is an error of the test, never a violation of the protocol.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from annotated_types import Gt

from emuml import effects as fx
from emuml.errors import Deadlock, EmumlError, Livelock, RunFailed, UserError, did_you_mean
from emuml.lazy import array_of
from emuml.node import NodeId
from emuml.spec import checked
from emuml.testing.views import Finished, NobodyLivesError, Nodes, Noted, Sent

OnNodes = Callable[[Nodes], object]
OnSent = Callable[[Sent], object]
OnFinished = Callable[[Finished], object]
Reference = Callable[[Finished], Sequence[Any]]
Given = TypeVar("Given")


class OracleError(EmumlError):
    """A predicate raised: the test is wrong, and says nothing of the protocol."""

    def __init__(self, name: str, error: str = "") -> None:
        super().__init__(name, error)
        self.name, self.error = name, error

    def __str__(self) -> str:
        return f"the oracle {self.name!r} raised {self.error}"


@dataclass(frozen=True)
class Signature:
    """The identity of a failure; numbers and ids in texts do not count."""

    kind: str
    name: str = ""
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Violation:
    """What was found wrong, when and where; ``read`` are the nodes whose states the oracle saw."""

    signature: Signature
    text: str
    time_s: float
    node: str = ""
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Oracle:
    """A predicate with a name and a kind."""

    kind: str
    name: str
    holds: Callable[[Any], object]
    when: OnFinished | None = None
    of: str = ""


@dataclass
class Description:
    """What a test says of every run.

    Examples
    --------
    >>> run = Description()
    >>> run.always(lambda nodes: nodes["server"].version >= 0, "versions count up")
    >>> [oracle.name for oracle in run.steps]
    ['versions count up']
    """

    steps: list[Oracle] = field(default_factory=list)
    sends: list[Oracle] = field(default_factory=list)
    reached: list[Oracle] = field(default_factory=list)
    ends: list[Oracle] = field(default_factory=list)
    goals: list[Oracle] = field(default_factory=list)
    within_s: float = 60.0

    def always(self, holds: OnNodes, name: str, of: str = "") -> None:
        """Require something of the nodes after every step, as far as those that it reads live.

        With a role in ``of`` it is judged after steps of these nodes only: what it says is of nothing else.
        """
        _add(self.steps, Oracle("always", name, holds, of=of))

    def never_sent(self, wrong: OnSent, name: str) -> None:
        """Require that no message is sent of which ``wrong`` is true."""
        _check_callable(wrong, name)
        _add(self.sends, Oracle("never_sent", name, lambda sent: not wrong(sent)))

    def each_sent(self, holds: OnSent, name: str) -> None:
        """Require something of every message that is sent."""
        _add(self.sends, Oracle("each_sent", name, holds))

    def sometimes(self, holds: OnNodes, name: str) -> None:
        """Require that something is reached after some step of some run of a campaign."""
        _add(self.reached, Oracle("sometimes", name, holds))

    def eventually(self, goal: str | OnNodes, within_s: float = 60.0, after: str = "heal", name: str = "") -> None:
        """Require progress on the healed cluster: ``"done"`` (a node stops the run), or that a predicate is reached.

        A run that a node stops before it is healed must have reached the predicate after the last of its faults.
        """
        if after != "heal" or (goal != "done" and not callable(goal)):
            raise UserError(f"got {goal!r} after {after!r}", "eventually", "'done' or a predicate, after 'heal'")
        checked(within_s, Annotated[float, Gt(0)], "eventually.within_s")
        self.within_s = max(self.within_s, within_s) if self.goals else within_s
        name = name or (goal if isinstance(goal, str) else "a goal")
        if goal == "done" and any(other.holds is _is_done for other in self.goals):
            return
        _add(self.goals, Oracle("eventually", name, goal if callable(goal) else _is_done))

    def at_end(self, holds: OnFinished, name: str) -> None:
        """Require something of every run that a node stopped."""
        _add(self.ends, Oracle("at_end", name, holds))

    def reference(self, expected: Reference, when: OnFinished | None = None, name: str = "reference") -> None:
        """Require that the published parameters equal those of a sequential program, bit for bit.

        Parameters
        ----------
        expected : callable
            Returns all published versions in order, as arrays, given the finished run.
        when : callable, optional
            Runs of which this is false are not compared.
        """
        _check_callable(expected, name)
        _add(self.ends, Oracle("reference", name, lambda run: equal_versions(run, expected(run)), when))

    def check_roles(self, roles: Collection[str]) -> None:
        """Refuse oracles of a role that nobody has: they would never be asked."""
        for oracle in self.steps:
            if oracle.of not in ("", *roles):
                known = ", ".join(sorted(roles))
                hint = did_you_mean(oracle.of, roles)
                raise UserError(f"nobody has the role {oracle.of!r}", f"the oracle {oracle.name!r}", known, hint)


def _is_done(nodes: Nodes) -> bool:
    return False  # a run that a node stopped is not asked


def _add(oracles: list[Oracle], oracle: Oracle) -> None:
    """Take an oracle of which all can be told from the others: by its name failures are recognised."""
    name = oracle.name
    if not name or not isinstance(name, str):
        raise UserError(f"got the name {name!r}", "oracle", "a few words, which failures are recognised by")
    if any(other.name == name for other in oracles):
        raise UserError("there is one of this name", f"the oracle {name!r}", "a name of its own for each")
    _check_callable(oracle.holds, name)
    oracles.append(oracle)


def _check_callable(holds: object, name: str) -> None:
    if not callable(holds):
        raise UserError(f"got {holds!r}", f"the oracle {name!r}", "a function, such as lambda nodes: ...")


def equal_versions(run: Finished, expected: Sequence[Any]) -> bool:
    """Tell whether the published parameters are these, bit for bit."""
    found = [np.asarray(array_of(item.parameters)) for item in run.published]
    return len(found) == len(expected) and all(
        a.tobytes() == np.asarray(b, dtype=a.dtype).tobytes() for a, b in zip(found, expected, strict=True)
    )


def ask(oracle: Oracle, given: Any) -> bool | None:
    """Return what an oracle says, or ``None`` if a node that it reads is down.

    Raises
    ------
    OracleError
        From the predicate's own exception.
    """
    try:
        return bool(oracle.holds(given))
    except NobodyLivesError:
        return None
    except Exception as error:
        raise OracleError(oracle.name, f"{type(error).__name__}: {error}") from error


def read_by(oracle: Oracle, nodes: Nodes) -> tuple[str, ...]:
    """Return the names of the nodes that a predicate reads, by asking it once more."""
    noted = Noted(nodes)
    with suppress(Exception):  # it was asked before; what it reads is only for the drawing
        oracle.holds(noted)
    return tuple(sorted(noted.read))


_SENDS = (fx.Send, fx.SendLatest, fx.Broadcast)


class Judge:
    """Applies a description to one run on the emulator.

    Attributes
    ----------
    calm_s : float
        When the last fault is over, in seconds: a run that is stopped later has to have reached its goals since then.
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self.violation: Violation | None = None
        self.reached: set[str] = set()
        self._unreached = list(description.reached)
        self._steps: dict[str, list[Oracle]] = {}
        self.unmet: dict[str, Oracle] = {goal.name: goal for goal in description.goals}
        self.calm_s = float("inf")
        self._unseen = [goal for goal in description.goals if goal.holds is not _is_done]

    def after_step(self, nodes: Nodes, id: NodeId, now: float, effects: Sequence[fx.Effect], healed: bool) -> None:
        """Judge the nodes and what the step sent."""
        nodes.acting = id
        for oracle in self._of(id.role):
            if ask(oracle, nodes) is False:
                self._found(oracle, now, id, f"{oracle.name}, after a step of {id}", read_by(oracle, nodes))
                return
        if effects and self.description.sends:
            self._judge_sends(nodes, id, now, effects)
        if self._unreached:
            self._note_reached(nodes)
        if self._unseen and now >= self.calm_s:
            self._unseen = [goal for goal in self._unseen if not ask(goal, nodes)]
        if healed and self.unmet:
            self.unmet = {name: goal for name, goal in self.unmet.items() if not ask(goal, nodes)}

    def _of(self, role: str) -> list[Oracle]:
        """Return what is judged after steps of a role."""
        found = self._steps.get(role)
        if found is None:
            found = self._steps[role] = [oracle for oracle in self.description.steps if oracle.of in ("", role)]
        return found

    def _note_reached(self, nodes: Nodes) -> None:
        new = {oracle.name for oracle in self._unreached if ask(oracle, nodes)}
        if new:
            self.reached |= new
            self._unreached = [oracle for oracle in self._unreached if oracle.name not in new]

    def _judge_sends(self, nodes: Nodes, id: NodeId, now: float, effects: Sequence[fx.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, _SENDS):
                for to in effect.to if isinstance(effect, fx.Broadcast) else (effect.to,):
                    sent = Sent(id, to, effect.message, nodes)
                    for oracle in self.description.sends:
                        if ask(oracle, sent) is False:
                            text = f"{oracle.name}: {type(effect.message).__name__} from {id} to {to}"
                            self._found(oracle, now, id, text)
                            return

    def _found(self, oracle: Oracle, now: float, id: NodeId | str, text: str, read: tuple[str, ...] = ()) -> None:
        self.violation = Violation(Signature(oracle.kind, oracle.name), text, now, str(id), read)

    def at_end(self, finished: Finished, waiting: dict[str, str]) -> None:
        """Judge how the run ended; ``waiting`` says what each living node waits for."""
        run = finished.run
        if self.violation is not None:
            return
        if run.error is not None:
            self.violation = of_error(run.error, run.duration_s, waiting)
        elif run.stopped is None and self.unmet:
            goal = next(iter(self.unmet.values()))
            text = f"{goal.name} was not reached: {_waits(waiting)}"
            self.violation = Violation(Signature(goal.kind, goal.name, _roles(waiting)), text, run.duration_s)
        elif run.stopped is not None:
            self._judge_end(finished)

    def _judge_end(self, finished: Finished) -> None:
        for oracle in self.description.ends:
            if oracle.when is not None and not ask(Oracle("when", oracle.name, oracle.when), finished):
                continue
            if ask(oracle, finished) is False:
                self._found(oracle, finished.run.duration_s, "", f"{oracle.name}, of the finished run")
                return
        if self._unseen and finished.run.duration_s >= self.calm_s:
            goal = self._unseen[0]
            self._found(goal, finished.run.duration_s, "", f"{goal.name} was not reached before the run was stopped")


def of_error(error: RunFailed, now: float, waiting: dict[str, str]) -> Violation:
    """Return the violation that a failed run is: what raised where, or who waits for ever."""
    if isinstance(error, (Deadlock, Livelock)):
        signature = Signature(type(error).__name__, roles=_roles(waiting))
        return Violation(signature, _waits(waiting), now)
    cause = error.__cause__ or error
    last = traceback.extract_tb(cause.__traceback__)[-1:]
    at = f"{Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    signature = Signature("error", f"{type(cause).__name__} at {at}")
    return Violation(signature, f"{error}: {type(cause).__name__}: {cause}", now)


def _roles(waiting: dict[str, str]) -> tuple[str, ...]:
    return tuple(sorted({NodeId.parse(name).role for name in waiting}))


def _waits(waiting: dict[str, str]) -> str:
    return "; ".join(f"{name} waits for {what}" for name, what in waiting.items()) or "nobody says what it waits for"

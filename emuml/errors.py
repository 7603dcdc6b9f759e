"""Every error that emuml raises on purpose, in three branches: the user's, the author's, the run's.

``UserError``: an input that cannot be meant (exit status 2). ``ContractError``: a node, message or task broke the
node contract. ``RunFailed``: a run that began could not go on (exit status 3).

Invariant: every class survives ``type(e)(*e.args)`` and pickling, because SimPy re-creates failed exceptions so. Hence
constructors pass all of their arguments on, and the text is made in ``__str__``.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class EmumlError(Exception):
    """Base of all errors of this package."""


class UserError(EmumlError):
    """An input that cannot be used; nothing was started.

    Parameters
    ----------
    what : str
        What is wrong, with its value.
    where : str, optional
        Path of the setting (``cluster.workers``) or file with line and column.
    allowed : str, optional
        What would be accepted.
    hint : str, optional
        The nearest right name, or what to do.
    """

    def __init__(self, what: str, where: str = "", allowed: str = "", hint: str = "") -> None:
        super().__init__(what, where, allowed, hint)
        self.what, self.where, self.allowed, self.hint = what, where, allowed, hint

    def __str__(self) -> str:
        parts = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.allowed:
            parts.append(f"allowed: {self.allowed}")
        if self.hint:
            parts.append(self.hint)
        return "; ".join(parts)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest known name, or one that the given one is a part of; else nothing.

    Examples
    --------
    >>> did_you_mean("wrokers", ["workers", "seed"])
    "did you mean 'workers'?"
    """
    names = list(known)
    near = get_close_matches(name, names, n=1) or [word for word in names if len(name) > 2 and name in word]
    return f"did you mean {near[0]!r}?" if near else ""


def printable(text: str) -> str:
    r"""Return a text as a terminal may show it, in one line: what is no visible character is written as an escape.

    Examples
    --------
    >>> print(printable("café\n\x1b[31m"))
    café\n\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class ContractError(EmumlError):
    """A protocol author's mistake against the node contract, raised where it was made."""


class MessageError(ContractError):
    """A message that cannot be sent: a forbidden field type, a wrong value, or too many bytes."""


class UnknownPeer(ContractError):
    """A node addressed an id that is not in the roster or that it is not linked to."""

    def __init__(self, node: str, peer: str, reason: str) -> None:
        super().__init__(node, peer, reason)
        self.node, self.peer, self.reason = node, peer, reason

    def __str__(self) -> str:
        return f"{self.node} cannot send to {self.peer}: {self.reason}"


class StaleContext(ContractError):
    """A context was used after its handler returned, or from another thread (contract 2.4)."""

    def __init__(self, node: str, effect: str) -> None:
        super().__init__(node, effect)
        self.node, self.effect = node, effect

    def __str__(self) -> str:
        return f"{self.node}: {self.effect} was called on a context whose handler has returned"


class TagInUse(ContractError):
    """``compute`` was called with a tag whose task is still alive (contract 8.2)."""

    def __init__(self, node: str, tag: str) -> None:
        super().__init__(node, tag)
        self.node, self.tag = node, tag

    def __str__(self) -> str:
        return f"{self.node}: a task with tag {self.tag!r} is still running; cancel it or use another tag"


class StreamReused(ContractError):
    """A named random stream was opened twice in one incarnation (contract 7.2; check mode only)."""

    def __init__(self, node: str, stream: str) -> None:
        super().__init__(node, stream)
        self.node, self.stream = node, stream

    def __str__(self) -> str:
        return f"{self.node}: stream {self.stream!r} was opened twice; name streams by position, such as 'batch/17'"


class JobCancelled(ContractError):
    """A script awaited a task that it had cancelled (contract 17.5)."""

    def __init__(self, node: str, job: str) -> None:
        super().__init__(node, job)
        self.node, self.job = node, job

    def __str__(self) -> str:
        return f"{self.node}: {self.job} was cancelled; it will have no result"


class MailboxOverflow(ContractError):
    """A script leaves too many messages unread (contract 17.3)."""

    def __init__(self, node: str, unread: int, message: str) -> None:
        super().__init__(node, unread, message)
        self.node, self.unread, self.message = node, unread, message

    def __str__(self) -> str:
        return f"{self.node}: {self.unread} messages are unread, most of them {self.message}; receive all that comes"


class MutatedAfterSend(ContractError):
    """An array changed between ``send`` and the moment it left or was handed over (contract 5.2; check mode only)."""

    def __init__(self, node: str, message: str, field: str) -> None:
        super().__init__(node, message, field)
        self.node, self.message, self.field = node, message, field

    def __str__(self) -> str:
        return f"{self.node}: {self.message}.{self.field} was changed after it was sent"


class ForbiddenCall(ContractError):
    """A handler read a clock or ambient randomness (contract 7.6; check mode only)."""

    def __init__(self, node: str, call: str) -> None:
        super().__init__(node, call)
        self.node, self.call = node, call

    def __str__(self) -> str:
        return f"{self.node}: a handler called {self.call}; use ctx.now, timers and ctx.rng(stream)"


class HiddenState(ContractError):
    """A node class kept state outside its instances (contract 10.3; check mode only)."""

    def __init__(self, node: str, attribute: str) -> None:
        super().__init__(node, attribute)
        self.node, self.attribute = node, attribute

    def __str__(self) -> str:
        return f"{self.node}: class attribute {self.attribute} changed during the run; keep state in the instance"


class TaskCancelled(EmumlError):
    """Raised inside a cancellable task that stops early because its tag was cancelled."""


class RunFailed(EmumlError):
    """A run that had begun and could not go on."""


class NodeFailed(RunFailed):
    """A handler or task raised; ``__cause__`` is the original exception object (contract 12.1)."""

    def __init__(self, node: str, incarnation: int, now: float, event: str, replay: str = "") -> None:
        super().__init__(node, incarnation, now, event, replay)
        self.node, self.incarnation, self.now, self.event, self.replay = node, incarnation, now, event, replay

    def __str__(self) -> str:
        if isinstance(self.__cause__, NodeFailed):  # made again from it, as SimPy does: it says all
            return str(self.__cause__)
        text = f"{self.node} (life {self.incarnation}) failed at t={self.now:.6g} s while handling {self.event}"
        if self.__cause__ is not None:
            text += f": {type(self.__cause__).__name__}: {self.__cause__}{_place_of(self.__cause__)}"
        return f"{text}; replay: {self.replay}" if self.replay else text


def _place_of(error: BaseException) -> str:
    """Return `` (file:line)`` of the innermost frame of a traceback, or an empty string."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return "" if frame is None else f" ({frame.tb_frame.f_code.co_filename}:{frame.tb_lineno})"


class Unresolved(RunFailed):
    """More workers of a group lied than a code can tell: no value of theirs is confirmed, and none is taken."""

    def __init__(self, round: int, group: int, members: str, reason: str) -> None:
        super().__init__(round, group, members, reason)
        self.round, self.group, self.members, self.reason = round, group, members, reason

    def __str__(self) -> str:
        return f"round {self.round}: group {self.group} ({self.members}) is not verified: {self.reason}"


class Deadlock(RunFailed):
    """Nothing is pending and nobody stopped the run (contract 12.3)."""

    def __init__(self, now: float, report: str) -> None:
        super().__init__(now, report)
        self.now, self.report = now, report

    def __str__(self) -> str:
        return f"nothing more can happen at t={self.now:.6g} s, and no node stopped the run:\n{self.report}"


class Livelock(RunFailed):
    """A million events without progress of time (contract 6.9)."""

    def __init__(self, now: float, events: int, report: str) -> None:
        super().__init__(now, events, report)
        self.now, self.events, self.report = now, events, report

    def __str__(self) -> str:
        return f"{self.events} events at t={self.now:.6g} s without progress of time:\n{self.report}"


class Timeout(RunFailed):
    """A wait of the runtime passed its deadline; says what for, from whom and since when."""

    def __init__(self, waiting_for: str, deadline_s: float) -> None:
        super().__init__(waiting_for, deadline_s)
        self.waiting_for, self.deadline_s = waiting_for, deadline_s

    def __str__(self) -> str:
        return f"gave up after {self.deadline_s:g} s: {self.waiting_for}"


class NodeLost(RunFailed):
    """A node process that the run cannot do without ended by itself."""

    def __init__(self, node: str, incarnation: int, reason: str, last_lines: str = "") -> None:
        super().__init__(node, incarnation, reason, last_lines)
        self.node, self.incarnation, self.reason, self.last_lines = node, incarnation, reason, last_lines

    def __str__(self) -> str:
        text = f"{self.node} (life {self.incarnation}) ended: {self.reason}"
        return f"{text}\n{self.last_lines}" if self.last_lines else text


class Diverged(RunFailed):
    """A replayed node did something else than its journal recorded (contract 13.2)."""

    def __init__(self, node: str, index: int, field: str, recorded: str, replayed: str) -> None:
        super().__init__(node, index, field, recorded, replayed)
        self.node, self.index, self.field, self.recorded, self.replayed = node, index, field, recorded, replayed

    def __str__(self) -> str:
        return (
            f"replay of {self.node} diverged at index {self.index} in {self.field}: "
            f"recorded {self.recorded}, replayed {self.replayed}"
        )


class RecordEnds(RunFailed):
    """A replay came to the point at which the recorded run was cut."""

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.now = now

    def __str__(self) -> str:
        return f"the recorded run ends at t={self.now:.6g} s"


class FormatError(UserError):
    """A file of another format or version than this program reads."""


class OutboxOverflow(RunFailed):
    """More bytes wait for one peer than the configured maximum (contract 4.2)."""

    def __init__(self, node: str, peer: str, waiting_bytes: int, message: str) -> None:
        super().__init__(node, peer, waiting_bytes, message)
        self.node, self.peer, self.waiting_bytes, self.message = node, peer, waiting_bytes, message

    def __str__(self) -> str:
        return f"{self.node}: {self.waiting_bytes} bytes wait for {self.peer}; the last one is a {self.message}"

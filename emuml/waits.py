"""What a script can wait for: a message, time, a job, or the first of several (contract section 17).

A wait says whether it is ready and what it gives. It resumes nobody: the adapter in ``emuml.script`` asks it after each
event. Invariants: a wait that is not chosen has consumed nothing and leaves no timer; nothing here knows an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from emuml.context import Context
from emuml.errors import ContractError, JobCancelled
from emuml.node import NodeId, PeerState

T = TypeVar("T")
Letter = tuple[NodeId, Any]
"""A message with its sender."""

ALLOWED = "node.receive, node.sleep, node.select, and the jobs of node.compute, node.save and node.load"


class PeerChange(msgspec.Struct, frozen=True):
    """What a script receives, in order with the messages, when the state of a peer changed; the peer is its sender.

    It cannot be sent: it is no :class:`emuml.Message`.

    Examples
    --------
    >>> PeerChange(PeerState.RESTARTED).state.value
    'restarted'
    """

    state: PeerState


class Desk:
    """What one life of a script has at hand, shared by its waits.

    Attributes
    ----------
    ctx : Context
        Of the present step, or of the last one.
    mailbox : list of (sender, message)
        Unread, in arrival order.
    timers : dict of str -> Wait
        Who is told when a timer fires.
    jobs : dict of tag -> Job
        Not done and not cancelled.
    stopped : bool
        Whether the script has stopped the run.
    """

    __slots__ = ("_numbers", "ctx", "jobs", "mailbox", "stopped", "timers")

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.mailbox: list[Letter] = []
        self.timers: dict[str, Wait[Any]] = {}
        self.jobs: dict[Any, Job[Any]] = {}
        self.stopped = False
        self._numbers: dict[str, int] = {}

    def live(self, call: str) -> None:
        """Raise StaleContext unless this life is in a step of its own."""
        self.ctx._live(call)

    def name(self, kind: str) -> str:
        """Return the next name of a kind, from ``kind/0``."""
        number = self._numbers.get(kind, 0)
        self._numbers[kind] = number + 1
        return f"{kind}/{number}"

    def set_timer(self, kind: str, after_s: float, wait: Wait[Any]) -> str:
        """Arm a timer of a fresh name for a wait, and return the name."""
        name = self.name(kind)
        self.ctx.set_timer(name, after_s)
        self.timers[name] = wait
        return name

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer, unless it has fired."""
        if self.timers.pop(name, None) is not None:
            self.ctx.cancel_timer(name)


class Wait(Generic[T]):
    """Base of all that a script may await."""

    __slots__ = ("desk",)

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def __await__(self) -> Generator[Wait[Any], None, T]:
        self.desk.live("await")
        if not self.is_ready():
            self.suspend()
            yield self
        return self.take()

    def is_ready(self) -> bool:
        """Tell whether there is something to take; asked again after each event."""
        raise NotImplementedError

    def take(self) -> T:
        """Return what was waited for; what was armed for it alone is disarmed."""
        raise NotImplementedError

    def suspend(self) -> None:
        """Prepare for the events to come: the script is suspended on this, and nothing is ready."""

    def withdraw(self) -> None:
        """Forget the wait: another one was chosen."""

    def expire(self) -> None:
        """Take notice of the timer that was armed for this."""

    def leaves(self) -> Iterator[Wait[Any]]:
        """Yield what this is made of, in the order listed."""
        yield self


class Receive(Wait[T]):
    """The first matching message in arrival order; also the same again, if it is awaited again."""

    __slots__ = ("_expired", "_found", "_scanned", "_timer", "sender", "timeout_s", "types", "where")

    def __init__(
        self,
        desk: Desk,
        types: tuple[type[Any], ...],
        sender: NodeId | None,
        where: Callable[[Any], bool] | None,
        timeout_s: float | None,
    ) -> None:
        self.desk, self.types, self.sender, self.where, self.timeout_s = desk, types, sender, where, timeout_s
        self._scanned, self._found, self._expired, self._timer = 0, -1, False, ""

    def is_ready(self) -> bool:
        """Look at the messages that this has not seen: nobody else takes any while a script is suspended."""
        mailbox = self.desk.mailbox
        while self._found < 0 and self._scanned < len(mailbox):
            if self._matches(*mailbox[self._scanned]):
                self._found = self._scanned
            self._scanned += 1
        return self._found >= 0 or self._expired

    def _matches(self, sender: NodeId, message: Any) -> bool:
        if self.types and not isinstance(message, self.types):
            return False
        return (self.sender is None or sender == self.sender) and (self.where is None or bool(self.where(message)))

    def suspend(self) -> None:
        """Begin to count the time."""
        if self.timeout_s is not None:
            self._timer = self.desk.set_timer("timeout", self.timeout_s, self)

    def expire(self) -> None:
        """See :class:`Wait`."""
        self._expired = True

    def take(self) -> T:
        """Return ``(sender, message)``, or ``None`` when time is up."""
        found = self._found
        self.withdraw()
        letter: Any = self.desk.mailbox.pop(found) if found >= 0 else None
        return letter  # type: ignore[no-any-return]

    def withdraw(self) -> None:
        """Stop the clock."""
        self.desk.cancel_timer(self._timer)
        self._scanned, self._found, self._expired, self._timer = 0, -1, False, ""

    def __str__(self) -> str:
        parts = [kind.__name__ for kind in self.types]
        if self.sender is not None:
            parts.append(f"sender={self.sender}")
        if self.where is not None:
            parts.append(f"where={getattr(self.where, '__name__', 'given')}")
        if self.timeout_s is not None:
            parts.append(f"timeout_s={self.timeout_s:g}")
        return f"receive({', '.join(parts)})"


class Sleep(Wait[None]):
    """A time that passes from the call on, whether or not it is awaited."""

    __slots__ = ("_over", "_timer", "_withdrawn", "seconds")

    def __init__(self, desk: Desk, seconds: float) -> None:
        super().__init__(desk)
        self.seconds = seconds
        self._over = self._withdrawn = False
        self._timer = desk.set_timer("sleep", seconds, self)

    def is_ready(self) -> bool:
        """Tell whether the time is over.

        Raises
        ------
        ContractError
            If this lost a ``select`` before.
        """
        if self._withdrawn:
            node = self.desk.ctx.id
            raise ContractError(f"{node}: {self} lost a select and was withdrawn; call node.sleep again")
        return self._over

    def expire(self) -> None:
        """See :class:`Wait`."""
        self._over = True

    def take(self) -> None:
        """Return nothing."""

    def withdraw(self) -> None:
        """Disarm the timer for good; a time that is over stays over."""
        self._withdrawn = not self._over
        self.desk.cancel_timer(self._timer)

    def __str__(self) -> str:
        return f"sleep({self.seconds:g})"


class Job(Wait[T]):
    """A save or a load that was begun; it goes on whether or not it is awaited, and may be awaited again."""

    __slots__ = ("_done", "_value", "tag")

    def __init__(self, desk: Desk, tag: str) -> None:
        super().__init__(desk)
        self.tag = tag
        self._done = False
        self._value: Any = None
        desk.jobs[tag] = self

    def finish(self, value: Any) -> None:
        """Take notice of the end."""
        self._done, self._value = True, value

    def is_ready(self) -> bool:
        """Tell whether the end has come."""
        return self._done

    def take(self) -> T:
        """Return the outcome."""
        value: T = self._value
        return value

    def __str__(self) -> str:
        return self.tag


class Computation(Job[T]):
    """A task that was begun; it can be cancelled."""

    __slots__ = ("_cancelled", "function")

    def __init__(self, desk: Desk, tag: str, function: str) -> None:
        super().__init__(desk, tag)
        self.function = function
        self._cancelled = False

    def cancel(self) -> None:
        """Stop the task, unless its result has come already: whichever was first wins (contract 8.6)."""
        self.desk.live("cancel")
        if self.desk.jobs.pop(self.tag, None) is not None:
            self._cancelled = True
            self.desk.ctx.cancel(self.tag)

    def is_ready(self) -> bool:
        """Tell whether the result has come, or never will."""
        return self._done or self._cancelled

    def take(self) -> T:
        """Return the result.

        Raises
        ------
        JobCancelled
            If there will be none.
        """
        if self._cancelled:
            raise JobCancelled(str(self.desk.ctx.id), str(self))
        return super().take()

    def __str__(self) -> str:
        return f"{self.tag} ({self.function})"


class Select(Wait[tuple[str, Any]]):
    """The first of several waits that is ready; among ready ones, the first in the order listed."""

    __slots__ = ("_winner", "parts")

    def __init__(self, desk: Desk, parts: Mapping[str, Wait[Any]]) -> None:
        super().__init__(desk)
        self.parts = parts
        self._winner = ""

    def is_ready(self) -> bool:
        """Look for a part that is ready."""
        self._winner = next((name for name, part in self.parts.items() if part.is_ready()), "")
        return self._winner != ""

    def suspend(self) -> None:
        """Suspend on all parts, in the order listed."""
        for part in self.parts.values():
            part.suspend()

    def take(self) -> tuple[str, Any]:
        """Return name and outcome of the winner; receives and sleeps that lost are withdrawn, jobs go on."""
        winner = self.parts[self._winner]
        for part in self.parts.values():
            if part is not winner:
                part.withdraw()
        return self._winner, winner.take()

    def withdraw(self) -> None:
        """Withdraw all parts."""
        for part in self.parts.values():
            part.withdraw()

    def leaves(self) -> Iterator[Wait[Any]]:
        """See :class:`Wait`."""
        for part in self.parts.values():
            yield from part.leaves()

    def __str__(self) -> str:
        return f"select({', '.join(f'{name}={part}' for name, part in self.parts.items())})"

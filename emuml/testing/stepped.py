"""An emulated run that its caller advances event by event, crashing and delaying what he likes in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emuml.des.environment import URGENT, is_call
from emuml.des.machine import Machine
from emuml.errors import RunFailed
from emuml.node import NodeId
from emuml.outcome import Run
from emuml.testing.watched import Watched

Link = tuple[str, str]
"""Sender and receiver."""
FOREVER_S = float("inf")


class Stepped(Watched):
    """A run in the caller's hands; failures of nodes end it and are in ``result.error``."""

    def begin(self) -> None:
        """Begin the first lives."""
        self._guarded(self._start_all)

    @property
    def over(self) -> bool:
        """Whether a node, an oracle or a failure ended the run."""
        return self.result.stopped is not None or self.result.error is not None

    def advance(self) -> bool:
        """Process the next event, and tell whether there was one."""
        if self.over or self.env.next_time() == FOREVER_S:
            return False
        assert self.choices is not None
        self._guarded(self.env.step_tie, self.choices.choose)
        return True

    def advance_by(self, seconds: float) -> None:
        """Process all events of so many seconds from now on."""
        until_s = self.now + seconds
        while self.env.next_time() <= until_s and self.advance():
            pass
        if not self.over:
            self.env._now = max(self.now, until_s)

    def links(self) -> list[Link]:
        """Return the links that messages are on the way on."""
        return [(str(sender), str(to)) for sender, to in self.mail.on_the_way()]

    def deliver(self, link: Link) -> None:
        """Advance until the first message on a link has arrived, before others of its instant, or is lost."""
        head = self.mail.on_the_way()[(NodeId.parse(link[0]), NodeId.parse(link[1]))]
        while is_call(head) and self.advance():
            pass

    def crash(self, node: str) -> None:
        """Let a node vanish now."""
        self._at_once(self.crashes.crash, self.machine(node))

    def restart(self, node: str) -> None:
        """Let the next life of a node begin, once it has read what it saved."""
        self._at_once(self.crashes.restart, self.machine(node))

    def machine(self, node: str) -> Machine:
        """Return a node's place."""
        return self.machines[NodeId.parse(node)]

    def finish(self, within_s: float) -> Run:
        """Go on for so many seconds, unless the run ends before, and return the record; no clock was read."""
        if not self.over:
            self._guarded(self._loop, self.now + within_s)
        return self._finish(0.0)

    def _at_once(self, function: Callable[..., None], *args: Any) -> None:
        call = self.env.call_at(self.env._now, URGENT, function, *args)
        while is_call(call) and self.advance():
            pass

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except RunFailed as error:
            self.result.error = error

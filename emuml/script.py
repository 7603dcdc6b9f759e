"""The second form of a node: ``async def main`` on top of handlers, for protocols that read better as a conversation.

A pure adapter: each handler notes its event and resumes ``main`` if what it awaits is ready. So a script is a node as
any other, on every engine. Code between two suspensions is one step, and an await that is satisfied does not suspend.
Source: contract section 17.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from emuml.coroutines import Main, keep, place, refusal, resume
from emuml.errors import ContractError, MailboxOverflow
from emuml.node import Node, NodeId, PeerState
from emuml.script_context import ScriptContext
from emuml.waits import ALLOWED, Desk, PeerChange, Wait

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context
    from emuml.message import Array

MAILBOX_MAX = 100_000
"""Unread messages of one script; more are a leak."""

_HANDLERS = ("on_start", "on_message", "on_timer", "on_computed", "on_saved", "on_loaded", "on_peer")


class Strand:
    """One life of a script: its coroutine and what that is suspended on; ``None`` once nothing will resume it."""

    __slots__ = ("coroutine", "desk", "kept", "waiting")

    def __init__(self, script: Script, ctx: Context, saved: Saved) -> None:
        self.desk = Desk(ctx)
        self.waiting: Wait[Any] | None = None
        coroutine: object = script.main(ScriptContext(self.desk, saved))
        if not inspect.iscoroutine(coroutine):
            raise ContractError(
                f"{type(script).__name__}.main is no coroutine; write it as 'async def main(self, node)'"
            )
        self.coroutine: Main = coroutine
        # The directory lives as long as its run. Not to be held here: what a coroutine can reach, it would keep.
        self.kept = keep(self.coroutine, ctx._live("main").directory)
        self._advance()

    def deliver(self, ctx: Context, sender: NodeId, message: Any) -> None:
        """Put a message at the end of the mailbox.

        Raises
        ------
        MailboxOverflow
            If more than ``MAILBOX_MAX`` messages are unread afterwards.
        """
        if self.waiting is None:
            return
        mailbox = self.desk.mailbox
        mailbox.append((sender, message))
        self._look(ctx)
        if len(mailbox) > MAILBOX_MAX:
            counts = Counter(type(message).__name__ for _, message in mailbox)
            raise MailboxOverflow(str(ctx.id), len(mailbox), counts.most_common(1)[0][0])

    def fire(self, ctx: Context, name: str) -> None:
        """Tell whoever armed a timer."""
        wait = self.desk.timers.pop(name, None)
        if wait is not None:
            wait.expire()
            self._look(ctx)

    def finish(self, ctx: Context, tag: Hashable, value: Any) -> None:
        """Give a job its outcome."""
        job = self.desk.jobs.pop(tag, None)
        if job is not None:
            job.finish(value)
            self._look(ctx)

    def _look(self, ctx: Context) -> None:
        self.desk.ctx = ctx
        if self.waiting is not None and self.waiting.is_ready():
            self._advance()

    def _advance(self) -> None:
        """Let the coroutine run until it awaits something that is not ready."""
        self.waiting = None
        coroutine, desk = self.coroutine, self.desk
        try:
            awaited = resume(coroutine)
            while not (isinstance(awaited, Wait) and awaited.desk is desk):
                awaited = resume(coroutine, refusal(coroutine, awaited))
        except StopIteration:
            self.kept.discard(coroutine)
            desk.mailbox.clear()
        except BaseException as error:
            self.kept.discard(coroutine)
            if isinstance(error, TypeError) and str(error).endswith("can't be used in 'await' expression"):
                error.args = (f"{error}; allowed: {ALLOWED}",)
            raise
        else:
            self.waiting = None if desk.stopped else awaited

    def __str__(self) -> str:
        if self.waiting is None:
            return "nothing: it stopped the run" if self.desk.stopped else "nothing: main has returned"
        unread = len(self.desk.mailbox)
        return f"{self.waiting} in {place(self.coroutine)}{f', {unread} unread' if unread else ''}"


class Script(Node):
    """A node written as one coroutine; subclasses define ``async def main(self, node)``.

    ``main`` awaits what ``node`` offers (:class:`ScriptContext`) and coroutines of the author's own; anything else is a
    TypeError at that line. It runs once per life. When it returns, the node stays and ignores what comes. A life that
    crashes runs no ``finally`` block, as a killed process runs none.

    Examples
    --------
    >>> from emuml import Message, NodeId, Script
    >>> from emuml.testing import run_nodes
    >>> class Ping(Message):
    ...     number: int
    >>> class Asker(Script):
    ...     messages = (Ping,)
    ...     async def main(self, node):
    ...         node.send(NodeId("echo", 0), Ping(3))
    ...         sender, answer = await node.receive(Ping)
    ...         await node.sleep(2.0)
    ...         node.stop(f"{answer.number} of {sender}")
    >>> class Echo(Script):
    ...     messages = (Ping,)
    ...     async def main(self, node):
    ...         while True:
    ...             sender, message = await node.receive(Ping)
    ...             node.send(sender, message)
    >>> run = run_nodes({"asker-0": ("asker", Asker), "echo-0": ("echo", Echo)})
    >>> run.stopped, run.duration_s
    ('3 of echo-0', 2.0)
    """

    _strand: Strand

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _HANDLERS:
            if getattr(cls, name) is not getattr(Script, name):
                raise ContractError(
                    f"{cls.__name__} is a script and has {name}; allowed: main, which receives all events"
                )
        if inspect.isasyncgenfunction(cls.main):
            raise ContractError(f"{cls.__name__}.main yields; allowed: a coroutine, which awaits")

    async def main(self, node: ScriptContext) -> None:
        """Do all that this node does, from the start of a life to its end."""
        raise NotImplementedError(f"{type(self).__name__} has no main")

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Call ``main``; the other handlers resume it."""
        self._strand = Strand(self, ctx, saved)

    def on_message(self, ctx: Context, sender: NodeId, message: Any) -> None:
        """See :class:`Node`."""
        self._strand.deliver(ctx, sender, message)

    def on_timer(self, ctx: Context, name: str) -> None:
        """See :class:`Node`."""
        self._strand.fire(ctx, name)

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """See :class:`Node`."""
        self._strand.finish(ctx, tag, result)

    def on_saved(self, ctx: Context, tag: Hashable) -> None:
        """See :class:`Node`."""
        self._strand.finish(ctx, tag, None)

    def on_loaded(self, ctx: Context, tag: Hashable, blocks: Saved) -> None:
        """See :class:`Node`."""
        self._strand.finish(ctx, tag, blocks)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Receive it as a message, in order with the others."""
        self._strand.deliver(ctx, peer, PeerChange(state))

    def waiting_for(self) -> str:
        """Say what ``main`` awaits, and where."""
        return str(self._strand)

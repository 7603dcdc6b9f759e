"""What the ``main`` of a script is handed: the effects of a context, and what can be awaited (contract section 17).

Effects are recorded at the call. Every mistake of the author's is raised there, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from emuml.errors import ContractError
from emuml.message import Message
from emuml.node import NodeId
from emuml.waits import ALLOWED, Computation, Desk, Job, Letter, PeerChange, Receive, Select, Sleep, Wait

if TYPE_CHECKING:
    import numpy as np

    from emuml.blocks import Saved
    from emuml.message import Array
    from emuml.task import Task


class ScriptContext:
    """What ``main`` is handed: the effects of a context, and what can be awaited.

    Attributes
    ----------
    id : NodeId
    role : str
    incarnation : int
        Which life of this node id, from 1.
    saved : Saved
        Newest committed values that this node id saved in any life, as of the start of this one.
    """

    __slots__ = ("_desk", "id", "incarnation", "role", "saved")

    def __init__(self, desk: Desk, saved: Saved) -> None:
        self._desk = desk
        self.id, self.role, self.incarnation = desk.ctx.id, desk.ctx.role, desk.ctx.incarnation
        self.saved = saved

    @property
    def now(self) -> float:
        """Seconds since the run began; constant between two suspensions."""
        return self._desk.ctx.now

    def peers(self, role: str) -> tuple[NodeId, ...]:
        """Return all ids of a role in roster order, without this node, whatever their state."""
        return self._desk.ctx.peers(role)

    def rng(self, stream: str) -> np.random.Generator:
        """Return a new generator at the start of this node's named stream; see :meth:`Context.rng`."""
        return self._desk.ctx.rng(stream)

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message; see :meth:`Context.send`."""
        self._desk.ctx.send(to, message)

    def send_latest(self, to: NodeId, message: Message, key: str) -> None:
        """Send, replacing a queued message of the same ``(to, key)`` that has not begun to leave."""
        self._desk.ctx.send_latest(to, message, key)

    def broadcast(self, role: str, message: Message) -> None:
        """Send to all of ``peers(role)``, in that order."""
        self._desk.ctx.broadcast(role, message)

    def log(self, **metrics: float | str) -> None:
        """Record numbers and short texts, in order with the other effects; never an input of anything."""
        self._desk.ctx.log(**metrics)

    def publish(self, version: int, parameters: Any) -> None:
        """Hand a version of the parameters to the observers that evaluate loss and metrics off the nodes."""
        self._desk.ctx.publish(version, parameters)

    def stop(self, reason: str) -> None:
        """End the run; effects recorded after this one are not executed, and ``main`` is not resumed."""
        self._desk.ctx.stop(reason)
        self._desk.stopped = True

    @overload
    def receive(
        self,
        *types: type[Any],
        sender: NodeId | None = None,
        where: Callable[[Any], bool] | None = None,
        timeout_s: None = None,
    ) -> Receive[Letter]: ...

    @overload
    def receive(
        self,
        *types: type[Any],
        sender: NodeId | None = None,
        where: Callable[[Any], bool] | None = None,
        timeout_s: float,
    ) -> Receive[Letter | None]: ...

    def receive(
        self,
        *types: type[Any],
        sender: NodeId | None = None,
        where: Callable[[Any], bool] | None = None,
        timeout_s: float | None = None,
    ) -> Receive[Any]:
        """Await the first matching message in arrival order; others stay unread, in their order.

        Parameters
        ----------
        types : classes
            Of messages, or :class:`emuml.PeerChange`; none: whatever comes.
        sender : NodeId, optional
            From this node only; for a :class:`PeerChange`, of this peer only.
        where : callable, optional
            Pure; takes the message and tells whether it is wanted.
        timeout_s : float, optional
            Seconds, from the await on. A message that comes at the very end is received.

        Returns
        -------
        awaitable of (sender, message), or of None when the time is up
            A receive that timed out, or lost a ``select``, has taken nothing.

        Raises
        ------
        ContractError
            If a type is no class of messages, the sender no id, or the time no finite number >= 0.
        """
        self._desk.live("receive")
        _check_receive(self.id, types, sender, timeout_s)
        return Receive(self._desk, types, sender, where, timeout_s)

    def sleep(self, seconds: float) -> Sleep:
        """Await that so many seconds have passed since this call."""
        self._desk.live("sleep")
        return Sleep(self._desk, seconds)

    def compute(self, task: Task) -> Computation[Array]:
        """Queue a task for one of this node's slots; await the job for its result, or ``cancel()`` it."""
        tag = self._desk.name("compute")
        self._desk.ctx.compute(tag, task)
        return Computation(self._desk, tag, task.name)

    def save(self, blocks: Mapping[Any, Any]) -> Job[None]:
        """Commit blocks to stable storage in one atomic step; await the job to know that it is durable."""
        tag = self._desk.name("save")
        self._desk.ctx.save(tag, blocks)
        return Job(self._desk, tag)

    def load(self, *ids: Any) -> Job[Saved]:
        """Read the newest committed values of blocks; await the job for the mapping, in which absent ids are absent."""
        tag = self._desk.name("load")
        self._desk.ctx.load(tag, ids)
        return Job(self._desk, tag)

    def select(self, **parts: Wait[Any]) -> Select:
        """Await the first of several: ``name, value = await node.select(answer=node.receive(Answer), work=job)``.

        Among parts that are ready, the first one listed is chosen. Receives and sleeps that lose are withdrawn; jobs go
        on, and may be awaited later.

        Raises
        ------
        TypeError
            If a part is nothing that a script can wait for.
        ContractError
            If there is no part, or one is listed twice, be it in a ``select`` within this one.
        """
        self._desk.live("select")
        for name, part in parts.items():
            if not isinstance(part, Wait):
                if inspect.iscoroutine(part):
                    part.close()  # it has not begun; Python would warn of it later
                raise TypeError(f"{self.id}: select({name}={type(part).__name__}); allowed: {ALLOWED}")
        leaves = [id(leaf) for part in parts.values() for leaf in part.leaves()]
        if len(set(leaves)) != len(leaves) or not leaves:
            raise ContractError(
                f"{self.id}: select({', '.join(parts)}) needs at least one part, and none of them twice"
            )
        return Select(self._desk, parts)


def _check_receive(node: NodeId, types: tuple[Any, ...], sender: Any, timeout_s: Any) -> None:
    for kind in types:
        if not (isinstance(kind, type) and issubclass(kind, (Message, PeerChange))):
            raise ContractError(f"{node}: receive({kind!r}); allowed: classes of messages, and PeerChange")
    if sender is not None and not isinstance(sender, NodeId):
        raise ContractError(f"{node}: receive(sender={sender!r}); allowed: a NodeId, see node.peers(role)")
    if timeout_s is not None and not 0 <= timeout_s < float("inf"):
        raise ContractError(f"{node}: receive(timeout_s={timeout_s!r}); allowed: finite seconds >= 0")

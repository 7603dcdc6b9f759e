"""What a handler may do: the context records effects; engines execute them after the handler returned.

Every check of an author's own mistake happens here, at the call, so that the traceback shows the author's line.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml import effects as fx
from emuml.blocks import checked_id, checked_tag, snapshot
from emuml.errors import ContractError, MessageError, StaleContext, StreamReused, TagInUse, UnknownPeer
from emuml.message import Message, freeze, freeze_array, size_bytes
from emuml.node import NodeId
from emuml.roster import listed
from emuml.streams import generator
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.life import Life

MESSAGE_BYTES_MAX = 4 << 30
_LOG_TYPES = (int, float, str)


class Context:
    """Handed to a handler and valid until it returns.

    Attributes
    ----------
    id : NodeId
    role : str
    incarnation : int
        Which life of this node id, from 1.
    now : float
        Seconds since the run began; constant during a handler.
    """

    __slots__ = ("_life", "id", "incarnation", "now", "role")

    def __init__(self, life: Life, now: float) -> None:
        self._life: Life | None = life
        self.id = life.id
        self.role = life.id.role
        self.incarnation = life.incarnation
        self.now = now

    def _live(self, effect: str) -> Life:
        if self._life is None:
            raise StaleContext(str(self.id), effect)
        return self._life

    def peers(self, role: str) -> tuple[NodeId, ...]:
        """Return all ids of a role in roster order, without this node, whatever their state."""
        return listed(self._live("peers").peers(role))

    def rng(self, stream: str) -> np.random.Generator:
        """Return a new generator at the start of this node's named stream.

        Name streams by position (``f"batch/{clock}"``): then redone work meets the same draws.
        """
        life = self._live("rng")
        if life.opened_streams is not None:
            if stream in life.opened_streams:
                raise StreamReused(str(self.id), stream)
            life.opened_streams.add(stream)
        return generator(life.directory.roster.seed, str(self.id), stream)

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message; never blocks. Its arrays become read-only, its content is fixed now.

        Raises
        ------
        UnknownPeer
            If ``to`` is not in the roster or not linked to this node.
        MessageError
            If ``message`` is no :class:`Message`, or too large.
        """
        life = self._live("send")
        frozen, size = self._outgoing(life, (to,), message)
        life.effects.append(fx.Send(to, frozen, size))

    def send_latest(self, to: NodeId, message: Message, key: str) -> None:
        """Send, replacing a queued message of the same ``(to, key)`` that has not begun to leave."""
        life = self._live("send_latest")
        frozen, size = self._outgoing(life, (to,), message)
        life.effects.append(fx.SendLatest(to, frozen, str(key), size))

    def broadcast(self, role: str, message: Message) -> None:
        """Send to all of ``peers(role)``, in that order."""
        life = self._live("broadcast")
        peers = life.peers(role)
        frozen, size = self._outgoing(life, peers, message)
        if peers:
            life.effects.append(fx.Broadcast(peers, frozen, size))

    def _outgoing(self, life: Life, peers: Sequence[NodeId], message: Message) -> tuple[Message, int]:
        for peer in peers[:1]:  # several peers are of one role: linked all, or none
            reason = life.why_not(peer)
            if reason:
                raise UnknownPeer(str(self.id), str(peer), reason)
        if not isinstance(message, Message):
            raise MessageError(
                f"{self.id} sends a {type(message).__name__}; only subclasses of emuml.Message can be sent"
            )
        frozen = freeze(message)
        if life.checker is not None:
            life.checker.sent(frozen)
        kind = type(frozen).__name__
        life.sent[kind] = life.sent.get(kind, 0) + len(peers)
        size = size_bytes(frozen)
        if size > MESSAGE_BYTES_MAX:
            raise MessageError(f"{type(message).__name__} has {size} bytes; at most {MESSAGE_BYTES_MAX} are allowed")
        return frozen, size

    def set_timer(self, name: str, after_s: float) -> None:
        """Fire ``on_timer(name)`` at or after ``now + after_s``, once; a running timer of that name is re-armed.

        Raises
        ------
        ContractError
            If ``after_s`` is negative, infinite or not a number.
        """
        life = self._live("set_timer")
        if type(name) is not str:
            raise ContractError(f"{self.id}: timer {name!r}; allowed: a string")
        if not 0 <= after_s < float("inf"):
            raise ContractError(f"{self.id}: timer {name!r} after {after_s!r} s; allowed: finite seconds >= 0")
        life.effects.append(fx.SetTimer(name, float(after_s), life.arm(name)))

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer, also if its expiry is queued; unknown names are ignored."""
        life = self._live("cancel_timer")
        generation = life.timers.pop(name, None)
        if generation is not None:
            life.effects.append(fx.CancelTimer(name, generation))

    def compute(self, tag: Hashable, task: Task) -> None:
        """Queue a task for one of this node's slots; its end comes as ``on_computed(tag, result)``.

        Raises
        ------
        TagInUse
            If a task with this tag is alive.
        ContractError
            If ``task`` is no :class:`Task`.
        """
        life = self._live("compute")
        if not isinstance(task, Task):
            raise ContractError(f"{self.id}: compute needs an emuml.Task, got {type(task).__name__}")
        if checked_tag(tag) in life.tasks:
            raise TagInUse(str(self.id), str(tag))
        task = frozen_task(task)
        draw = life.started if task.draw is None else task.draw
        life.effects.append(fx.Compute(tag, task, draw, life.begin(tag)))

    def cancel(self, tag: Hashable) -> None:
        """Stop a task: nothing is ever delivered for it; unknown tags are ignored."""
        life = self._live("cancel")
        generation = life.tasks.pop(tag, None)
        if generation is not None:
            life.effects.append(fx.Cancel(tag, generation))

    def save(self, tag: Hashable, blocks: Mapping[Any, Any]) -> None:
        """Commit blocks to stable storage in one atomic step; ``on_saved(tag)`` says when it is durable.

        The values are copied now, so the node may go on changing them.

        Raises
        ------
        ContractError
            If a value or an id is of a type that stores do not keep.
        """
        life = self._live("save")
        life.effects.append(
            fx.Save(checked_tag(tag), {checked_id(block): snapshot(value) for block, value in blocks.items()})
        )

    def load(self, tag: Hashable, ids: Iterable[Any]) -> None:
        """Read the newest committed values of blocks; they come as ``on_loaded(tag, blocks)``."""
        self._live("load").effects.append(fx.Load(checked_tag(tag), tuple(checked_id(block) for block in ids)))

    def log(self, **metrics: float | str) -> None:
        """Record numbers and short texts, in order with the other effects; never an input of anything."""
        life = self._live("log")
        plain: dict[str, Any] = {k: v.item() if isinstance(v, np.generic) else v for k, v in metrics.items()}
        for name, value in plain.items():
            if not isinstance(value, _LOG_TYPES) or (isinstance(value, int) and not -(2**63) <= value < 2**64):
                raise ContractError(f"{self.id}: log({name}={value!r}); allowed: 64-bit numbers and short texts")
        life.effects.append(fx.Log(plain))

    def publish(self, version: int, parameters: Any) -> None:
        """Hand a version of the parameters to the observers that evaluate loss and metrics off the nodes."""
        life = self._live("publish")
        life.effects.append(fx.Publish(int(version), freeze_array(parameters)))

    def stop(self, reason: str) -> None:
        """End the run; effects recorded after this one are not executed."""
        self._live("stop").effects.append(fx.Stop(str(reason)))


def frozen_task(task: Task) -> Task:
    """Return the task with its arrays read-only; itself unless one had to be copied."""
    for item in task.inputs:
        if isinstance(item, np.ndarray) and freeze_array(item) is not item:
            frozen = [freeze_array(item) if isinstance(item, np.ndarray) else item for item in task.inputs]
            return replace(task, inputs=tuple(frozen))
    return task


def retire(ctx: Context) -> None:
    """Make every later use of ``ctx`` raise :class:`StaleContext`; engines call it when the handler returned."""
    ctx._life = None

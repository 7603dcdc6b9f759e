"""Compute slots of emulated nodes: FIFO queues, durations from the cluster's law, cancellation, lazy results."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from emuml import effects as fx
from emuml.des.environment import NORMAL, Call
from emuml.des.machine import Machine
from emuml.errors import NodeFailed
from emuml.journal import value_digest
from emuml.lazy import Deferred
from emuml.node import NodeId
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator
    from emuml.des.paces import Paces


class Slots:
    """Runs tasks in virtual time; equal tasks share one result, which is evaluated at most once."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.paces: Paces | None = None
        self._results: WeakValueDictionary[int, Deferred] = WeakValueDictionary()

    def compute(self, machine: Machine, effect: fx.Compute) -> None:
        """Queue a task, and begin it if a slot is free."""
        emulator = self._emulator
        load = effect.task.cost / emulator.unit_cost
        emulator.trace.add(emulator.now, machine.name, "compute", effect.tag, effect.draw, load)
        machine.queue.append(effect)
        self._fill(machine)

    def _fill(self, machine: Machine) -> None:
        emulator = self._emulator
        while machine.queue and machine.busy < emulator.cluster.cores:
            effect = machine.queue.popleft()
            machine.busy += 1
            seconds = effect.task.seconds(machine.law, effect.draw, emulator.unit_cost)
            emulator.trace.add(emulator.now, machine.name, "begin", effect.tag, effect.draw)
            name = ""
            if emulator.choices is not None:
                name = emulator.choices.name("compute", machine.name, effect.tag)
                seconds += emulator.choices.late_s(name, seconds)
            if self.paces is None:
                self.end_in(machine, effect, seconds, name)
            else:
                self.paces.begin(machine, effect, seconds, name)

    def end_in(self, machine: Machine, effect: fx.Compute, after_s: float, name: str) -> Call:
        """Let a running task end after so many seconds."""
        env = self._emulator.env
        call = env.call_at(env._now + after_s, NORMAL, self._end, machine, machine.incarnation, effect)
        call.name = name
        machine.running[effect.generation] = call
        return call

    def _end(self, machine: Machine, incarnation: int, effect: fx.Compute) -> None:
        emulator, life = self._emulator, machine.life
        if not machine.lives(incarnation) or life is None:
            return
        del machine.running[effect.generation]
        machine.busy -= 1
        self._fill(machine)
        emulator.trace.add(emulator.now, machine.name, "computed", effect.tag, effect.draw)
        result = self.result(effect.task, effect.tag, machine.id)
        if emulator.eager or machine.journal is not None:
            self.evaluate(machine, effect, result)
        event = fx.Computed(effect.tag, result, effect.generation)
        emulator.step(machine, event, "computed", lambda: [effect.tag, value_digest(result), 0.0])

    def result(self, task: Task, tag: Hashable, node: NodeId) -> Deferred:
        """Return the result of a task that ended; equal tasks share one while it lives.

        They are found by the hashes of their keys: keys themselves would weigh more than results.
        """
        try:
            key: Hashable = task.key()
            number = hash(key)
        except TypeError:  # an unhashable input: evaluated for itself
            return Deferred(task, tag, node)
        found = self._results.get(number)
        if found is None:
            found = self._results[number] = Deferred(task, tag, node)
        return found if found.task is task or found.task.key() == key else Deferred(task, tag, node)

    def evaluate(self, machine: Machine, effect: fx.Compute, result: Deferred) -> None:
        """Evaluate a result now; an error is the node's."""
        try:
            result.value()
        except Exception as error:
            event = f"task {effect.tag!r} ({effect.task.name})"
            raise NodeFailed(machine.name, machine.incarnation, self._emulator.now, event) from error

    def cancel(self, machine: Machine, effect: fx.Cancel) -> None:
        """Take a task out of the queue, or free its slot after the cluster's cancel lag."""
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "cancel", effect.tag)
        call = machine.running.pop(effect.generation, None)
        if call is None:
            queue = [queued for queued in machine.queue if queued.generation != effect.generation]
            machine.queue.clear()
            machine.queue.extend(queue)
            return
        emulator.env.cancel(call)
        lag = emulator.cluster.cancel_lag_s
        if lag == 0:
            self._free(machine, machine.incarnation, effect)
        else:
            emulator.env.call_at(emulator.env._now + lag, NORMAL, self._free, machine, machine.incarnation, effect)

    def _free(self, machine: Machine, incarnation: int, effect: fx.Cancel) -> None:
        if machine.stall is not None:
            machine.stall.keep(self._free, machine, incarnation, effect)
        elif machine.lives(incarnation):
            machine.busy -= 1
            self._emulator.trace.add(self._emulator.now, machine.name, "freed", effect.tag)
            self._fill(machine)

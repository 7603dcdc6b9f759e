"""The emulator's core: hands events to nodes in virtual time and executes the effects they record.

It decides nothing: durations come from the cluster's laws, order from (time, class, schedule number), and whatever is
left open is asked of ``choose``. Messages, compute slots, disks and faults have a module each.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from emuml import effects as fx
from emuml._kernels import built, message_checks
from emuml.checks import Checker
from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import FaultPlan
from emuml.des.choices import Choices
from emuml.des.crashes import Crashes
from emuml.des.disks import Disks
from emuml.des.environment import CORE, TIMER, Call, Choose, Environment
from emuml.des.faults import SUPPORTED, Faults
from emuml.des.machine import Machine, instantly
from emuml.des.mail import Mail
from emuml.des.sessions import Sessions
from emuml.des.slots import Slots
from emuml.directory import Directory
from emuml.errors import Deadlock, Livelock, RunFailed
from emuml.journal import Header, Journal, JournalWriter, blocks_digest
from emuml.life import Life
from emuml.links import Links
from emuml.node import Node, NodeId, Nodes, check_same_messages
from emuml.outcome import Logged, LogSink, Observer, Published, Run
from emuml.roster import Roster
from emuml.switches import checking, eager, pure
from emuml.trace import Trace

LIVELOCK_EVENTS = 1_000_000
MANY = 1000
"""From so many nodes on, the garbage collector is told to leave them alone while the run lasts, and an emulator keeps
none of their machines when it is over."""
BesideProcess = Callable[[Environment, Cluster], Any]


class Emulator:
    """One emulated run.

    Parameters
    ----------
    nodes : mapping of NodeId -> (role, factory)
    cluster : Cluster
    roster : Roster
        Same ids as ``nodes``.
    faults : FaultPlan
    unit_cost : float
        Cost of a task of load 1: cost of a full pass / number of workers.
    journal : bool
        Whether to keep journals; it forces evaluation of everything that is sent.
    choose : callable, optional
        The one hook for picks that the model leaves open (default: always 0); ``choices.py`` lists them.
    """

    def __init__(
        self,
        nodes: Nodes,
        cluster: Cluster,
        roster: Roster,
        faults: FaultPlan | None = None,
        unit_cost: float = 1.0,
        journal: bool = False,
        choose: Choose | None = None,
        observers: Sequence[Observer] = (),
        log_sinks: Sequence[LogSink] = (),
        trace: Trace | None = None,
        versions: dict[str, str] | None = None,
    ) -> None:
        self.env = Environment(0.0)
        self.still_most = max(LIVELOCK_EVENTS, 4 * len(roster.ids) * cluster.servers)
        self.nodes, self.cluster, self.roster, self.unit_cost = nodes, cluster, roster, unit_cost
        self.choices = None if choose is None else Choices(choose)
        self.observers, self.log_sinks = tuple(observers), tuple(log_sinks)
        self.checker = Checker() if checking() else None
        self.eager = eager()
        self.keep_journal = journal
        self.versions = versions or {}
        self.trace = Trace() if trace is None else trace
        self.result = Run("des", self.trace)
        with settled(len(roster.ids)):
            first = {id: nodes[id][1]() for id in roster.ids}
        check_same_messages(first.values())
        self.directory = Directory(roster, {id.role: node.talks_to for id, node in first.items()})
        plan = (faults or FaultPlan()).checked_for(roster.ids, SUPPORTED, "des")
        self.mail, self.slots, self.disks = Mail(self), Slots(self), Disks(self)
        self.crashes, self.sessions, self.faults = Crashes(self, plan), Sessions(self), Faults(self, plan)
        self._execute: dict[type, Callable[[Machine, Any], None]] = {
            fx.Send: lambda m, e: self.mail.send(m, e.to, e.message, e.size_bytes),
            fx.SendLatest: lambda m, e: self.mail.send(m, e.to, e.message, e.size_bytes),
            fx.Broadcast: self.mail.broadcast,
            fx.SetTimer: self._set_timer,
            fx.CancelTimer: self._cancel_timer,
            fx.Compute: self.slots.compute,
            fx.Cancel: self.slots.cancel,
            fx.Save: self.disks.save,
            fx.Load: self.disks.load,
            fx.Log: self._log,
            fx.Publish: self._publish,
            fx.Stop: self._stop,
        }
        self.beside: tuple[BesideProcess, ...] = ()
        self.post = self._delivery()
        with settled(len(first)):
            self.machines = self._machines(first)
        if self.post is not None:
            self.post.ready(self)

    def _delivery(self) -> Any:
        """Return the compiled delivery where it can serve this run, else None."""
        watched = self.choices is not None or self.checker is not None or self.keep_journal
        if type(self) is not Emulator or watched or not self.cluster.shares_nothing:
            return None
        if self.faults.touches_links or self.faults.touches_compute:
            return None
        if message_checks is None or CORE == "pure" or pure() or not built("delivery"):
            return None
        from emuml.des.delivery import Post

        return Post(self)

    def _machines(self, nodes: dict[NodeId, Node]) -> dict[NodeId, Machine]:
        if self.post is not None:
            return self.post.enrol(nodes)  # type: ignore[no-any-return]
        return {id: Machine(id, self.nodes[id][1], self._law(id), node) for id, node in nodes.items()}

    def _law(self, id: NodeId) -> Callable[[int, float], float]:
        return self.cluster.compute.sampler(self.roster.seed, id) if id.role == "worker" else instantly

    @property
    def now(self) -> float:
        """Seconds of virtual time since the run began."""
        return float(self.env.now)

    def run(self, until_s: float | None = None, beside: Iterable[BesideProcess] = ()) -> Run:
        """Run until a node stops the run, nothing can happen any more, or ``until_s``.

        Failures of nodes and deadlocks are in the returned run's ``error``; errors of users' own SimPy processes are
        raised as SimPy raises them.
        """
        began = time.perf_counter()
        self.beside = tuple(beside)
        for process in self.beside:
            self.env.process(process(self.env, self.cluster))
        try:
            try:
                with settled(len(self.machines)) as settle:
                    self.faults.schedule()
                    self._start_all()
                    settle()
                    self._loop(float("inf") if until_s is None else until_s)
            except RunFailed as error:
                self.result.error = error
            return self._finish(time.perf_counter() - began)
        finally:
            if self.post is not None:
                many = len(self.machines) >= MANY
                self.post.end(many)
                if many:
                    self.machines, self.nodes = {}, {}

    def _start_all(self) -> None:
        """Begin the first lives: all are there, with their links up, before the first ``on_start`` (contract 2.5)."""
        if self.post is not None and not self.crashes.absent:
            self.post.start(list(self.machines.values()))
            return
        self.stand_aside()
        first = [machine for machine in self.machines.values() if machine.id not in self.crashes.absent]
        for machine in first:
            self._be_born(machine, joining=False)
        lives = [machine.life for machine in first]
        for machine, life in zip(first, lives, strict=True):
            if machine.life is life and self.result.stopped is None:
                self._hand_over_start(machine, joining=False)
        self.sessions.tell_absent()

    def stand_aside(self) -> None:
        """From now on, sessions and crashes matter: messages take the Python path."""
        if self.post is not None:
            self.post.stand_aside()

    def stands_still(self, events: int) -> NoReturn:
        """End the run after so many events of one instant."""
        raise Livelock(self.now, events, self.report())

    def _loop(self, until_s: float) -> None:
        if self.post is not None and not self.beside and self.result.stopped is None:
            self.post.run(until_s)
        env, still, last = self.env, 0, -1.0
        while self.result.stopped is None:
            at = env.next_time()
            if at > until_s:
                env._now = max(self.now, until_s)
                return
            if not env.live and until_s == float("inf"):
                raise Deadlock(self.now, self.report())
            still = still + 1 if at == last else 0
            if still > self.still_most:
                self.stands_still(still)
            last = at
            if self.choices is None:
                env.step()
            else:
                env.step_tie(self.choices.choose)

    def peek(self) -> dict[str, float]:
        """Return how far the run is: its time, and the events handled; any thread may ask."""
        return {"time_s": self.now, "events": self.result.events if self.post is None else self.post.events}

    def _finish(self, wall_s: float) -> Run:
        result = self.result
        result.duration_s, result.wall_s = self.now, wall_s
        if self.post is not None:
            result.events = self.post.events
        result.ends += self.faults.missed()
        for machine in self.machines.values():
            if machine.life is not None:
                result.nodes[machine.id] = machine.life.node
        return result

    def report(self) -> str:
        """Describe every node, one a line, for deadlock and livelock errors."""
        absent = self.crashes.absent
        return "\n".join(machine.describe(machine.id in absent) for machine in self.machines.values())

    def start(self, machine: Machine, joining: bool) -> None:
        """Begin a new incarnation: a fresh object, then ``on_start`` with what was saved."""
        self._be_born(machine, joining)
        self._hand_over_start(machine, joining)

    def _be_born(self, machine: Machine, joining: bool) -> None:
        machine.incarnation += 1
        machine.reset()
        machine.links = Links(joining, machine.id, machine.incarnation, absent=self.crashes.absent)
        if self.post is not None:
            machine.life = self.post.life(machine)
            return
        machine.life = Life(machine.born(), machine.id, machine.incarnation, self.directory, self.checker)
        if self.keep_journal:
            header = Header("", machine.name, machine.incarnation, self.roster.seed, self.versions)
            machine.journal = JournalWriter(header)
            key = (machine.name, machine.incarnation)
            self.result.journals[key] = Journal(header, machine.journal.steps)

    def _hand_over_start(self, machine: Machine, joining: bool) -> None:
        self.trace.add(self.now, machine.name, "start", machine.incarnation)
        saved = machine.store.read()
        absent = self.crashes.absent
        self.step(
            machine,
            fx.Started(saved),
            "start",
            lambda: [blocks_digest(saved), [], joining, [str(id) for id in sorted(absent)]],
        )

    def step(self, machine: Machine, event: fx.Event, kind: str, details: Callable[[], list[Any]]) -> None:
        """Hand one event to a living node and execute the effects it recorded."""
        if self.post is not None:
            self.post.step(machine, event)
            return
        life = machine.life
        assert life is not None
        now = self.env._now
        self.result.events += 1
        execute = self._execute
        for effect in life.step(event, now, machine.journal, kind, details):
            execute[type(effect)](machine, effect)
            if self.result.stopped is not None or machine.life is not life:
                return

    def _set_timer(self, machine: Machine, effect: fx.SetTimer) -> None:
        self.trace.add(self.now, machine.name, "set_timer", effect.name, effect.after_s)
        old = machine.timers.get(effect.name)
        if old is not None:
            self.env.cancel(old)
        at = self.env._now + effect.after_s
        fire = self._fire
        call = machine.timers[effect.name] = self.env.call_at(at, TIMER, fire, machine, machine.incarnation, effect)
        if self.choices is not None:
            call.name = self.choices.name("timer", machine.name, effect.name)

    def _cancel_timer(self, machine: Machine, effect: fx.CancelTimer) -> None:
        self.trace.add(self.now, machine.name, "cancel_timer", effect.name)
        self.env.cancel(machine.timers.pop(effect.name))

    def _fire(self, machine: Machine, incarnation: int, effect: fx.SetTimer) -> None:
        if machine.stall is not None:
            machine.stall.timers.append((self._fire, (machine, incarnation, effect)))
            return
        event = fx.TimerFired(effect.name, effect.generation)
        if machine.lives(incarnation) and machine.life is not None and machine.life.is_current(event):
            del machine.timers[effect.name]
            self.trace.add(self.now, machine.name, "timer", effect.name)
            self.step(machine, event, "timer", lambda: [effect.name])

    def _log(self, machine: Machine, effect: fx.Log) -> None:
        self.trace.add(self.now, machine.name, "log", effect.metrics)
        logged = Logged(self.now, machine.id, effect.metrics)
        self.result.logs.append(logged)
        for sink in self.log_sinks:
            sink(logged)
        self.faults.reached(effect.metrics)

    def _publish(self, machine: Machine, effect: fx.Publish) -> None:
        self.trace.add(self.now, machine.name, "publish", effect.version)
        version = Published(self.now, machine.id, effect.version, effect.parameters, self.result.events)
        self.result.published.append(version)
        for observer in self.observers:
            reason = observer(version)
            if reason is not None:
                self._stop(machine, fx.Stop(reason))

    def _stop(self, machine: Machine, effect: fx.Stop) -> None:
        if self.result.stopped is None:
            self.result.stopped = effect.reason
            if self.post is not None:
                self.post.halt()
            self.trace.add(self.now, machine.name, "stop", effect.reason)

    def call_at(
        self, at: float, priority: int, what: tuple[object, ...], function: Callable[..., None], *args: Any
    ) -> Call:
        """Schedule a call; an explorer who is asked what comes first is told its name, made of ``what`` it is."""
        call = self.env.call_at(at, priority, function, *args)
        if self.choices is not None:
            call.name = self.choices.name(*what)
        return call


def _nothing() -> None:
    """Do nothing."""


@contextmanager
def settled(nodes: int) -> Iterator[Callable[[], None]]:
    """Let the collector pass over what is there already, where many nodes would be gone through again and again.

    The function that is handed out does so once more, with what has come since.
    Cycles among that wait for the end of the run; all others are looked for when ten objects have come for each node.
    Nothing is changed where somebody else has frozen objects.
    """
    if nodes < MANY or gc.get_freeze_count():
        yield _nothing
        return
    thresholds = young, middle, old = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(young, middle, max(old, 10 * nodes // max(young * middle, 1)))
    try:
        yield gc.freeze
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()

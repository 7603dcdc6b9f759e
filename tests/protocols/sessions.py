"""Nodes by hand, with sessions that break while both ends live: what a false verdict of a detector looks like to them.

Both ends are told DOWN, all that is on the way is gone, and later both are told UP of the same incarnation. Which thing
happens next is a whole number among those that are possible, so that a list of numbers makes a run.
"""

from collections import deque

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.directory import Directory
from emuml.life import Life
from emuml.node import NodeId, PeerState

STEPS_MAX = 3000


class Sessions:
    """Lives of all nodes of a protocol, links between workers and servers, and what is computed.

    Attributes
    ----------
    logs, published : lists of what was recorded; ``stopped`` is the reason, or ``None``.
    started : list of (node, task), in order.
    """

    def __init__(self, nodes, roster, judge=lambda sessions: None):
        directory = Directory(roster, {role: make().talks_to for role, make in nodes.values()})
        self.lives = {id: Life(make(), id, 1, directory) for id, (_, make) in nodes.items()}
        self.links, self.cut, self.tasks, self.timers = {}, set(), {}, {}
        self.logs, self.published, self.started, self.stopped = [], [], [], None
        self.judge = judge
        for id in self.lives:
            self.hand(id, fx.Started(Saved()))

    def node(self, name):
        return self.lives[NodeId.parse(name)].node

    def hand(self, id, event):
        if self.stopped is None:
            for effect in list(self.lives[id].handle(event, 0.0)):
                self.execute(id, effect)
            self.judge(self)

    def execute(self, id, effect):
        match effect:
            case fx.Send(to, message):
                self.send(id, to, message)
            case fx.Broadcast(to, message):
                for peer in to:
                    self.send(id, peer, message)
            case fx.Compute(tag, task, _, generation):
                self.started.append((id, task))
                self.tasks[id] = tag, task, generation
            case fx.Cancel():
                self.tasks.pop(id, None)
            case fx.SetTimer(name, _, generation):
                self.timers[id] = name, generation
            case fx.CancelTimer():
                self.timers.pop(id, None)
            case fx.Log(metrics):
                self.logs.append(metrics)
            case fx.Publish(version, parameters):
                self.published.append((version, parameters))
            case fx.Stop(reason):
                self.stopped = reason

    def send(self, sender, to, message):
        if frozenset((sender, to)) not in self.cut:
            self.links.setdefault((sender, to), deque()).append(message)

    def break_session(self, worker, server):
        """Cut a link: what is on it is lost, and each end takes the other one for dead."""
        ends = frozenset((worker, server))
        if ends not in self.cut:
            self.cut.add(ends)
            for a, b in ((worker, server), (server, worker)):
                self.links.pop((a, b), None)
                self.hand(a, fx.PeerChanged(b, PeerState.DOWN))

    def renew_session(self, worker, server):
        ends = frozenset((worker, server))
        if ends in self.cut:
            self.cut.discard(ends)
            for a, b in ((worker, server), (server, worker)):
                self.hand(a, fx.PeerChanged(b, PeerState.UP))

    def possible(self):
        """Return what may happen next, in an order that depends on nothing but the state."""
        found = [(self.deliver, ends) for ends in sorted(self.links) if self.links[ends]]
        found += [(self.finish, (id,)) for id in sorted(self.tasks)]
        return found + [(self.expire, (id,)) for id in sorted(self.timers)]

    def deliver(self, sender, to):
        self.hand(to, fx.Received(sender, self.links[sender, to].popleft()))

    def finish(self, id):
        tag, task, generation = self.tasks.pop(id)
        self.hand(id, fx.Computed(tag, task.run(), generation))

    def expire(self, id):
        self.hand(id, fx.TimerFired(*self.timers.pop(id)))

    def run(self, choices, breaks):
        """Let things happen until a node stops the run, or nothing is left that can.

        Parameters
        ----------
        choices : sequence of int >= 0
            Which of what is possible happens; the first one when they are used up.
        breaks : mapping of step -> (worker, server, steps)
            When sessions break, and for how many steps.
        """
        renewals, left = {}, iter(choices)
        for step in range(STEPS_MAX):
            for ends in renewals.pop(step, ()):
                self.renew_session(*ends)
            if step in breaks:
                worker, server, steps = breaks[step]
                self.break_session(worker, server)
                renewals.setdefault(step + 1 + steps, []).append((worker, server))
            possible = self.possible()
            if self.stopped is not None or not (possible or renewals):
                return self
            if possible:
                act, arguments = possible[next(left, 0) % len(possible)]
                act(*arguments)
        raise AssertionError(f"no end after {STEPS_MAX} steps")

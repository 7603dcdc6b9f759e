"""Nodes whose handlers are one function of the test's, and runs of them on the emulator."""

from functools import partial

from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import FaultPlan
from emuml.des.emulator import Emulator
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.roster import Roster


class Note(Message):
    text: str


class Bulk(Message):
    value: Array


class Scripted(Node):
    """Calls ``script(ctx, event, *arguments)`` for every event, after noting it in ``seen``."""

    def __init__(self, script, seen):
        self.script, self.seen = script, seen

    def _do(self, ctx, event, noted, *given):
        self.seen.append((ctx.now, f"{ctx.id}", ctx.incarnation, event, *noted))
        if self.script is not None:
            self.script(ctx, event, *(given or noted))

    def on_start(self, ctx, saved):
        self._do(ctx, "start", (dict(saved),), saved)

    def on_message(self, ctx, sender, message):
        self._do(ctx, "message", (f"{sender}", message.text if isinstance(message, Note) else message))

    def on_timer(self, ctx, name):
        self._do(ctx, "timer", (name,))

    def on_computed(self, ctx, tag, result):
        self._do(ctx, "computed", (tag,), tag, result)

    def on_saved(self, ctx, tag):
        self._do(ctx, "saved", (tag,))

    def on_loaded(self, ctx, tag, blocks):
        self._do(ctx, "loaded", (tag, dict(blocks)), tag, blocks)

    def on_peer(self, ctx, peer, state):
        self._do(ctx, "peer", (f"{peer}", state.name))

    def waiting_for(self):
        return "what comes"


class Seen(list):
    """What nodes saw: (time, node, incarnation, event, *arguments)."""

    def of(self, node, *events, life=None):
        """Return (time, *arguments) of some events of one node."""
        chosen = (row for row in self if row[1] == node and row[3] in events and life in (None, row[2]))
        return [(row[0], *row[4:]) for row in chosen]


def emulator(scripts, cluster=None, faults=(), *, seed=0, **options):
    """Return an emulator of scripted nodes, and where they note what they see."""
    seen = Seen()
    nodes = {
        NodeId.parse(name): (name.split("-")[0], partial(Scripted, script, seen)) for name, script in scripts.items()
    }
    roster = Roster(tuple(sorted(nodes)), seed)
    return Emulator(nodes, cluster or Cluster(workers=1), roster, FaultPlan(tuple(faults)), **options), seen


def emulate(scripts, cluster=None, faults=(), *, until_s=None, beside=(), **options):
    """Run scripted nodes and return the run, and what they saw."""
    engine, seen = emulator(scripts, cluster, faults, **options)
    return engine.run(until_s, beside), seen


def on(**handlers):
    """Return a script of one handler per event, such as ``start=lambda ctx, saved: ...``; others are ignored."""

    def script(ctx, event, *arguments):
        if event in handlers:
            handlers[event](ctx, *arguments)

    return script


def chooser(picks):
    """Return a ``choose`` that makes these picks in turn, then none, or ``None`` for no picks at all."""
    if picks is None:
        return None
    left = iter(picks)
    return lambda name, n: next(left, 0) % n


def gossip(sent):
    """Return what to do on a timer and on news of a peer to tell (life, number) around; ``sent`` counts.

    Everybody is told a few times a second, and at once whoever comes up.
    """

    def tell(ctx, peers):
        for peer in peers:
            key = (f"{ctx.id}", ctx.incarnation, f"{peer}")
            sent[key] = sent.get(key, 0) + 1
            ctx.send(peer, Note(f"{ctx.incarnation} {sent[key]}"))

    def everybody(ctx, *_):
        tell(ctx, [peer for role in ("server", "worker") for peer in ctx.peers(role)])
        if ctx.now < 8:
            ctx.set_timer("tick", 0.25)

    def peer(ctx, peer, state):
        if state in ("UP", "RESTARTED"):
            tell(ctx, [NodeId.parse(peer)])

    return everybody, peer

"""A cluster as a stateful test of Hypothesis: rules advance, crash, restart, deliver and delay; invariants are oracles.

A failing example is printed as a program. Authors add rules by subclassing, as they do with any
``hypothesis.stateful.RuleBasedStateMachine``.
"""

from __future__ import annotations

import sys
from types import MethodType
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from emuml.des.choices import LEVELS
from emuml.errors import UserError
from emuml.testing.budget import DEFAULT_BUDGET, DEFAULT_CLUSTERS, Budget, Clusters
from emuml.testing.campaign import described
from emuml.testing.oracles import Judge
from emuml.testing.picks import Picks
from emuml.testing.report import drawn
from emuml.testing.scenario import CrashFault, Scenario
from emuml.testing.stepped import FOREVER_S, Link, Stepped
from emuml.testing.subject import Built, Subject, shipped
from emuml.testing.trial import Trial, waiting, watch
from emuml.testing.views import Finished, Nodes


def _of_machine(names: str) -> st.SearchStrategy[Any]:
    """Return a strategy of what a property of the machine lists when the rule is drawn."""
    return st.runner().flatmap(lambda machine: st.sampled_from(getattr(machine, names)))


def _of_range(name: str) -> st.SearchStrategy[int]:
    return st.runner().flatmap(lambda machine: st.integers(*getattr(machine.clusters, name)))


class ClusterMachine(RuleBasedStateMachine):
    """A cluster that Hypothesis drives; at the end it is healed, and must then reach its goals.

    Attributes
    ----------
    make : Make
        Returns a protocol or nodes, as in :class:`emuml.testing.Subject`; a ``staticmethod`` of the subclass.
    describe : Describe, optional
        The oracles, a ``staticmethod``, too; by default those that come with the protocol.
    clusters : Clusters
    faults : Budget
    run : Stepped
        The emulated run.

    Examples
    --------
    >>> import emuml.testing as et
    >>> from emuml.protocols.async_updates import SSP, AsyncUpdates
    >>> class Updates(et.ClusterMachine):
    ...     make = staticmethod(lambda: AsyncUpdates(barrier=SSP(1)))
    ...     clusters = et.clusters(workers=(2, 3), rounds=(1, 2))
    >>> TestUpdates = Updates.TestCase
    """

    make: ClassVar[Any]
    describe: ClassVar[Any] = None
    clusters: ClassVar[Clusters] = DEFAULT_CLUSTERS
    faults: ClassVar[Budget] = DEFAULT_BUDGET

    run: Stepped

    @initialize(
        workers=_of_range("workers"), servers=_of_range("servers"), rounds=_of_range("rounds"), seed=st.integers(0, 3)
    )
    def begin(self, workers: int, servers: int, rounds: int, seed: int) -> None:
        """Begin the first lives of all nodes."""
        self.scenario = Scenario(workers=workers, servers=servers, rounds=rounds, seed=seed)
        self.subject = Subject(self._given("make"))
        self._built: Built = self.subject.build(self.scenario)
        self._judge = Judge(described(self._given("describe") or shipped(self._built.protocol)))
        self._late: dict[Link, int] = {}
        self._first, self._pick, self._healed_s = ("", ""), 0, FOREVER_S
        self._crashes: list[CrashFault] = []
        picks = Picks(self.scenario, self._choose, FOREVER_S)
        built = self._built
        self.run = Stepped(built.nodes, self.scenario.cluster(), built.roster, None, built.unit_cost, choose=picks)
        nodes = Nodes(self.run.machines, self.run.trace)
        self.run.after_step = watch(self.run, self._judge, nodes, lambda now: now >= self._healed_s)
        self.run.begin()

    def _given(self, name: str) -> Any:
        """Return a function of the class that is no method."""
        given = getattr(self, name, None)
        if (isinstance(given, MethodType) and given.__self__ is self) or (given is None and name == "make"):
            raise UserError(f"got {given!r}", f"{type(self).__name__}.{name}", f"{name} = staticmethod(...)")
        return given

    def _choose(self, name: str, n: int) -> int:
        """Answer for the emulator: messages are late and ties are ordered as rules said; all else is as by default."""
        kind, _, rest = name.partition("/")
        if kind == "message":
            sender, to, _ = rest.split("/", 2)
            return min(self._late.pop((sender, to), 0), n - 1)
        if kind == "tie":
            wanted = "/".join(("message", *self._first, ""))
            heads = [i for i, head in enumerate(rest.split("|")) if head.startswith(wanted)]
            return heads[0] if heads else min(self._pick, n - 1)
        return 0

    @property
    def links(self) -> list[Link]:
        """Links that messages are on the way on."""
        return self.run.links()

    @property
    def all_links(self) -> list[Link]:
        """All links."""
        of = self.run.directory.neighbours
        return [(str(id), str(peer)) for id in self.run.machines for peer in of(id)]

    @property
    def down(self) -> list[str]:
        """Nodes that crashed."""
        return [machine.name for machine in self.run.machines.values() if machine.life is None]

    @property
    def may_crash(self) -> list[str]:
        """Living nodes whose crash is within the budget."""
        survives, ids = self.subject.survives(self._built.protocol), list(self.run.machines)
        names = [name for name in self.faults.may_crash(ids, survives) if name not in self.down]
        return [
            name for name in names if not self.faults.applied([*self._crashes, self._crash(name)], ids, survives)[1]
        ]

    def _crash(self, node: str) -> CrashFault:
        return CrashFault(node=node, at_s=self.run.now, restart_after_s=self.faults.restart_within_s)

    @rule(first=st.integers(0, 3))
    def advance(self, first: int) -> None:
        """Process the next event, if there is one; of several at one instant the one of this number."""
        self._pick = first
        self.run.advance()
        self._pick = 0

    @precondition(lambda self: not self.run.over)
    @rule(tenths=st.integers(1, 50))
    def advance_by(self, tenths: int) -> None:
        """Process all events of so many tenths of a second."""
        self.run.advance_by(tenths / 10)

    @precondition(lambda self: not self.run.over and self.links)
    @rule(link=_of_machine("links"))
    def deliver(self, link: Link) -> None:
        """Advance until the first message on a link has arrived."""
        self._first = link
        self.run.deliver(link)
        self._first = ("", "")

    @precondition(lambda self: not self.run.over and self.all_links)
    @rule(link=_of_machine("all_links"), latencies=st.integers(1, LEVELS - 1))
    def late(self, link: Link, latencies: int) -> None:
        """Let the next message on a link come so many latencies late."""
        self._late[link] = latencies

    @precondition(lambda self: not self.run.over and self.may_crash)
    @rule(node=_of_machine("may_crash"))
    def crash(self, node: str) -> None:
        """Let a node crash now; what it was saving is lost."""
        self._crashes.append(self._crash(node))
        self.run.crash(node)

    @precondition(lambda self: not self.run.over and self.down)
    @rule(node=_of_machine("down"))
    def restart(self, node: str) -> None:
        """Begin the next life of a node that crashed."""
        at = max(i for i, fault in enumerate(self._crashes) if fault.node == node)
        after_s = max(0.1, self.run.now - self._crashes[at].at_s)
        self._crashes[at] = self._crashes[at].model_copy(update={"restart_after_s": after_s})
        self.run.restart(node)

    def check_invariants(self, *arguments: Any, **options: Any) -> None:
        """Check invariants of authors; then raise what an oracle objects to, drawn."""
        super().check_invariants(*arguments, **options)
        if hasattr(self, "run"):
            self._oracles_hold()

    def _oracles_hold(self) -> None:
        violation = self._judge.violation
        if violation is not None:
            raise AssertionError(drawn(Trial(self.scenario, self.run.result, violation)))

    def teardown(self) -> None:
        """Heal the cluster, let it go on, and judge how it ends, unless the example failed or was given up."""
        if not hasattr(self, "run") or sys.exc_info()[0] is not None:
            return
        self._late.clear()
        for node in self.down:
            self.run.restart(node)
        self._healed_s = self._judge.calm_s = self.run.now
        run = self.run.finish(self._judge.description.within_s)
        finished = Finished(self.scenario, self._built.protocol, self._built.problem, run)
        self._judge.at_end(finished, waiting(self.run))
        self._oracles_hold()

"""Steps are shown when their effects were executed, also those that happen within the effects of another one."""

from functools import partial

from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import Crash, FaultPlan
from emuml.node import NodeId
from emuml.roster import Roster
from emuml.testing.watched import Watched
from tests.des.scripted import Note, Scripted, on


def watched(faults=(), after_step=None):
    def count(ctx, name="0"):
        ctx.log(round=int(name))
        ctx.send(NodeId("worker", 0), Note(name))
        ctx.set_timer(f"{int(name) + 1}", 1.0)

    scripts = {"server-0": on(start=lambda ctx, saved: count(ctx), timer=count), "worker-0": None}
    nodes = {NodeId.parse(name): (name[:6], partial(Scripted, script, [])) for name, script in scripts.items()}
    emulator = Watched(nodes, Cluster(workers=1), Roster(tuple(sorted(nodes)), 0), FaultPlan(tuple(faults)))
    shown = []

    def note(id, effects):
        shown.append((str(id), [type(effect).__name__ for effect in effects], len(emulator.trace)))
        return after_step(shown) if after_step else None

    emulator.after_step = note
    return emulator.run(5.5), shown


def test_every_step_is_shown_with_its_effects():
    run, shown = watched()

    assert len(shown) == run.events
    assert shown[0][:2] == ("server-0", ["Log", "Send", "SetTimer"])


def test_a_step_within_the_effects_of_another_is_shown_when_that_one_is_through():
    run, shown = watched([Crash("worker-0", after=("round", 1), restart_after=("round", 2))])

    (born,) = [i for i, row in enumerate(run.trace.rows) if row[1:4] == ("worker-0", "start", 2)]
    told = next(i for i, (id, _, rows) in enumerate(shown) if id == "worker-0" and rows > born)
    timer = next(i for i in range(born, len(run.trace.rows)) if run.trace.rows[i][1:3] == ("server-0", "set_timer"))
    assert shown[told][2] > timer


def test_a_reason_ends_the_run():
    run, shown = watched(after_step=lambda shown: "enough" if len(shown) == 4 else None)

    assert (run.stopped, len(shown)) == ("enough", 4)

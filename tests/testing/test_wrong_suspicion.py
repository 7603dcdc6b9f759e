"""Nodes that live are taken for dead in explored runs; what stands crashes but not that is found and made small."""

import pytest

import emuml.testing as et
from emuml.errors import UserError
from emuml.node import PeerState
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding
from emuml.testing.shrink import without
from tests.testing.keeper import KEEPER, Client, Keep, Keeper, durable

LIVING = et.faults(crash=0, cut=2, pause=2, slow=1)


class Deaf(Client):
    """Says again what may be lost to a keeper that restarted, but not to one that was only thought dead."""

    def on_peer(self, ctx, peer, state):
        if state is PeerState.RESTARTED:
            ctx.send(KEEPER, Keep(self.kept + 1))


def deaf():
    return {"client-0": ("client", Deaf), "keeper-0": ("keeper", Keeper)}


def described(run):
    durable(run)
    run.eventually("done", within_s=30)


@pytest.mark.slow
def test_a_node_that_counts_on_suspicion_being_right_is_found_and_shrunk_to_one_fault():
    assert et.explore(deaf, described, runs=150, faults=et.faults(cut=0, pause=0, keep={"client"})).ok
    for seed in range(3):
        failure = et.explore(deaf, described, runs=300, seed=seed, faults=et.faults(crash=0)).failure
        (fault,) = failure.scenario.faults
        assert failure.scenario.deviations == ()
        assert fault.kind in ("cut", "pause")
        assert fault.lasts_s <= 2.0
        assert failure.trial.signature.kind in ("Deadlock", "eventually")


def test_a_cut_shrinks_to_fewer_nodes_and_to_both_ways_and_without_those_who_are_gone():
    cut = et.CutFault(between=(("worker-0", "worker-2"), ("worker-1", "server-0")), at_s=1.0, for_s=2.0, one_way=True)
    scenario = et.Scenario(workers=3, faults=(cut,))

    (left,) = without(scenario, "worker", 1, 1).faults
    assert left.between == (("worker-0", "worker-1"), ("server-0",))
    assert without(scenario.model_copy(update={"faults": (et.PauseFault(node="worker-1", at_s=1.0, for_s=1.0),)}),
                   "worker", 1, 1).faults == ()  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", [GradientCoding(code=FractionalRepetition(2)), AsyncUpdates(barrier=SSP(1))], ids=["coded", "ssp"]
)
def test_living_nodes_are_taken_for_dead_in_explored_runs_of_our_own_protocols(protocol):
    downs = 0

    def described(run):
        et.shipped(protocol)(run)
        run.at_end(noted, "counted")

    def noted(finished):
        nonlocal downs
        rows = finished.run.trace.rows
        downs += any(row[2] == "peer" and row[4] == "down" for row in rows)
        return not any(row[2] == "crash" for row in rows)

    found = et.explore(lambda: protocol, described, runs=150, clusters=et.clusters(workers=(2, 4)), faults=LIVING)
    assert found.failure is None, found.failure.trial.report()
    assert downs > 20


def test_over_tcp_what_the_runtime_cannot_execute_is_refused_by_name():
    protocol = GradientCoding()
    for fault, name in (
        (et.CutFault(between=(("worker-0",), ()), at_s=0.5, for_s=1.0), "partition"),
        (et.PauseFault(node="worker-0", at_s=0.5, for_s=1.0), "hang"),
        (et.SlowFault(node="worker-0", at_s=0.5, for_s=1.0), "slow-node"),
    ):
        with pytest.raises(
            UserError, match=rf"faults\[0\].kind: engine tcp cannot execute {name}; allowed: crash, start"
        ):
            et.run(lambda: protocol, et.Scenario(faults=(fault,)), engine="tcp")

"""A cluster as a stateful test: planted bugs are found and printed as programs; right protocols pass."""

import re

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test

import emuml.testing as et
from emuml.protocols.async_updates import SSP, AsyncUpdates
from tests.testing.keeper import Client, Deaf, Hasty, durable, nodes

BRIEF = settings(
    max_examples=150, stateful_step_count=15, phases=[Phase.generate, Phase.shrink], database=None,
    deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
)  # fmt: skip


def machine(keeper=None, client=Client, describe=durable):
    class Cluster(et.ClusterMachine):
        make = staticmethod(nodes(*([keeper] if keeper else []), client=client))
        faults = et.faults(crash=1, keep={"client"})

    Cluster.describe = staticmethod(describe)
    return Cluster


def failing(cluster, options=BRIEF):
    with pytest.raises((AssertionError, et.OracleError)) as failed:
        run_state_machine_as_test(cluster, settings=options)
    notes = getattr(failed.value, "__notes__", [])
    return str(failed.value), "\n".join(notes)


@pytest.mark.slow
def test_a_right_protocol_passes():
    run_state_machine_as_test(machine(), settings=settings(BRIEF, max_examples=30))


@pytest.mark.slow
def test_a_planted_bug_is_found_and_printed_as_a_program():
    text, program = failing(machine(Hasty))

    assert "always: what was acknowledged is there" in text
    assert "state.crash(node='keeper-0')" in program
    # Of at most 15 steps. Shrinking ends at a local minimum of 4 to 8, which depends on the modules that are loaded:
    # Hypothesis tries the constants in them.
    assert len(re.findall(r"state\.(?!begin|teardown)", program)) <= 8

    pasted = {"Cluster": machine(Hasty)}
    exec(program[program.index("state = ") : program.index("state.teardown")], pasted)
    with pytest.raises(AssertionError, match="what was acknowledged is there"):
        pasted["state"].teardown()


@pytest.mark.slow
def test_who_waits_for_ever_is_found_when_the_cluster_has_healed():
    text, program = failing(machine(client=Deaf))

    assert "eventually: done was not reached: client-0 waits for number" in text
    assert program.count("state.crash(node='keeper-0')") == 1


@pytest.mark.slow
def test_a_bug_of_order_needs_no_crash():
    class Cluster(et.ClusterMachine):
        make = staticmethod(lambda: AsyncUpdates(barrier=SSP(2)))
        clusters = et.clusters(workers=(2, 3), rounds=(1, 2))
        faults = et.faults(crash=0)

        @staticmethod
        def describe(run):
            run.always(lambda nodes: ordered(nodes["server"].completed), "the first worker leads", of="server")

    def ordered(completed):
        return completed[0] >= completed[1]

    text, program = failing(Cluster)
    assert "always: the first worker leads" in text
    assert "crash" not in program
    assert "state.begin(workers=2, servers=1, rounds=1, seed=0)" in program


@pytest.mark.slow
def test_oracles_that_raise_are_errors_of_the_test():
    text, _ = failing(machine(describe=lambda run: run.always(lambda nodes: 1 // 0, "divides")))
    assert "the oracle 'divides' raised ZeroDivisionError" in text


def test_rules_of_authors_are_added_by_subclassing():
    seen = []

    class Asking(machine()):
        @rule()
        def ask(self):
            seen.append(self.run.now)

    run_state_machine_as_test(Asking, settings=settings(BRIEF, max_examples=5))
    assert seen


def stepped(**options):
    cluster = machine()()
    cluster.begin(workers=2, servers=1, rounds=2, seed=0)
    return cluster


def test_a_run_advances_by_events_by_time_and_by_messages():
    cluster = stepped()
    run = cluster.run
    assert (run.now, cluster.links) == (0.0, [("client-0", "keeper-0")])

    cluster.deliver(("client-0", "keeper-0"))
    assert run.now == pytest.approx(0.3)
    assert [row[2] for row in run.trace.rows][-2:] == ["receive", "save"]
    assert cluster.links == []

    cluster.advance(first=0)  # the save is done, and acknowledged
    cluster.late(("keeper-0", "client-0"), latencies=5)  # what is on its way is late no more
    cluster.deliver(("keeper-0", "client-0"))
    assert run.now == pytest.approx(0.9)
    cluster.advance_by(tenths=1)
    assert run.now == pytest.approx(1.0)


def test_the_next_message_of_a_link_is_late_and_none_after_it():
    cluster = stepped()
    cluster.late(("keeper-0", "client-0"), latencies=2)
    arrivals = []
    for _ in range(2):
        while ("keeper-0", "client-0") not in cluster.links:
            cluster.advance(first=0)
        cluster.deliver(("keeper-0", "client-0"))
        arrivals.append(cluster.run.now)
    assert arrivals == pytest.approx([0.3 + 0.3 + 0.9, 1.5 + 0.3 + 0.3 + 0.3])


def test_crashes_stay_within_the_budget_and_nodes_restart():
    cluster = stepped()
    assert (cluster.may_crash, cluster.down) == (["keeper-0"], [])
    cluster.deliver(("client-0", "keeper-0"))
    cluster.crash("keeper-0")
    assert (cluster.may_crash, cluster.down) == ([], ["keeper-0"])
    cluster.restart("keeper-0")
    assert cluster.down == []
    assert cluster.run.machine("keeper-0").incarnation == 2
    assert cluster.may_crash == []  # one crash for each run
    cluster.teardown()
    assert cluster.run.result.stopped == "done"


def test_of_messages_of_one_instant_the_delivered_one_is_first():
    class Updates(et.ClusterMachine):
        make = staticmethod(lambda: AsyncUpdates(barrier=SSP(1)))

    cluster = Updates()
    cluster.begin(workers=2, servers=1, rounds=1, seed=0)
    cluster.deliver(("worker-1", "server-0"))
    assert [row[3] for row in cluster.run.trace.rows if row[2] == "receive"] == ["worker-1"]

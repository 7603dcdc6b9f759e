"""Every argument that cannot be meant is one error of its own, before anything runs."""

from functools import partial

import pytest

import emuml.testing as et
from emuml.errors import ContractError, UserError
from emuml.protocols.async_updates import AsyncUpdates
from tests.testing.keeper import Keeper, durable, nodes


def nothing_runs(*_):
    raise AssertionError("something ran")


explore = partial(et.explore, nothing_runs, durable)
check = partial(et.check, nothing_runs)

NO_CAMPAIGN = [
    ({"runs": 0}, "runs: got 0; .*>= 1"),
    ({"runs": "many"}, "runs: got 'many'; allowed: an integer"),
    ({"seed": -1}, "seed: got -1"),
    ({"explorer": "swam"}, "explorer: got 'swam'; .* did you mean 'swarm'"),
    ({"explorer": None}, "explorer: got None"),
    ({"clusters": (2, 3)}, r"clusters: got \(2, 3\); .*et.clusters"),
    ({"faults": 2}, "faults: got 2; .*et.faults"),
    ({"workload": 3}, "workload: got 3; allowed: a function of the scenario"),
]


@pytest.mark.parametrize(("options", "why"), NO_CAMPAIGN)
def test_a_campaign_is_refused_when_it_is_written(options, why):
    for begins in (explore, check):
        with pytest.raises(UserError, match=why):
            begins(**options)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (3, "make: got 3; allowed: a function that returns a protocol"),
        (AsyncUpdates(), r"make: got AsyncUpdates.*; pass lambda: AsyncUpdates\(...\)"),
        (lambda one, two: None, "make: it takes one, two"),
    ],
)
def test_what_makes_no_subject_is_refused(make, why):
    for begins in (partial(et.explore, make, durable), partial(et.check, make), partial(et.run, make, et.Scenario())):
        with pytest.raises(UserError, match=why):
            begins()


def test_a_test_in_the_place_of_what_is_tested_is_refused():
    def test_mine(run):
        run.eventually("done")

    with pytest.raises(UserError, match=r"et.check: got the test test_mine; .*@et.check\(lambda"):
        et.check(test_mine)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (None, "nodes: got None; allowed: a protocol, or a mapping"),
        ({}, "nodes: got {}"),
        ([1], r"nodes: got \[1\]"),
        ({"keeper": ("keeper", Keeper)}, "nodes: 'keeper' is no node id; .*worker-3"),
        ({"keeper-0": Keeper}, "nodes\\['keeper-0'\\]: got .*; allowed: a mapping of id"),
        ({"keeper-0": ("client", Keeper)}, "nodes\\['keeper-0'\\]: got the role 'client'; allowed: 'keeper'"),
    ],
)
def test_what_are_no_nodes_is_refused(made, why):
    with pytest.raises(UserError, match=why):
        et.explore(lambda: made, durable, runs=1)
    if made is not None:
        with pytest.raises(UserError, match=why):
            et.run_nodes(made)


def test_a_factory_of_no_node_is_named():
    with pytest.raises(ContractError, match=r"a factory returned {}, which is no Node"):
        et.explore(lambda: {"keeper-0": ("keeper", dict)}, lambda run: None, runs=1)


@pytest.mark.parametrize(
    ("describe", "why"),
    [
        (None, "got None; allowed: a function of one argument"),
        (lambda: None, "it takes nothing; allowed: one argument, the run"),
        (lambda run, staleness: None, r"it takes run, staleness; .*et.explore\(...\) in a test"),
        (lambda self, run: None, "in a class leave self out, and write @staticmethod"),
    ],
)
def test_what_describes_no_run_is_refused(describe, why):
    with pytest.raises(UserError, match=why):
        et.explore(nothing_runs, describe)
    with pytest.raises(UserError, match=why):
        check()(describe)


@pytest.mark.parametrize(
    ("describe", "why"),
    [
        (lambda run: run.always(True, "true"), "the oracle 'true': got True; allowed: a function"),
        (lambda run: run.never_sent(None, "none"), "the oracle 'none': got None"),
        (lambda run: run.reference(1), "the oracle 'reference': got 1"),
        (lambda run: run.always(bool, 3), "oracle: got the name 3; allowed: a few words"),
        (lambda run: [run.always(bool, "x"), run.always(len, "x")], "the oracle 'x': there is one of this name"),
        (lambda run: [run.eventually(bool), run.eventually(len)], "the oracle 'a goal': there is one of this name"),
        (lambda run: run.eventually("done", within_s=-1), "eventually.within_s: got -1"),
        (lambda run: run.eventually(3), "eventually: got 3"),
        (lambda run: run.always(bool, "x", of="keper"), "the oracle 'x': nobody has the role 'keper'; .*'keeper'"),
    ],
)
def test_an_oracle_that_would_never_judge_is_refused(describe, why):
    with pytest.raises(UserError, match=why):
        et.explore(nodes(), describe, runs=1)
    with pytest.raises(UserError, match=why):
        et.run(nodes(), et.Scenario(), describe)


def test_being_done_may_be_asked_for_twice():
    assert et.run(nodes(), et.Scenario(), lambda run: [run.eventually("done"), run.eventually("done", 90.0)]).ok


@pytest.mark.parametrize(
    ("keep", "why"),
    [
        ({"serve"}, "faults.keep: nobody is called 'serve'; allowed: server, worker; did you mean 'server'"),
        ({et.quorum(1, of="wrker")}, "nobody is called 'wrker'; .* did you mean 'worker'"),
        ([3], r"faults.keep: got \[3\]; allowed: a set of roles"),
        (3, "faults.keep: got 3; allowed: a set of roles"),
    ],
)
def test_rules_about_nobody_let_nobody_crash(keep, why):
    with pytest.raises(UserError, match=why):
        et.explore(AsyncUpdates, lambda run: None, runs=1, faults=et.faults(keep=keep))


@pytest.mark.parametrize(
    ("ranges", "why"),
    [
        ({"workers": 3}, "Clusters.workers: got 3"),
        ({"workers": (1, 2, 3)}, "Clusters.workers: got 3 items; allowed: 2 items"),
        ({"rounds": (1.5, 2)}, r"Clusters.rounds\[0\]: got 1.5; allowed: an integer"),
        ({"seeds": 0}, "Clusters.seeds: got 0"),
    ],
)
def test_ranges_are_pairs_of_whole_numbers(ranges, why):
    with pytest.raises(UserError, match=why):
        et.clusters(**ranges)


@pytest.mark.parametrize("scenario", [5, None, {"format": 1}])
def test_what_is_no_scenario_is_refused(scenario):
    with pytest.raises(UserError, match=r"scenario: got .*; allowed: an et.Scenario, the path of a file, or JSON"):
        et.run(nodes(), scenario, durable)


def test_engines_and_nodes_of_faults_are_known_by_name():
    with pytest.raises(UserError, match="engine: got 'simpy'; allowed: 'des' or 'tcp'"):
        et.run(nodes(), et.Scenario(), durable, engine="simpy")
    with pytest.raises(UserError, match="engine: got 'simpy'"):
        et.run_nodes(nodes()(), engine="simpy")
    crash = et.Scenario(faults=(et.CrashFault(node="keper-0", at_s=1.0),))
    with pytest.raises(UserError, match=r"scenario.faults: there is no keper-0; .* did you mean 'keeper-0'"):
        et.run(nodes(), crash, durable)


def test_a_predicate_that_names_nobody_is_told_who_there_is():
    with pytest.raises(et.OracleError, match=r"nobody is called 'keper', but .*keeper-0"):
        et.run(nodes(), et.Scenario(), lambda run: run.always(lambda nodes: nodes["keper"].number, "x"))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"workers": (5, 2)}, r"clusters.workers: got \(5, 2\)"),
        ({"crash": -1}, "scenarios.crash: got -1"),
        ({"roles": "worker"}, r"scenarios.roles: got 'worker'; allowed: a tuple of names"),
        ({"messages": "Push"}, "scenarios.messages: got 'Push'"),
        ({"horizon_s": -1.0}, "scenarios.horizon_s: got -1.0"),
    ],
)
def test_a_strategy_is_refused_when_it_is_written(arguments, why):
    with pytest.raises(UserError, match=why):
        et.scenarios(**arguments)


def test_a_machine_says_how_its_functions_are_written():
    class Nothing(et.ClusterMachine):
        pass

    class Method(et.ClusterMachine):
        def make(self):
            return nodes()()

    for machine in (Nothing, Method):
        with pytest.raises(UserError, match=rf"{machine.__name__}.make: .*; allowed: make = staticmethod\(...\)"):
            machine().begin(workers=2, servers=1, rounds=1, seed=0)

"""One experiment on the event tier and on an array tier, and what must be equal of both."""

from emuml.des.array_tier import Unordered
from emuml.des.emulator import Emulator
from emuml.des.pushes import PushTier
from emuml.des.rounds import RoundTier
from emuml.roster import Roster
from emuml.stopping import Rounds


def event_tier(protocol, problem, cluster, stop, seed=0, **options):
    roster = Roster.of_counts(seed, stop, server=cluster.servers, worker=cluster.workers)
    unit = problem.full_cost / cluster.workers
    return Emulator(protocol.nodes(problem, roster), cluster, roster, unit_cost=unit, **options).run()


def round_tier(protocol, problem, cluster, stop, seed=0, **options):
    roster = Roster.of_counts(seed, stop, server=cluster.servers, worker=cluster.workers)
    unit = problem.full_cost / cluster.workers
    return RoundTier(protocol.in_rounds(problem, roster), cluster, roster, unit, **options).run()


def push_tier(protocol, problem, cluster, stop, seed=0, **options):
    roster = Roster.of_counts(seed, stop, server=cluster.servers, worker=cluster.workers)
    unit = problem.full_cost / cluster.workers
    return PushTier(protocol.in_pushes(problem, roster), cluster, roster, unit, **options).run()


def record(run):
    """Return all that tiers must agree on, floats as they are: they must be equal bit for bit."""
    return {
        "stopped": run.stopped,
        "error": None if run.error is None else type(run.error).__name__,
        "duration_s": run.duration_s.hex(),
        "published": [(item.time_s.hex(), item.version, item.parameters.tobytes()) for item in run.published],
        "logs": [(item.time_s.hex(), str(item.node), repr(dict(item.metrics))) for item in run.logs],
    }


def check_equal(protocol, problem, cluster, rounds, seed=0, stop=None):
    """Assert that the tiers agree; return whether the array tier knew the order of all that mattered."""
    stop = stop or Rounds(rounds)
    expected = record(event_tier(protocol, problem(), cluster, stop, seed))
    try:
        found = record(round_tier(protocol, problem(), cluster, stop, seed))
    except Unordered:
        return False
    assert found == expected
    return True

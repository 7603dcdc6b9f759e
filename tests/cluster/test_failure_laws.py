"""Laws of failures: distributions of the draws, renewal theory, draws by position, recordings, and real failures."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from emuml.cluster import timeline
from emuml.cluster.failure_laws import ExponentialFailures, GroupFailures, WeibullFailures
from emuml.cluster.faults import Crash, FaultPlan, Start
from emuml.cluster.recorded_failures import RecordedFailures
from emuml.cluster.spells import ExponentialRepair, FixedRepair, LognormalRepair
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.roster import Roster
from emuml.streams import stream_key
from tests.datafiles import data_file


def workers(count):
    return [NodeId("server", 0), *(NodeId("worker", index) for index in range(count))]


UPS = [ExponentialFailures(5.0, 1e3), WeibullFailures(0.7, 5.0, 1e3), WeibullFailures(2.0, 5.0, 1e3)]
REPAIRS = [ExponentialRepair(3.0), LognormalRepair(2.0, 1.15)]


# Distributions


@pytest.mark.parametrize("law", [*UPS, *REPAIRS], ids=lambda law: type(law).__name__)
def test_draws_follow_the_distribution_that_the_law_says(law):
    """20,000 draws of one seed; Kolmogorov and Smirnov's level is 1 in 1,000."""
    key = stream_key(11, "", "test")
    draw = law.up_s if hasattr(law, "up_s") else law.draw_s
    drawn = np.array([draw(key, position) for position in range(20_000)])

    assert stats.kstest(drawn, np.vectorize(law.cdf)).pvalue > 1e-3
    assert drawn.mean() == pytest.approx(law.mean(), abs=4 * drawn.std() / math.sqrt(drawn.size))


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (UPS[0], stats.expon(scale=5.0)),
        (UPS[1], stats.weibull_min(0.7, scale=5.0)),
        (REPAIRS[0], stats.expon(scale=3.0)),
        (REPAIRS[1], stats.lognorm(1.15, scale=2.0)),
    ],
    ids=["exponential", "weibull", "exponential repair", "lognormal repair"],
)
def test_distribution_and_mean_are_those_of_the_textbook(law, same):
    times = [-1.0, 0.0, 0.01, 1.0, 7.0, 100.0]
    assert [law.cdf(t) for t in times] == pytest.approx(list(same.cdf(times)), rel=1e-12)
    assert law.mean() == pytest.approx(same.mean(), rel=1e-12)


# Renewals


def test_without_repair_every_node_fails_once_with_the_probability_of_the_law():
    law = WeibullFailures(0.6, 40.0, until_s=25.0)
    crashed = len(law.plan(workers(4_000), seed=3).faults)
    chance = law.cdf(25.0)

    assert law.expected(4_000) == 4_000 * chance
    assert crashed == pytest.approx(4_000 * chance, abs=4 * math.sqrt(4_000 * chance * (1 - chance)))


def test_failures_without_memory_and_repair_at_once_are_a_poisson_process():
    law = ExponentialFailures(4.0, until_s=50.0, repair=FixedRepair(0.0))
    assert law.expected(1) == pytest.approx(50.0 / 4.0, rel=1e-5)


def test_alternating_exponential_spells_have_their_closed_form():
    """With rates a of failure and b of repair: a b t / (a + b) + a**2 (1 - exp(-(a + b) t)) / (a + b)**2."""
    a, b, t = 1 / 4, 1 / 1.5, 30.0
    law = ExponentialFailures(1 / a, until_s=t, repair=ExponentialRepair(1 / b))
    exact = a * b * t / (a + b) + a**2 * -math.expm1(-(a + b) * t) / (a + b) ** 2

    assert law.expected(1) == pytest.approx(exact, rel=1e-4)


def test_a_fixed_repair_gives_a_sum_of_erlang_probabilities():
    law = ExponentialFailures(4.0, until_s=30.0, repair=FixedRepair(2.5))
    exact = sum(stats.gamma(k, scale=4.0).cdf(30.0 - 2.5 * (k - 1)) for k in range(1, 14))

    assert law.expected(1, steps=4000) == pytest.approx(exact, rel=2e-3)


def test_renewals_of_a_weibull_law_tend_to_the_elementary_theorem():
    """M(t) tends to t / mean + (variance - mean**2) / (2 mean**2)."""
    law = WeibullFailures(0.7, 2.0, until_s=400.0, repair=FixedRepair(0.0))
    same = stats.weibull_min(0.7, scale=2.0)
    limit = 400.0 / same.mean() + (same.var() - same.mean() ** 2) / (2 * same.mean() ** 2)

    assert law.expected(1, steps=4000) == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("repair", [*REPAIRS, FixedRepair(1.0)], ids=lambda repair: type(repair).__name__)
def test_the_number_of_failures_drawn_is_the_expected_one(repair):
    """Within four standard errors over 600 nodes."""
    law = WeibullFailures(0.7, 5.0, until_s=40.0, repair=repair)
    plan = law.plan(workers(600), seed=5)
    counts = np.bincount([fault.target.index for fault in plan.faults], minlength=600)

    assert counts.sum() == pytest.approx(law.expected(600), abs=4 * counts.std() * math.sqrt(600))


# Plans


@pytest.mark.parametrize(
    "law", [*UPS, GroupFailures(4, 20.0, 1e3, within_s=2.0, share=0.6)], ids=lambda law: type(law).__name__
)
def test_failures_of_a_node_stay_where_they_are_when_others_are_added(law):
    few, many = (law.plan(workers(count), seed=7).faults for count in (6, 30))

    assert [fault for fault in many if fault.target.index < 6] == list(few)
    assert few != law.plan(workers(6), seed=8).faults


laws = st.one_of(
    st.builds(
        WeibullFailures, st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0.5, 3.0]), st.just(20.0),
        st.none() | st.sampled_from([*REPAIRS, FixedRepair(0.0)]),
    ),
    st.builds(
        GroupFailures, st.integers(1, 5), st.sampled_from([1.0, 9.0]), st.just(20.0), st.sampled_from([0.0, 3.0]),
        st.sampled_from([0.5, 1.0]), st.none() | st.sampled_from([*REPAIRS, FixedRepair(0.0)]),
    ),
)  # fmt: skip


@given(laws, st.integers(0, 3), laws)
def test_what_is_drawn_can_come_to_pass_also_together(law, seed, other):
    ids = workers(6)
    plan = FaultPlan.drawn(law, ids, 15.0, seed)
    both = plan + other.plan(ids, seed)

    for each in (plan, both):
        assert each.checked_for(ids, (Crash,), "tcp") is each
    assert all(0 <= fault.at_s < 15.0 for fault in plan.faults)
    assert timeline.possible(plan.faults) == plan.faults
    assert {fault.target.role for fault in plan.faults} <= {"worker"}


def test_groups_crash_within_their_window_and_racks_by_themselves():
    law = GroupFailures(size=5, mean_s=100.0, until_s=2e4, within_s=3.0, repair=FixedRepair(1.0))
    faults = law.plan(workers(10), seed=1).faults
    of_first = sorted(fault.at_s for fault in faults if fault.target.index < 5)
    events = 1 + sum(later - sooner > 3.0 for sooner, later in pairwise(of_first))

    assert len(of_first) > 4 * events
    assert len(faults) == pytest.approx(law.expected(10), rel=4 / math.sqrt(2 * 200))
    together = GroupFailures(size=5, mean_s=100.0, until_s=2e4, repair=FixedRepair(1.0)).plan(workers(5), seed=1)
    assert len({fault.at_s for fault in together.faults}) == len(together.faults) / 5


def test_a_plan_is_drawn_for_a_roster_and_for_one_role():
    roster = Roster.of_counts(0, None, server=2, worker=3)
    law = ExponentialFailures(1e-3, until_s=1.0, role="server")
    assert {fault.node for fault in FaultPlan.drawn(law, roster, 1.0).faults} == {"server-0", "server-1"}


def test_laws_that_would_never_end_planning_are_refused():
    law = ExponentialFailures(1e-6, until_s=1e3, repair=FixedRepair(0.0))
    with pytest.raises(UserError, match=r"about 2e\+09 failures of 2 nodes"):
        law.plan(workers(2), seed=0)


# Recordings

SPELLS = [
    [0, 5.0, 7.0],
    [1, 2.0, 3.0],
    [0, 6.0, 9.0],
    [2, -1.0, 4.0],
    [1, 8.0, math.inf],
    [7, 1.0, 2.0],
    [2, 50.0, 60.0],
]
PLAN = (
    Crash("worker-0", at_s=5.0, restart_after_s=4.0),
    Crash("worker-1", at_s=2.0, restart_after_s=1.0),
    Crash("worker-1", at_s=8.0),
    Start("worker-2", at_s=4.0),
)


def test_recorded_spells_become_a_plan_and_those_that_overlap_are_one():
    assert RecordedFailures(np.array(SPELLS), until_s=20.0).plan(workers(3), seed=0).faults == PLAN


def test_a_window_of_a_recording_is_lived_through_as_fast_as_asked_for():
    law = RecordedFailures(np.array(SPELLS), until_s=4.0, from_s=4.0, speed=2.0)
    assert law.plan(workers(2), seed=0).faults == (
        Crash("worker-0", at_s=0.5, restart_after_s=2.0), Crash("worker-1", at_s=2.0),
    )  # fmt: skip


def test_a_table_in_a_file_is_a_recording(tmp_path):
    path = tmp_path / "down.csv"
    path.write_text("# of a cluster\nnode,down_s,up_s\nworker-0,5,7\n1,2,3\nworker-0,6,9\n2,-1,4\n1,8,\n")
    assert RecordedFailures(path, until_s=20.0).plan(workers(3), seed=0).faults == PLAN


BAD_FILES = {
    "": "begins with 'nothing'",
    "worker,down\n": "begins with 'worker,down'",
    "node,down_s,up_s\n1,2\n": "line 2 is '1,2'",
    "node,down_s,up_s\n1,2,3\nx,2,3\n": "line 3 is 'x,2,3'",
    "node,down_s,up_s\n1,3,2\n": "line 2 is 1, 3, 2",
    "node,down_s,up_s\n1,nan,2\n": "line 2 is 1, nan, 2",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_table_that_cannot_be_meant_is_refused_with_its_line(tmp_path, text):
    path = tmp_path / "down.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=BAD_FILES[text]):
        RecordedFailures(path, until_s=1.0)


@pytest.mark.parametrize("array", [[[1.0, 2.0]], [1.0], "x", [[0.5, 1, 2]], [[-1, 1, 2]], [[1, 2, math.nan]]])
def test_an_array_that_cannot_be_meant_is_refused(array):
    with pytest.raises(UserError, match=r"recorded-failures\.array"):
        RecordedFailures(array, until_s=1.0)


def test_a_node_that_is_never_there_is_refused():
    with pytest.raises(UserError, match="worker-0 is down from the start for ever"):
        RecordedFailures([[0, -1.0, math.inf]], until_s=1.0).plan(workers(1), seed=0)


# Real failures


def test_failures_of_a_large_system_are_replayed_and_its_law_gives_as_many():
    """System 20 of LANL; per node a Weibull shape of 0.485 and a scale of 53.6 days were fitted to the gaps."""
    with np.load(data_file("failures/lanl_1996_2005.npz")) as z:
        mine = z["system"] == 20
        node, start, minutes = (z[name][mine].astype(float) for name in ("node", "start", "down_minutes"))
    start -= start.min() - 1.0
    span_s = start.max()
    spells = np.stack([node, start, start + 60.0 * np.maximum(minutes, 1.0)], axis=1)
    ids = workers(512)
    law = RecordedFailures(spells, until_s=span_s / 1e4 + 1.0, speed=1e4)
    plan = law.plan(ids, seed=0)

    assert plan.checked_for(ids, (Crash,), "tcp") is plan
    assert 0.9 * 2478 < len(plan.faults) <= 2478
    fitted = WeibullFailures(0.485, 53.6 * 86400, until_s=span_s, repair=LognormalRepair(75 * 60.0, 1.13))
    drawn = len(fitted.plan(ids, seed=1).faults)
    assert drawn == pytest.approx(fitted.expected(512), rel=0.08)
    assert 1 / 3 < drawn / 2478 < 3


def test_correlated_failures_of_a_grid_are_replayed_together():
    """94 % of the down spells of Grid'5000 begin within a minute of another node's."""
    import lzma

    with lzma.open(data_file("failures/grid5000_unavailability.npz.xz")) as packed, np.load(packed) as z:
        nodes, start, length = (z[name].astype(float) for name in ("node", "start", "length"))
    window = (start >= 1e6) & (start < 2e6) & (length > 0)
    spells = np.stack([nodes, start, start + length], axis=1)[window]
    ids = workers(int(nodes.max()) + 1)
    plan = RecordedFailures(spells, until_s=1e4, from_s=1e6, speed=100.0).plan(ids, seed=0)
    times = np.sort([fault.at_s for fault in plan.faults if isinstance(fault, Crash)])
    close = np.minimum(np.diff(times, prepend=-1e9), np.diff(times, append=1e9)) <= 60 / 100

    assert plan.checked_for(ids, (Crash, Start), "tcp") is plan
    assert len(times) > 1_000
    assert close.mean() > 0.8


def test_instances_are_removed_in_groups_of_about_two():
    """A trace of AWS p3 spot instances: 167 removals in 79 events."""
    with np.load(data_file("spot/bamboo_spot.npz")) as z:
        times_s, added, node = z["p3_t_ms"] / 1e3, z["p3_add"], z["p3_node"]
    assert np.diff(times_s).min() >= 0
    up, spells = {}, []
    for at_s, is_added, name in zip(times_s, added, node, strict=True):
        if is_added:
            down_s = up.get(int(name))
            if down_s is not None and down_s < at_s:
                spells.append((int(name), down_s, at_s))
            up[int(name)] = None
        else:
            up[int(name)] = at_s
    spells += [(name, at_s, math.inf) for name, at_s in up.items() if at_s is not None]
    ids = workers(int(max(node)) + 1)
    plan = RecordedFailures(np.array(spells, float), until_s=1e6).plan(ids, seed=0)
    moments = {fault.at_s for fault in plan.faults}

    assert plan.checked_for(ids, (Crash,), "tcp") is plan
    assert len(plan.faults) == 167
    assert len(plan.faults) / len(moments) == pytest.approx(167 / 79, rel=0.05)

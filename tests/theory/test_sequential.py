"""Sequential codes: every job in time under the model, its boundary included, and times of both recursions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition
from emuml.protocols.sequential_coding.patterns import Bursts
from emuml.protocols.sequential_coding.plain import Plain
from emuml.theory.sequential import followed, sequential_rounds

JOBS = 12


@st.composite
def codes(draw):
    """Draw a sequential code and a number of workers that it fits."""
    workers, burst = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    stragglers = draw(st.integers(0, workers))
    if draw(st.booleans()):
        return SelectiveRepetition(burst, 1 + burst * draw(st.integers(1, 3)), stragglers).sequence(workers)
    return MultiplexedCoding(burst, burst + draw(st.integers(1, 3)), stragglers).sequence(workers)


def decoded_rounds(code, jobs, pick, tolerates=None):
    """Run a schedule, with stragglers picked for each round; return the round in which each job is decoded."""
    schedule, found = code.schedule(jobs), {}
    while not schedule.is_done:
        round = schedule.round
        assert round <= jobs + code.delay, f"jobs {sorted(set(range(jobs)) - found.keys())} are never decoded"
        asked = np.array([bool(chunks) for chunks in schedule.work()])
        found |= dict.fromkeys(schedule.close(pick(tolerates or schedule.tolerates, asked)), round)
    return [found[job] for job in range(jobs)]


def as_many_as_possible(random, eager):
    """Return what picks stragglers one by one as long as the model stands them: it ends on its boundary."""

    def pick(tolerates, asked):
        late = np.zeros(asked.size, np.bool_)
        for worker in random.permutation(asked.size):
            if asked[worker] and random.random() < eager:
                late[worker] = True
                late[worker] = tolerates(late)
        return late

    return pick


@given(codes(), st.integers(0, 2**32), st.sampled_from([0.2, 0.6, 1.0]))
def test_every_job_is_decoded_in_time_under_the_model_and_at_its_boundary(code, seed, eager):
    found = decoded_rounds(code, JOBS, as_many_as_possible(np.random.default_rng(seed), eager))

    assert all(job <= round <= job + code.delay for job, round in enumerate(found))


@pytest.mark.parametrize(
    "code", [SelectiveRepetition(1, 2, 2), SelectiveRepetition(2, 3, 2), MultiplexedCoding(1, 2, 2)]
)
def test_a_model_that_is_not_kept_loses_a_job(code):
    """What the model forbids is needed: with one straggler more a job is lost."""
    built, extra = code.sequence(4), []

    def pick(tolerates, asked):
        late = np.zeros(4, np.bool_)
        for worker in range(4):
            late[worker] = asked[worker]
            if not tolerates(late):
                extra.append(worker)
                return late
        return late

    with pytest.raises(AssertionError, match="never decoded"):
        decoded_rounds(built, JOBS, pick)
    assert extra


def test_exactly_as_many_stragglers_as_promised_are_tolerated():
    """An off-by-one in the tolerance pays for the load and waits all the same."""
    for stragglers in range(1, 5):
        late = np.arange(6) < stragglers
        assert Bursts(6, 1, 3, stragglers).tolerates(late)
        assert not Bursts(6, 1, 3, stragglers - 1).tolerates(late)
        assert MultiplexedCoding(1, 3, stragglers).sequence(6).schedule(3).tolerates(late)
        assert SelectiveRepetition(1, 2, 2 * stragglers).sequence(6).schedule(3).tolerates(late)
        assert Plain(IgnoreStragglers().build(6, collect=6 - stragglers)).schedule(3).tolerates(late)
        assert not Plain(IgnoreStragglers().build(6, collect=7 - stragglers)).schedule(3).tolerates(late)


def test_bursts_end_and_windows_pass():
    model, late, nobody = Bursts(4, 2, 4, 1), np.arange(4) == 1, np.zeros(4, np.bool_)
    expected = [True, True, False, False, False, True]  # a burst of two; again a window after its last round
    for is_fine in expected:
        assert model.tolerates(late) == is_fine
        model.note(late if is_fine else nobody)


@pytest.mark.parametrize(
    ("code", "load", "delay"),
    [
        (SelectiveRepetition(2, 3, 23), 0.05078125, 2),
        (SelectiveRepetition(1, 2, 27), 0.05859375, 1),
        (MultiplexedCoding(1, 2, 27), 0.00754310, 1),
        (MultiplexedCoding(2, 3, 23), 0.00750000, 3),
        (MultiplexedCoding(1, 3, 32), 0.00577192, 2),
        (MultiplexedCoding(2, 4, 256), 0.00651042, 4),
    ],
)
def test_loads_are_those_of_the_paper(code, load, delay):
    built = code.sequence(256)

    assert built.load / 256 == pytest.approx(load, abs=5e-9)
    assert built.delay == delay


def test_chunks_of_a_job_cover_its_data():
    """Own chunks and each coded group: every partition is somebody's, and with nobody missing the weights add up."""
    for code in (
        MultiplexedCoding(1, 2, 2),
        MultiplexedCoding(2, 3, 1),
        MultiplexedCoding(1, 3, 6),
        MultiplexedCoding(2, 4, 0),
    ):
        built = code.sequence(6)
        total = np.zeros(built.partitions)
        every = {(worker, part): None for worker in range(6) for part in range(built.slots)}
        for (worker, part), weight in built.decode(every).terms:
            owned, factors = built.piece(worker, part)
            total[list(owned)] += weight * np.array(factors or 1.0)
        assert np.array_equal(total, np.ones(built.partitions))


@st.composite
def runs(draw):
    """Draw a code, and delays of which some are ties and many are long."""
    code = draw(st.one_of(codes(), st.builds(plain, st.integers(1, 6), st.integers(0, 5))))
    jobs, seed = draw(st.integers(1, 15)), draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    shape = (jobs + code.delay, code.workers)
    delays = 1 + random.exponential(size=shape) * (random.random(shape) < draw(st.sampled_from([0.02, 0.2, 0.5]))) * 3
    return code, jobs, np.round(delays) if draw(st.booleans()) else delays


def plain(workers, missing):
    return Plain(IgnoreStragglers().build(workers, collect=max(workers - missing, 1)))


@given(runs(), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.25]))
def test_the_compiled_recursion_follows_the_schedule(run, wait, slope_s):
    code, jobs, delays = run
    extra_s = np.array([(chunks * code.chunk_load - 1.0) * slope_s for chunks in range(code.slots + 1)])

    found = sequential_rounds(delays, code, jobs, wait=wait, slope_s=slope_s)
    expected = followed(delays, code, jobs, wait, extra_s)

    for name in ("ended_s", "late", "waited", "decoded"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert np.all(found.decoded - np.arange(jobs) <= code.delay)


@given(runs())
def test_a_round_takes_until_its_deadline_or_until_the_last(run):
    """The published formula: twice the fastest, or the slowest if nobody is late or all are waited for."""
    code, jobs, delays = run
    found = sequential_rounds(delays, code, jobs)

    if not isinstance(code, Plain) and (code.slots > 1 or len(found.ended_s) > jobs):
        return  # rounds in which some have nothing to do
    durations, rows = np.diff(found.ended_s, prepend=0.0), delays[: len(found.ended_s)]
    soft = np.minimum(2 * rows.min(axis=1), rows.max(axis=1))
    assert durations == pytest.approx(np.where(found.waited, rows.max(axis=1), soft), abs=1e-9)


def test_uncoded_waits_for_all_and_a_code_does_not_wait_for_as_many_as_it_tolerates():
    delays = [[1.0, 1.0, 1.0, 9.0], [1.0, 1.0, 9.0, 9.0], [1.0, 1.5, 1.5, 1.5]]

    assert sequential_rounds(delays, Plain(Uncoded().build(4)), 3).ended_s.tolist() == [9.0, 18.0, 19.5]
    assert sequential_rounds(delays, plain(4, 1), 3).ended_s.tolist() == [2.0, 11.0, 12.5]
    assert sequential_rounds(delays, plain(4, 2), 3).ended_s.tolist() == [2.0, 4.0, 5.5]
    groups = Plain(FractionalRepetition(2).build(4))  # the two that are late in round 1 are a group
    assert sequential_rounds(delays, groups, 3).ended_s.tolist() == [2.0, 11.0, 12.5]


def test_load_costs_time_where_there_is_work():
    code = MultiplexedCoding(1, 2, 0).sequence(2)  # two slots of load 1/2: one in the first and in the last round
    found = sequential_rounds(np.ones((3, 2)), code, 2, slope_s=1.0)

    assert found.ended_s.tolist() == [0.5, 1.5, 2.0]


def test_wrong_arguments_are_refused():
    code = SelectiveRepetition(1, 2, 2).sequence(4)
    for delays, options in [
        (np.ones((3, 4)), {}), (np.ones((9, 3)), {}), (-np.ones((9, 4)), {}), (np.full((9, 4), np.nan), {}),
        (np.ones((9, 4)), {"wait": -1.0}), (np.ones((9, 4)), {"base_load": 4.0, "slope_s": 1.0}),
    ]:  # fmt: skip
        with pytest.raises(UserError):
            sequential_rounds(delays, code, 3, **options)
    for wrong, where in [
        (lambda: SelectiveRepetition(2, 4, 1), "window"), (lambda: SelectiveRepetition(2, 2, 1), "window"),
        (lambda: MultiplexedCoding(3, 3, 1), "window"), (lambda: MultiplexedCoding(1, 2, 5).sequence(4), "stragglers"),
        (lambda: SelectiveRepetition(1, 2, 8).sequence(4), "stragglers"),
    ]:  # fmt: skip
        with pytest.raises(UserError, match=where):
            wrong()

"""Sequential coding as a protocol: times of theory, gradients of a plain loop, and workers that come back."""

import numpy as np
import pytest

import emuml
import emuml.testing as et
from emuml.cluster import Cluster, DelayTrace
from emuml.cluster.faults import Crash, FaultPlan
from emuml.des.emulator import Emulator
from emuml.errors import UserError
from emuml.protocols import GradientCoding, SequentialGradientCoding
from emuml.protocols.gradient_coding import (
    Bernoulli,
    FractionalRepetition,
    IgnoreStragglers,
    PartialWork,
    Uncoded,
    VerifiedRepetition,
    YeAbbe,
)
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.theory.sequential import sequential_rounds
from emuml.workloads import GradientDescent, LogisticRegression
from tests.protocols.training import regression

JOBS, WORKERS = 16, 6

CODES = [
    Uncoded(), FractionalRepetition(3), IgnoreStragglers(), SelectiveRepetition(1, 2, 3), SelectiveRepetition(2, 3, 2),
    SelectiveRepetition(1, 3, 6), MultiplexedCoding(1, 2, 2), MultiplexedCoding(2, 3, 1), MultiplexedCoding(1, 3, 6),
    SelectiveRepetition(1, 2, 6), MultiplexedCoding(1, 2, 3), MultiplexedCoding(1, 2, 4),
]  # fmt: skip


def delays(seed=3, chance=0.12):
    """Return seconds of workers of which some straggle in some rounds."""
    random = np.random.default_rng(seed)
    found = 1 + 0.1 * random.exponential(size=(JOBS + 4, WORKERS))
    found[random.random(found.shape) < chance] += 2.5
    return found


def experiment(code, law=None, **options):
    workload = LogisticRegression(data="two-gaussians:150x4", optimizer=GradientDescent(rate=0.5))
    cluster = Cluster(workers=WORKERS, compute=law or DelayTrace(delays()))
    return emuml.Experiment(workload, SequentialGradientCoding(code), cluster, rounds=JOBS, seed=5, **options)


def emulate(code, problem, law):
    """Run without an experiment, which tells all versions that were published, and takes any law."""
    roster = Roster.of_counts(5, Rounds(JOBS), server=1, worker=WORKERS)
    nodes = SequentialGradientCoding(code).nodes(problem, roster)
    cluster = Cluster(workers=WORKERS, compute=law)
    run = Emulator(nodes, cluster, roster, FaultPlan(), problem.full_cost / WORKERS).run()
    assert run.error is None
    return run


@pytest.mark.parametrize("code", CODES, ids=str)
def test_times_are_those_of_theory_bit_for_bit(code):
    given = experiment(code)
    rows = emuml.run(given).metrics.rows[1:]
    found = sequential_rounds(delays(), given.protocol.sequence(WORKERS), JOBS)

    stepped = np.maximum.accumulate(found.decoded)  # steps are made in the order of the jobs
    assert [row["time_s"] for row in rows] == found.ended_s[stepped].tolist()
    assert [row["rounds_taken"] for row in rows] == (found.decoded - np.arange(JOBS) + 1).tolist()
    assert [row["late"] for row in rows] == found.late[stepped].tolist()
    assert np.any(found.late) or np.any(found.waited)


class Affine(DelayTrace):
    """Delays without load, and two seconds for each unit of load."""

    def sampler(self, seed, node):
        return lambda draw, load: self.delays[draw, node.index] + load * 2.0

    def vector(self, seed, workers):
        return lambda draw, load, out: np.add(self.delays[draw], load * 2.0, out=out)


@pytest.mark.parametrize("code", CODES[3:], ids=str)
def test_loads_are_those_of_theory(code):
    """With partitions of equal size, so that loads are those of the code."""
    built = SequentialGradientCoding(code).sequence(WORKERS)
    run = emulate(code, regression(rows=2 * built.partitions), Affine(delays()))

    found = sequential_rounds(delays(), built, JOBS, base_load=0.0, slope_s=2.0)
    expected = found.ended_s[np.maximum.accumulate(found.decoded)]
    assert [logged.time_s for logged in run.logs] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("code", CODES, ids=str)
def test_gradients_are_exact_at_the_parameters_that_the_log_names(code):
    """A plain loop with whole gradients, at the versions of which the log says how old they are."""
    problem = regression(rows=150)
    run = emulate(code, problem, DelayTrace(delays()))

    state, trained = problem.start(), [problem.initial]
    for job, logged in enumerate(run.logs):
        gradient = problem.gradient(trained[job - logged.metrics["staleness"]], (0,), 1, draw=job).run()
        state, values = problem.step(state, trained[job], gradient, job)
        trained.append(values)
    assert np.allclose([item.parameters for item in run.published], trained, rtol=1e-12, atol=1e-14)
    assert max(logged.metrics["decode_error"] for logged in run.logs) < 1e-20
    stalest = max(logged.metrics["staleness"] for logged in run.logs)
    assert stalest <= SequentialGradientCoding(code).sequence(WORKERS).delay


def test_a_code_whose_jobs_end_with_their_round_trains_what_gradient_coding_does():
    law = DelayTrace(1 + 0.1 * delays(chance=0))  # nobody is late
    for code in (Uncoded(), FractionalRepetition(3)):
        given = experiment(code, law)
        plain = emuml.Experiment(given.workload, GradientCoding(code), given.cluster, rounds=JOBS, seed=5)
        assert emuml.run(given).parameters_sha256 == emuml.run(plain).parameters_sha256


def test_stragglers_move_no_bit_of_codes_with_fixed_delay():
    """M-SGC decodes each job after as many rounds, whoever straggled; answers of a group are equal bit for bit."""
    found = {
        emuml.run(experiment(MultiplexedCoding(1, 2, 2), DelayTrace(delays(seed)))).parameters_sha256
        for seed in range(4)
    }
    assert len(found) == 1


@pytest.mark.parametrize("code", [SelectiveRepetition(1, 2, 3), MultiplexedCoding(1, 2, 2)], ids=str)
def test_a_worker_that_crashes_and_comes_back_only_delays(code):
    """It is told the parameters of all open jobs again, whether its round was given up or waits for it."""
    calm = experiment(code, DelayTrace(1 + 0.1 * delays(chance=0)))
    for restart_after_s in (0.1, 0.7, 30.0):
        faults = FaultPlan((Crash("worker-2", at_s=4.05, restart_after_s=restart_after_s),))
        result = emuml.run(experiment(code, calm.cluster.compute, faults=faults))
        assert len(result.metrics.rows) == JOBS + 1
        assert result.duration_s > emuml.run(calm).duration_s
        if isinstance(code, MultiplexedCoding):
            assert result.parameters_sha256 == emuml.run(calm).parameters_sha256


def test_a_server_that_comes_back_trains_from_the_start():
    law = DelayTrace(np.tile(delays(), (3, 1)))
    faults = FaultPlan((Crash("server-0", at_s=9.0, restart_after_s=1.0),))
    result = emuml.run(experiment(MultiplexedCoding(1, 2, 2), law, faults=faults))

    assert result.parameters_sha256 == emuml.run(experiment(MultiplexedCoding(1, 2, 2), law)).parameters_sha256


def test_what_does_not_fit_is_refused_before_anything_runs():
    with pytest.raises(UserError, match="servers"):
        SequentialGradientCoding().nodes(regression(), Roster.of_counts(0, Rounds(1), server=2, worker=2))
    with pytest.raises(UserError, match="SelectiveRepetition"):
        GradientCoding(code=SelectiveRepetition(1, 2, 1))
    for code in (PartialWork(2), VerifiedRepetition(3, 1), YeAbbe(1, 2)):
        with pytest.raises(UserError, match="sums"):
            SequentialGradientCoding(code).sequence(WORKERS)
    with pytest.raises(UserError, match="no partition"):
        SequentialGradientCoding(Bernoulli(0.01)).sequence(WORKERS)
    with pytest.raises(UserError, match="partitions"):
        emulate(MultiplexedCoding(2, 4, 5), regression(rows=50), DelayTrace(delays()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", [Uncoded(), SelectiveRepetition(1, 2, 2), MultiplexedCoding(1, 2, 1), MultiplexedCoding(2, 3, 0)], ids=str
)
def test_explorers_find_nothing(code):
    """With workers and servers that crash and come back, and sessions that break."""
    protocol = SequentialGradientCoding(code)
    found = et.explore(lambda: protocol, et.shipped(protocol), runs=60, faults=et.faults(keep=()))
    assert found.ok, found.failure.trial.report()

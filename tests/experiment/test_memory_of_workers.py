"""What a worker weighs in a run on the event tier, by the allocator's own count."""

import tracemalloc

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import SSP
from emuml.protocols.gradient_coding import IgnoreStragglers
from emuml.workloads import LogisticRegression


def peak_bytes(workers, protocol):
    """Return the most that is allocated at one time by a run of one round, its declaration included."""
    tracemalloc.start()
    try:
        experiment = emuml.Experiment(
            workload=LogisticRegression(data=f"two-gaussians:{workers}x2", validation=0.0),
            protocol=protocol(workers),
            cluster=Cluster(workers=workers, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
            rounds=1,
        )
        emuml.run(experiment, tier="event", trace=False)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "few", "most"),
    [
        # 1613: a node, its machine and life, a task in its slot, and of every other worker an answer with its value.
        (lambda workers: GradientCoding(IgnoreStragglers(), collect=workers // 2), 10_000, 1700),
        # 3533: each worker has a copy of the parameters, and the server its statistics.
        (lambda workers: AsyncUpdates(SSP(3)), 1000, 3700),
    ],
    ids=["gradient coding", "asynchronous updates"],
)
def test_another_worker_takes_no_more_than_so_many_bytes(protocol, few, most):
    peak_bytes(100, protocol)  # what is imported and kept once for all

    each = (peak_bytes(2 * few, protocol) - peak_bytes(few, protocol)) / few

    assert 500 < each < most

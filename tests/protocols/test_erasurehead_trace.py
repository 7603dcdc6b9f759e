"""The delays of ErasureHead's own program, replayed through our stop rules.

Reference: arXiv:1901.09671 and its program (hwang595/ErasureHead), which draws the delays of round i from a legacy
generator seeded with i; the means per round are deterministic.
"""

import numpy as np
import pytest

from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers
from tests.protocols.code_checks import ERASUREHEAD_MEANS, check_trace_mean, erasurehead_trace


def test_the_trace_is_the_published_one():
    trace = erasurehead_trace()

    assert trace[0, :3] == pytest.approx([0.397937254081555, 0.6279653814829189, 0.4616115729020344], abs=1e-15)
    assert trace[50, 0] == pytest.approx(0.3412041699727675, abs=1e-15)
    assert trace[99, 29] == pytest.approx(0.050941762181251356, abs=1e-15)
    assert trace.sum() == pytest.approx(1477.121241522631, abs=1e-9)
    assert (trace.min(), trace.max()) == pytest.approx((3.1749e-5, 4.463682016618189), rel=1e-4)
    assert trace.max(axis=1).sum() == pytest.approx(198.642, abs=1e-3)


@pytest.mark.parametrize(("replication", "collect"), ERASUREHEAD_MEANS)
def test_mean_round_time_on_the_trace(replication, collect):
    declaration = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)

    check_trace_mean(declaration.build(30, collect=collect).stop_rule(), replication, collect)


def test_agc_with_three_replicas_and_fifteen_answers_on_the_trace():
    code = FractionalRepetition(3).build(30, collect=15)
    used, covered = [], []
    for delays in erasurehead_trace():
        order = np.argsort(delays, kind="stable")
        used.append(code.stop_rule().stop_index(order))
        covered.append(len(code.decode(order[: used[-1]].tolist()).covered))

    assert covered.count(10) == 21
    assert np.mean(covered) / 10 == pytest.approx(0.883, abs=5e-4)
    assert np.mean(used) == pytest.approx(14.80, abs=5e-3)

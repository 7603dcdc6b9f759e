"""The contestants of approximate decoding: they decode the same sets, and rounds close alike."""

import numpy as np
import pytest

from benchmarks import decode_approximate
from emuml.cluster import ShiftedExponential
from emuml.protocols.gradient_coding import GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Petersen
from emuml.theory import sample


def test_ours_and_least_squares_decode_the_same_sets_equally_well():
    work = decode_approximate.contestants(60, with_least_squares=True)
    matrix = decode_approximate.codes(60)["components"].encode_matrix
    for received in decode_approximate.sets_of(60):
        error = np.sum((work["numpy lstsq"]() @ matrix[received] - 1.0) ** 2)
        assert work["components"]().error == pytest.approx(error, abs=1e-9)
        assert all(0.0 <= work[name]().error < 60 for name in ("group flags", "tiling", "one step"))


def test_rounds_close_alike_arrival_by_arrival_and_by_kernels():
    rule, law = GraphCode(Petersen()).build(15).stop_rule(), ShiftedExponential(0.05, 0.5)
    ours, trackers = (sample.round_times(law, each, 30, 1) for each in (rule, decode_approximate.OneByOne(rule)))

    assert np.array_equal(ours.ended_s, trackers.ended_s)

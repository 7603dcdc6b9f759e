"""Durations of all workers at once: the bits of each worker's sampler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml import streams
from emuml.cluster.compute import Constant, Instant, ShiftedExponential, durations
from emuml.cluster.delays import DelayTrace, ErasureHeadDelays
from emuml.errors import RunFailed, UserError
from emuml.node import NodeId

TABLE = np.linspace(0.1, 9.7, 200).reshape(10, 20)
LAWS = [
    Instant(),
    Constant(0.7),
    ShiftedExponential(0.05, 0.5),
    ShiftedExponential(0.05, 0.5, tail="scaled"),
    DelayTrace(TABLE),
    DelayTrace(TABLE, "scaled", "resampled"),
    ErasureHeadDelays(10, 20),
]


class Unhurried:
    """A law that offers nothing for many workers at once."""

    def __init__(self, law):
        self.sampler = law.sampler


@pytest.mark.parametrize("generic", [False, True], ids=["vector", "one by one"])
@pytest.mark.parametrize("law", LAWS, ids=repr)
@given(seed=st.integers(0, 2**64 - 1), workers=st.integers(1, 20), draw=st.integers(0, 9), load=st.floats(0.01, 100))
def test_durations_have_the_bits_of_every_sampler(law, generic, seed, workers, draw, load):
    out = np.full(workers, np.nan)
    durations(Unhurried(law) if generic else law, seed, workers)(draw, load, out)
    expected = [law.sampler(seed, NodeId("worker", worker))(draw, load) for worker in range(workers)]
    assert out.tolist() == expected


def test_workers_and_draws_outside_a_trace_are_named_as_by_a_sampler():
    with pytest.raises(UserError, match="worker-20 is not in the delay trace"):
        durations(LAWS[4], 0, 23)
    with pytest.raises(RunFailed, match="asks for draw 10"):
        durations(LAWS[4], 0, 3)(10, 1.0, np.empty(3))


@given(st.integers(0, 2**64 - 1), st.text(max_size=5), st.text(max_size=5), st.integers(0, 5))
def test_keys_of_numbered_streams_are_those_of_each(seed, node, stems, count):
    lows, highs = streams.stream_keys(seed, node, stems, count)
    expected = [streams.halves(streams.stream_key(seed, node, f"{stems}{number}")) for number in range(count)]
    assert list(zip(lows.tolist(), highs.tolist(), strict=True)) == expected

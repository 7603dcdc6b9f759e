"""What holds for every code, whatever its parameters, number of workers and answers: one property for all of them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding import (
    BalancedRepetition,
    Bernoulli,
    CyclicMDS,
    CyclicRepetition,
    Expander,
    FractionalRepetition,
    GraphCode,
    HeterogeneousCode,
    IgnoreStragglers,
    StochasticCode,
    Uncoded,
    VerifiedRepetition,
    YeAbbe,
)
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, Hypercube, Petersen, RandomRegular
from emuml.protocols.gradient_coding.decoders.conditioning import Unsound

WORKERS_MAX = 16

few, shares = st.integers(0, 5), st.floats(0.0, 0.9)
graphs = st.one_of(
    st.sampled_from([Complete(), Cycle(), Hypercube(), Petersen()]), st.builds(RandomRegular, st.integers(1, 5))
)
kinds = st.sampled_from(["one-step", "optimal"])
codes = st.one_of(
    st.just(Uncoded()),
    st.builds(IgnoreStragglers, st.sampled_from(["none", "covered"])),
    st.builds(FractionalRepetition, st.integers(1, 6), st.sampled_from(["none", "covered", "unbiased"])),
    st.sampled_from([VerifiedRepetition(1, 0), VerifiedRepetition(3, 1), VerifiedRepetition(5, 2)]),
    st.builds(StochasticCode, st.integers(1, 6), st.none() | shares),
    st.builds(HeterogeneousCode, st.integers(1, 6), st.lists(shares, min_size=1, max_size=WORKERS_MAX).map(tuple)),
    st.builds(CyclicRepetition, few),
    st.builds(CyclicMDS, few, st.sampled_from(["stride", "natural", "seeded"])),
    st.builds(YeAbbe, few, st.integers(1, 4)),
    st.builds(BalancedRepetition, few),
    st.builds(GraphCode, graphs),
    st.builds(Expander, graphs, kinds),
    st.builds(
        Bernoulli, st.floats(1e-9, 4.0), st.just(False), decoder=kinds, partitions=st.none() | st.integers(1, 20)
    ),
)


@settings(max_examples=300, deadline=None)
@given(codes, st.integers(1, WORKERS_MAX), st.integers(0, 5), st.none() | st.integers(1, WORKERS_MAX), st.data())
def test_decodings_are_worth_what_they_say(declared, workers, seed, collect, data):
    """Errors and noise gains are those of the weights, which are finite and go with the workers, not with their order.

    Of answers in slices there is one matrix a slice, and an error of all of them.
    """
    try:
        code = declared.build(workers, seed, collect)
    except UserError:
        assume(False)
    arrive = np.random.default_rng(seed).permutation(workers)
    count = data.draw(st.integers(0, workers))
    received, matrix = arrive[:count], code.encode_matrix
    try:
        found = code.decode(received)
    except Unsound:
        return
    again = code.decode(received[::-1].tolist())
    assert again.weights[::-1].tobytes() == found.weights.tobytes()
    assert (again.error, again.noise_gain) == (found.error, found.noise_gain)
    assert np.isfinite([*found.weights, found.error, found.noise_gain]).all()
    weights = np.zeros(workers)
    weights[received] = found.weights
    if not isinstance(declared, YeAbbe):
        assert found.error == pytest.approx(np.sum((weights @ matrix - 1.0) ** 2), rel=1e-9, abs=1e-9)
        gain = np.sqrt(np.sum(weights**2 * np.sum(matrix**2, axis=1)) / code.partitions)
        assert found.noise_gain == pytest.approx(gain, rel=1e-9, abs=1e-12)
    for worker in range(workers):
        row = np.zeros(code.partitions)
        row[list(code.assignment(worker))] = code.coefficients(worker)
        assert np.array_equal(row, matrix[worker])
    tracker, closed = code.stop_rule().tracker(), []
    for worker in arrive.tolist():
        tracker.arrived(worker)
        closed.append(tracker.closed)
    assert closed == sorted(closed)
    assert closed[-1]
    assert collect is None or isinstance(declared, VerifiedRepetition) or closed[collect - 1]
    for wrong in ([0, 0], [workers], [-1]):
        with pytest.raises(UserError):
            code.decode(wrong)

"""What must hold for every gradient code, as assertions: the tests apply them to ours, the mutants to wrong ones."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

ERASUREHEAD_MEANS = {
    # Seconds per round over 100 rounds of the delays below, under cancellation: (replication, collect) -> mean.
    (1, 30): 1.986423,
    (1, 29): 1.528332,
    (1, 27): 1.072621,
    (1, 24): 0.754641,
    (1, 15): 0.323088,
    (2, None): 0.804175,
    (3, None): 0.499903,
    (5, None): 0.247541,
    (3, 15): 0.315211,
    (3, 20): 0.438798,
    (5, 15): 0.227919,
}


def erasurehead_trace():
    """Return the delays of ErasureHead's program, 100 rounds of 30 workers: one legacy generator seeded per round."""
    return np.array([np.random.RandomState(i).exponential(0.5, 30) for i in range(100)])


def integer_gradients(partitions, seed=0):
    """Return gradients whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-1000, 1000, (partitions, 3)).astype(float)


def subsets(workers, count):
    return combinations(range(workers), count)


def messages(code, gradients):
    """Return what each worker sends: its partitions' gradients in the order in which the code lists them."""
    sent = []
    for worker in range(code.workers):
        total = np.zeros(gradients.shape[1])
        for partition, factor in zip(code.assignment(worker), code.coefficients(worker), strict=True):
            total = total + factor * gradients[partition]
        sent.append(total)
    return np.array(sent)


def estimate(code, sent, received):
    """Return the decoded sum, added in ascending worker order."""
    received = sorted(received)
    total = np.zeros(sent.shape[1])
    for worker, weight in zip(received, code.decode(received).weights, strict=True):
        total = total + weight * sent[worker]
    return total


def check_structure(code, replication):
    """Every worker in one group, every partition in one block, at least so many replicas, equal load."""
    groups = code.groups
    sizes = [len(group) for group in groups]
    assert sorted(worker for group in groups for worker in group) == list(range(code.workers))
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= replication
    held = [code.assignment(group[0]) for group in groups]
    assert [partition for block in held for partition in block] == list(range(code.partitions))
    assert all(code.assignment(worker) == held[j] for j, group in enumerate(groups) for worker in group)
    assert code.load == code.workers * len(held[0]) / code.partitions


def check_matrix(code):
    """The encode matrix says the same as assignments and coefficients."""
    matrix = code.encode_matrix
    assert matrix.shape == (code.workers, code.partitions)
    expected = np.zeros_like(matrix)
    for worker in range(code.workers):
        expected[worker, list(code.assignment(worker))] = code.coefficients(worker)
    assert np.array_equal(matrix, expected)


def check_exact(code, gradients, received):
    """Whole numbers are summed exactly, bit for bit, whoever answered."""
    assert np.array_equal(estimate(code, messages(code, gradients), received), gradients.sum(axis=0))


def check_decoding(code, received):
    """Error, gain and covered groups are those of the weights; no weights do better than the best possible."""
    decoding = code.decode(received)
    rows = code.encode_matrix[list(received)]
    assert decoding.weights.shape == (len(received),)
    error = float(np.sum((decoding.weights @ rows - 1.0) ** 2))
    assert decoding.error == pytest.approx(error, rel=1e-12, abs=1e-12)
    best = np.linalg.lstsq(rows.T, np.ones(code.partitions), rcond=None)[0] if len(received) else np.zeros(0)
    least = float(np.sum((best @ rows - 1.0) ** 2))
    assert decoding.error >= least - 1e-9 * code.partitions
    gain = float(decoding.weights**2 @ np.sum(rows**2, axis=1)) / code.partitions
    assert decoding.noise_gain == pytest.approx(gain**0.5, abs=1e-12)
    met = tuple(j for j, group in enumerate(code.groups) if set(group) & set(received))
    assert decoding.covered == met
    return least


def check_replicas_equal(code, gradients):
    """Members of a group send the same bits."""
    sent = messages(code, gradients)
    for group in code.groups:
        assert {sent[worker].tobytes() for worker in group} == {sent[group[0]].tobytes()}


def check_unbiased(code, gradients, count):
    """The mean over all sets of ``count`` responders is the sum of the gradients."""
    sent = messages(code, gradients)
    mean = sum(estimate(code, sent, received) for received in subsets(code.workers, count)) / comb(code.workers, count)
    assert mean == pytest.approx(gradients.sum(axis=0), rel=1e-12, abs=1e-12)


def trace_mean(rule, trace):
    """Return the mean time of a round that starts afresh each time; ties go to the lower worker."""
    total = 0.0
    for delays in trace:
        order = np.argsort(delays, kind="stable")
        total += delays[order[rule.stop_index(order) - 1]]
    return total / len(trace)


def check_trace_mean(rule, replication, collect):
    assert trace_mean(rule, erasurehead_trace()) == pytest.approx(ERASUREHEAD_MEANS[replication, collect], abs=1e-6)


def check_coverage(probabilities, sizes):
    """Coverage probabilities are probabilities, do not decrease, and equal the exact ratio of integers."""
    workers = sum(sizes)
    reached = probabilities(sizes, workers)
    assert len(reached) == workers + 1
    assert np.all((reached >= 0) & (reached <= 1 + 1e-12))
    assert np.all(np.diff(reached) >= -1e-12)
    ways = [1]
    for size in sizes:
        ways = _times(ways, [0] + [comb(size, i) for i in range(1, size + 1)])
    exact = [float(Fraction(ways[j], comb(workers, j))) for j in range(workers + 1)]
    assert reached == pytest.approx(exact, rel=1e-11, abs=1e-300)


def check_rows_shared_out(bounds, rows, partitions):
    """Every row is in exactly one partition; sizes differ by at most one."""
    assert len(bounds) == partitions + 1
    assert (bounds[0], bounds[-1]) == (0, rows)
    sizes = np.diff(bounds)
    assert sizes.min() >= 0
    assert sizes.max() - sizes.min() <= 1


def _times(a, b):
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product

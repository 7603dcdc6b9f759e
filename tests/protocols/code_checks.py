"""What must hold for every gradient code, as assertions: the tests apply them to ours, the mutants to wrong ones."""

import math
import pickle
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from emuml.protocols.gradient_coding.decoders.conditioning import error_bound

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


def check_linear_decoding(code, received):
    """Error and gain are those of the weights; no weights do better, nor do equal ones. Return the decoding.

    Comparisons allow for the rounding of the sums that errors are made of.
    """
    received = sorted(received)
    decoding, rows = code.decode(received), code.encode_matrix[received]
    k, norms = code.partitions, np.linalg.norm(rows, axis=1)
    rounding = 4 * (len(received) + 1) * 2.0**-53 * float(np.abs(decoding.weights) @ norms)
    error = float(np.sum((decoding.weights @ rows - 1.0) ** 2))
    assert abs(math.sqrt(decoding.error) - math.sqrt(error)) <= rounding * math.sqrt(k) + 1e-15
    gain = math.sqrt(float(decoding.weights**2 @ norms**2) / k)
    assert decoding.noise_gain == pytest.approx(gain, rel=1e-12, abs=1e-15)
    best = np.linalg.lstsq(rows.T, np.ones(k), rcond=None)[0] if received else np.zeros(0)
    least = float(np.sum((best @ rows - 1.0) ** 2))
    assert decoding.error == pytest.approx(least, abs=1e-9 * k)
    rho = float(np.sum(rows)) / max(float(np.sum(np.sum(rows, axis=0) ** 2)), 1e-300)
    assert decoding.error <= float(np.sum((rho * np.sum(rows, axis=0) - 1.0) ** 2)) + 1e-9 * k
    return decoding


def check_set_decides(code, received, shuffled):
    """The order of arrival changes no bit of a weight."""
    first = dict(zip(received, code.decode(received).weights.tolist(), strict=True))
    assert dict(zip(shuffled, code.decode(shuffled).weights.tolist(), strict=True)) == first
    assert code.decode(received).error == code.decode(shuffled).error


def check_more_is_no_worse(code, received, more):
    """Further answers do not raise the error."""
    assert code.decode(sorted({*received, *more})).error <= code.decode(received).error + 1e-9 * code.partitions


def check_exact_within_bound(code, gradients, received, wire="float64"):
    """The decoded sum is off by no more than rounding of messages in a format, and their sum, can explain."""
    received = sorted(received)
    sent = messages(code, gradients)
    if wire == "float32":
        sent = sent.astype(np.float32).astype(np.float64)
    decoding = code.decode(received)
    off = float(np.linalg.norm(estimate(code, sent, received) - gradients.sum(axis=0)))
    norms = np.linalg.norm(sent[received], axis=1)
    bound = error_bound(decoding.weights, norms, decoding.error, np.linalg.norm(gradients, axis=1), wire)
    held = max(len(code.assignment(worker)) for worker in received)
    # Messages are sums themselves: each is off by some roundings of its terms.
    heights = np.abs(code.encode_matrix[received]) @ np.linalg.norm(gradients, axis=1)
    bound += held * 2.0**-53 * float(np.abs(decoding.weights) @ heights)
    assert off <= bound
    assert bound <= 1e-3 * float(np.sum(np.linalg.norm(gradients, axis=1))) or wire == "float32"
    return off, bound


def check_h(checks, code):
    """H of a cyclic code annuls every row and 1, and B has the rank that is left."""
    assert np.abs(checks.sum(axis=1)) == pytest.approx(0.0, abs=1e-13)
    assert np.all(np.diagonal(code.encode_matrix) == 1.0)
    size = max(float(np.abs(code.encode_matrix).max()), 1.0)
    assert np.abs(checks @ code.encode_matrix.T) == pytest.approx(0.0, abs=1e-12 * size)
    assert np.linalg.matrix_rank(code.encode_matrix, tol=1e-10 * size) == code.workers - code.stragglers


def check_nothing_is_tabulated(code):
    """A code that nobody has decoded yet is as large as its rows, however many patterns of stragglers there are."""
    entries = sum(len(code.assignment(worker)) for worker in range(code.workers))
    assert len(pickle.dumps(code)) <= 4096 + 100 * entries


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


# Codes without groups


def check_held(code, replication=None):
    """Every partition is held, ascending in each row, by so many workers if that is asked; loads are what rows have."""
    held = [code.assignment(worker) for worker in range(code.workers)]
    assert all(list(row) == sorted(set(row)) for row in held)
    holders = np.bincount([partition for row in held for partition in row], minlength=code.partitions)
    assert holders.size == code.partitions
    if replication is not None:
        assert holders.tolist() == np.broadcast_to(replication, code.partitions).tolist()
    assert code.loads == pytest.approx([len(row) * code.workers / code.partitions for row in held], rel=1e-15)
    assert code.load == max(code.loads)
    check_matrix(code)


def check_optimal(code, received):
    """No weights decode better: the error is that of least squares, 0 iff 1 is in the span, at most one step's."""
    least = check_decoding(code, received)
    error = code.decode(received).error
    assert error == pytest.approx(least, abs=1e-9 * code.partitions)
    rows = code.encode_matrix[list(received)]
    spans = np.linalg.matrix_rank(rows) == np.linalg.matrix_rank(np.vstack([rows, np.ones(code.partitions)]))
    assert (error <= 1e-12 * code.partitions) == bool(spans)
    total = rows.sum(axis=0)
    step = total.sum() / max(total @ total, 1.0)  # the best of all uniform weights
    assert error <= np.sum((step * total - 1.0) ** 2) + 1e-9


def check_order_is_nothing(code, received, shuffled):
    """Weights belong to workers, not to the order of arrival; the same set gives the same bits."""
    first, second = code.decode(received), code.decode(iter(shuffled))
    assert dict(zip(received, first.weights.tolist(), strict=True)) == dict(
        zip(shuffled, second.weights.tolist(), strict=True)
    )
    assert (first.error, first.noise_gain) == (second.error, second.noise_gain)
    sent = messages(code, np.random.default_rng(1).standard_normal((code.partitions, 4)))
    assert estimate(code, sent, shuffled).tobytes() == estimate(code, sent, received).tobytes()


def check_linear(code, received):
    """The estimate is linear in what workers send: of sums and multiples it is the sum and the multiple."""
    some, others = np.random.default_rng(2).standard_normal((2, code.workers, 3))
    together = estimate(code, 2.0 * some + others, received)
    assert together == pytest.approx(2.0 * estimate(code, some, received) + estimate(code, others, received), abs=1e-9)


def check_closing(rule, order):
    """Tracker and array form agree on when a round closes, and what arrives again changes nothing."""
    tracker = rule.tracker()
    first = next((used for used, worker in enumerate(order, 1) if tracker.arrived(worker)), 0)
    assert rule.closing_index(np.array(order, np.int64)) == first
    assert rule.stop_index(np.array(order, np.int64)) == (first or len(order))
    assert tracker.closed == bool(first)
    assert all(tracker.arrived(worker) for worker in order if first)

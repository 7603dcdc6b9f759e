"""What a graph code decodes to by its definition, in rationals and by least squares: the oracle of fast decoders.

Source: Glasgow and Wootters, "Approximate gradient coding with optimal decoding".
"""

from fractions import Fraction

import numpy as np


def components(edges, vertices, alive):
    """Yield the two sides of each component, the second ``None`` if it has an odd cycle.

    By relaxation over all edges, time and again, which no fast implementation does.
    """
    label = list(range(vertices))
    pairs = [edges[worker] for worker in alive]
    for _ in range(vertices):
        for a, b in pairs:
            label[a] = label[b] = min(label[a], label[b])
    for root in sorted(set(label)):
        reached = {root: {0}}
        for _ in range(2 * vertices):
            for a, b in [*pairs, *((b, a) for a, b in pairs)]:
                if a in reached:
                    reached[b] = reached.get(b, set()) | {1 - parity for parity in reached[a]}
        if any(len(parities) == 2 for parities in reached.values()):
            yield set(reached), None
        else:
            yield {v for v in reached if reached[v] == {0}}, {v for v in reached if reached[v] == {1}}


def component_gamma(edges, vertices, alive):
    """Return the optimal coefficient of each partition, as fractions."""
    gamma = [Fraction(0)] * vertices
    for left, right in components(edges, vertices, alive):
        if right is None:
            for vertex in left:
                gamma[vertex] = Fraction(1)
            continue
        size = len(left) + len(right)
        for side, other in ((left, right), (right, left)):
            for vertex in side:
                gamma[vertex] = Fraction(2 * len(other), size)
    return gamma


def component_error(edges, vertices, alive):
    """Return ``sum (|L|-|R|)^2/(|L|+|R|)`` over the components without odd cycles, as a fraction."""
    return sum(
        (
            Fraction((len(left) - len(right)) ** 2, len(left) + len(right))
            for left, right in components(edges, vertices, alive)
            if right is not None
        ),
        Fraction(0),
    )


def least_error(edges, vertices, alive):
    """Return the error of the least-squares solution."""
    rows = np.zeros((len(alive), vertices))
    for row, worker in enumerate(alive):
        rows[row, list(edges[worker])] = 1.0
    weights = np.linalg.lstsq(rows.T, np.ones(vertices), rcond=None)[0] if len(alive) else np.zeros(0)
    return float(np.sum((weights @ rows - 1.0) ** 2))

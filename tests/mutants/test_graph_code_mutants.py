"""Wrong decoders of graph, adjacency and balanced repetition codes: the checks of ours must catch each.

Every test first shows that ours passes the very assertion that the mutant fails.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from emuml._kernels import reference_codes
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, Expander, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, Petersen
from emuml.protocols.gradient_coding.decoders.components import Components
from emuml.protocols.gradient_coding.decoders.one_step import OneStep
from emuml.protocols.gradient_coding.decoders.seam import Weights
from emuml.protocols.gradient_coding.rules.error import ErrorBelow, ErrorTracker
from emuml.protocols.gradient_coding.rules.tiling import Tiled, TilingTracker
from tests.protocols.code_checks import check_closing, check_decoding, check_held, check_optimal, check_unbiased

GRADIENTS = np.random.default_rng(4).integers(-50, 50, (10, 3)).astype(float)


def caught(check, *arguments):
    """Assert that a check fails."""
    with pytest.raises(AssertionError):
        check(*arguments)


def over_all_sets(check, code):
    for size in range(code.workers + 1):
        for received in combinations(range(code.workers), size):
            check(code, received)


def with_decoder(code, kind, *arguments):
    """Return a code with another decoder."""
    decoder = kind(*(getattr(code.decoder, name) for name in code.decoder.__dataclass_fields__), *arguments)
    return replace(code, decoder=decoder)


class Patched(Components):
    """The readable decoder, of which a mutant changes what one component's weights or error become."""

    def weights(self, received):
        graph, vertices = (self.starts, self.neighbours, self.workers), self.starts.size - 1
        place = {worker: position for position, worker in enumerate(received.tolist())}
        values, colour, error = np.zeros(received.size), [0] * vertices, 0.0
        for root in range(vertices):
            if not colour[root]:
                order, up, odd = reference_codes._searched(root, colour, graph, place)
                side = [sum(colour[v] == c for v in order) for c in (1, 2)]
                error += self.weigh(values, order, up, odd, colour, side)
        return Weights(values, error, float(np.sqrt(2 * (values @ values) / vertices)))

    def weigh(self, values, order, up, odd, colour, side):
        targets = self.targets(order, odd, colour, side)
        need = dict(zip(order, targets, strict=True))
        if odd:
            position, a, b = odd
            more = self.closing(side[colour[a] - 1] - side[2 - colour[a]])
            values[position] = more
            need[a] -= more
            need[b] -= more
        for vertex in order[:0:-1]:
            parent, position = up[vertex]
            values[position] = need[vertex]
            need[parent] -= need[vertex]
        return 0.0 if odd or self.is_exact() else (side[0] - side[1]) ** 2 / len(order)

    def targets(self, order, odd, colour, side):
        return [1.0 if odd else 2 * side[2 - colour[v]] / len(order) for v in order]

    def closing(self, more):
        return more / 2

    def is_exact(self):
        return False


class BipartiteIsExact(Patched):
    """Weighs every component as if it had an odd cycle, and says that nothing is lost."""

    def targets(self, order, odd, colour, side):
        return [1.0] * len(order)

    def is_exact(self):
        return True


class WithoutTheHalf(Patched):
    """The edge that closes an odd cycle gets all that one colour has more, not half of it."""

    def closing(self, more):
        return more


class ParityIgnored(Patched):
    """Odd cycles are not seen: every component is treated as one with two sides."""

    def weigh(self, values, order, up, odd, colour, side):
        return super().weigh(values, order, up, None, colour, side)


@pytest.mark.parametrize("mutant", [BipartiteIsExact, WithoutTheHalf, ParityIgnored])
@pytest.mark.parametrize(("graph", "workers"), [(Cycle(), 5), (Complete(), 6)])
def test_wrong_weights_of_components_are_caught_by_least_squares(mutant, graph, workers):
    code = GraphCode(graph).build(workers)

    over_all_sets(check_optimal, code)
    over_all_sets(check_optimal, with_decoder(code, Patched))
    caught(over_all_sets, check_optimal, with_decoder(code, mutant))


class TrackerWithoutParity(ErrorTracker):
    """Takes every edge that closes a cycle for one of an odd cycle."""

    def note(self, worker):
        components, (a, b) = self._components, self._rule.edges[worker]
        if components._find(a)[0] == components._find(b)[0]:
            root = components._find(a)[0]
            components.error -= components._term(root)
            components._is_odd[root] = True
        super().note(worker)


class RuleWithoutParity(ErrorBelow):
    def tracker(self):
        return TrackerWithoutParity(self)


def test_a_tracker_that_ignores_parity_is_caught_by_the_array_form():
    # Two squares that share an edge; one of their six vertices hangs on by an edge of its own.
    edges = ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (0, 5), (4, 5), (4, 6), (5, 6))
    order = [0, 1, 2, 3, 4, 7, 5, 6, 8]

    check_closing(ErrorBelow(edges, 7), order)
    caught(check_closing, RuleWithoutParity(edges, 7), order)


class Overlapping:
    """Adds every answer that reaches beyond what is covered so far, also if it begins before."""

    is_cheap = True

    def __init__(self, intervals, partitions):
        self.intervals, self.partitions = intervals, partitions

    def weights(self, received):
        values, covered, total = np.zeros(received.size), 0, 0
        starts, stops = self.intervals.starts[received], self.intervals.stops[received]
        for position in np.lexsort((stops, starts)):
            if starts[position] <= covered < stops[position]:
                values[position], covered = 1.0, int(stops[position])
                total += int(stops[position] - starts[position])
        return Weights(values, float(self.partitions - covered), (total / self.partitions) ** 0.5)


def test_a_tiling_that_overlaps_is_caught_by_the_error_of_its_weights():
    code = BalancedRepetition(1).build(5)

    over_all_sets(check_decoding, code)
    caught(over_all_sets, check_decoding, with_decoder(code, Overlapping))


class CoversAtOnce(TilingTracker):
    """Closes once every partition is covered, whether or not intervals overlap."""

    def note(self, worker):
        start, stop = self._rule.bounds[worker]
        self.held = getattr(self, "held", set()) | set(range(start, stop))
        self.is_enough = len(self.held) == self._rule.partitions


class CoverRule(Tiled):
    def tracker(self):
        return CoversAtOnce(self)


def test_a_round_that_closes_on_covers_is_caught_by_the_array_form():
    bounds = BalancedRepetition(1).build(5).stop_rule().bounds  # 0-2, 0-3, 2-4, 3-5, 4-5
    order = [1, 2, 4, 3, 0]  # 0-3 and 2-4 and 4-5 cover all, and overlap

    check_closing(Tiled(bounds, 5), order)
    caught(check_closing, CoverRule(bounds, 5), order)


@dataclass(frozen=True, eq=False)
class ByDesign(OneStep):
    """W20: the weight goes by the number of answers that was planned, whatever number came."""

    planned: int = 5

    def weights(self, received):
        return self.rows.judged(received, np.full(received.size, self.weight(self.planned)))


def test_w20_weights_by_the_planned_number_are_caught_when_another_number_comes():
    code = Expander(Petersen()).build(10, collect=5)
    mutant = with_decoder(code, ByDesign)

    check_unbiased(code, GRADIENTS, 4)
    check_unbiased(mutant, GRADIENTS, 5)
    caught(check_unbiased, mutant, GRADIENTS, 4)


class Doubled(type(Bernoulli(1.0).build(2))):
    """Workers list a partition twice."""

    def assignment(self, worker):
        return super().assignment(worker) * 2


def test_partitions_that_are_held_twice_are_caught_by_the_structure():
    code = Bernoulli(2.0).build(6)
    mutant = Doubled(code.rows, code.rule, code.decoder, code.collect)

    check_held(code)
    caught(check_held, mutant)

"""The recursions of the straggler semantics: by hand, on the published trace, in order, and as the emulator runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.cluster import ErasureHeadDelays
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers
from emuml.shapes import Count
from emuml.theory import round_ends
from tests.theory.laws import rules

SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")


def code_of(replication, collect, workers=30):
    declaration = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    return declaration.build(workers, collect=collect)


# Three workers, two answers, four rounds. Worker 2 is stale from round 0 on and worker 0 in rounds 2 and 3.
BY_HAND = np.array([[1.0, 2.0, 9.0], [4.0, 1.0, 1.0], [8.0, 1.0, 2.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("stragglers", "decided", "ended", "drained", "sent"),
    [
        ("cancel", [2, 3, 5, 6], [2, 3, 5, 6], 6, 2 + 2 + 2 + 3),
        # Worker 2 is busy until 9 and then does round 2, which ends at 11; the newest parameters are next.
        ("skip-stale", [2, 6, 11, 12], [2, 6, 11, 12], 14, 2 + 2 + 2 + 1 + 2),
        # Worker 2 ends its rounds at 9, 10, 12, 13; worker 0 at 1, 6, 14, 15; worker 1 at 2, 3, 7, 13.
        ("carry-over", [2, 6, 12, 13], [2, 6, 12, 13], 15, 12),
        ("wait-all", [2, 10, 15, 22], [9, 13, 21, 22], 22, 12),
    ],
)
def test_three_workers_by_hand(stragglers, decided, ended, drained, sent):
    found = round_ends(BY_HAND, Count(3, 2), stragglers)

    assert found.decided_s.tolist() == decided
    assert found.ended_s.tolist() == ended
    assert (found.drained_s, found.sent) == (drained, sent)

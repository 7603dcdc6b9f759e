"""Wrong nodes of adaptive coding, each with one decision changed: exploration with the shipped oracles finds each."""

import numpy as np
import pytest

import emuml.testing as et
from emuml.protocols import AdaptiveCoding
from emuml.protocols.adaptive_coding.chooser import Chooser
from emuml.protocols.adaptive_coding.messages import Parameters
from emuml.protocols.adaptive_coding.server import Server
from emuml.protocols.adaptive_coding.worker import Worker
from emuml.protocols.gradient_coding import FractionalRepetition
from tests.mutants.planted import Swapped

pytestmark = pytest.mark.slow

OURS = AdaptiveCoding((FractionalRepetition(1), FractionalRepetition(2)), (0.5,), window=4, probe=3)
TRAINED = "parameters are those of the logged choices and decode sets"
CHOSEN = "without faults choices follow from the arrivals of the trace"


class OneCode(Worker):
    """Computes by the first code of the menu, whatever is asked."""

    def __init__(self, menu, workload, index):
        super().__init__(menu, workload, index)
        self.menu = [menu[0]] * len(menu)


class OldCode(Worker):
    """Computes by the code of the question before."""

    before = 0

    def keep(self, question):
        super().keep(Parameters(question.life, question.round, question.value, self.before))
        self.before = question.choice


class AllAnswered(Server):
    """Takes those who were cancelled for arrivals."""

    def learn(self, ctx):
        for worker in range(self.code.workers):
            self.arrived_s.setdefault(worker, ctx.now)
        super().learn(ctx)


class OnlyAnswers(Server):
    """Knows nothing of those who were cancelled."""

    def learn(self, ctx):
        self.disturbed |= set(range(self.code.workers)) - self.arrived_s.keys()
        super().learn(ctx)


class SinceTheStart(Server):
    """Measures from the start of the run."""

    def learn(self, ctx):
        self.opened_s = 0.0
        super().learn(ctx)


class Remembers(Server):
    """Keeps its experience when it is started again: a restarted server would choose what nobody can repeat."""

    kept = Chooser(OURS.menu(3), OURS.settings, 1)
    kept.observe(kept.choose(), np.array([1.0, 2.0, 3.0]), np.ones(3, bool), np.ones(3, bool))

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        self.chooser = self.kept


@pytest.mark.parametrize(
    ("nodes", "oracle"),
    [
        ({"worker": OneCode}, TRAINED),
        ({"worker": OldCode}, TRAINED),
        ({"server": AllAnswered}, CHOSEN),
        ({"server": OnlyAnswers}, CHOSEN),
        ({"server": SinceTheStart}, CHOSEN),
        ({"server": Remembers}, CHOSEN),
    ],
    ids=lambda value: next(iter(value.values())).__name__ if isinstance(value, dict) else "",
)
def test_each_is_found_by_an_oracle_made_for_it(nodes, oracle):
    wrong = Swapped(OURS, **nodes)
    found = et.explore(
        lambda: wrong,
        et.shipped(OURS),
        runs=60,
        clusters=et.clusters(workers=(3, 3), rounds=(8, 12)),
        faults=et.faults(),
        shrinks=False,
    )

    assert found.failure is not None
    assert found.failure.found.signature.name == oracle

"""The toys of the benchmark: right ones are right, bugs are found, and both forms of them do the same."""

import asyncio
import selectors

import pytest

import emuml.testing as et
from benchmarks.explore_peers import ONE, trier_of
from benchmarks.toys import tasks
from benchmarks.toys.nodes import TOYS
from emuml.testing.scenario import Scenario

BUGS = [(name, bug) for name, toy in TOYS.items() for bug in toy.bugs]


class Virtual(asyncio.SelectorEventLoop):
    """A loop whose time goes to the next timer at once."""

    def __init__(self):
        self.now = 0.0
        super().__init__(selectors.DefaultSelector())

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()


@pytest.mark.parametrize("name", TOYS)
def test_right_toys_are_right(name):
    toy = TOYS[name]
    assert et.explore(toy.make(), toy.describe, 60, clusters=ONE, faults=toy.faults).ok


@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_planted_bugs_are_found(name, bug):
    toy = TOYS[name]
    found = et.explore(toy.make(bug), toy.describe, 200, clusters=ONE, faults=toy.faults).failure
    assert len(found.scenario.faults) + len(found.scenario.deviations) <= 1


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("late", [0, 2])
def test_tasks_and_nodes_take_the_same_time_and_ask_as_often(name, late):
    asked, held = [], []

    def pick(low, high):
        if high == tasks.LATE:
            asked.append(high)
            return late
        return low

    with asyncio.Runner(loop_factory=Virtual) as runner:
        runner.run(tasks.run(name, pick, held.append, {}))
        ended_s = runner.get_loop().time()

    names = []

    def choose(choice, n):
        kind = choice.partition("/")[0]
        if kind in ("message", "compute", "storage"):
            names.append(choice)
            return late
        return 0

    run = trier_of(TOYS[name], "").run(Scenario(workers=1, rounds=1), choose).run
    assert held[0]()
    assert ended_s == pytest.approx(run.duration_s, abs=1e-9)
    assert len(asked) == len(names)

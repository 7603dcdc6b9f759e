"""The toys of the benchmark: right ones are right, bugs are found, and both forms of them do the same."""

import asyncio
import selectors
from functools import partial

import pytest

import emuml.testing as et
from benchmarks import explore_peers
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


def test_a_contestant_that_is_not_installed_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr(explore_peers, "find_spec", lambda package: None if package == "detangle" else object())
    taking, left_out = explore_peers.contestants()

    assert left_out == {"detangle": "detangle is not installed"}
    assert "detangle" not in taking
    assert {"portfolio", "Hypothesis, one seed"} <= set(taking)


def test_searches_are_counted_by_bug():
    found = explore_peers.searches({"portfolio": partial(explore_peers.ours, "portfolio")}, 100, 1)
    figures = explore_peers.found_figures(found, {"x": "why"})

    assert list(figures) == ["found, portfolio"]
    figure = figures["found, portfolio"]
    assert (figure.value, figure.target, figure.details["left out"]) == (4.0, 4.0, {"x": "why"})
    assert figure.details["answers of any round"]["found"] == 1
    assert figure.details["answers of any round"]["faults + deviations"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("draws", [explore_peers.by_choice, explore_peers.by_seed])
def test_hypothesis_searches_the_same_toys(draws):
    found = explore_peers.hypothesis(draws, "keeper", "number and proof in two saves", 0, 100)
    assert found.runs is not None
    assert explore_peers.hypothesis(draws, "keeper", "", 0, 20).runs is None

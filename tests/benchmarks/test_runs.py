"""Benchmarks of real runs: the bound that they are held against, and the figures they make of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import emuml
from benchmarks import csr, erasurehead_tcp, mutants, script, simpy_events, start, timing_kernels, update_times


def test_the_bound_is_the_emulated_time() -> None:
    assert erasurehead_tcp.least_s(100) == pytest.approx(31.52, abs=0.005)
    given = erasurehead_tcp.experiment(10)
    assert emuml.run(given).duration_s == pytest.approx(erasurehead_tcp.least_s(10), abs=1e-9)


def test_figures_of_starts_take_the_median_time_and_the_largest_size() -> None:
    runs: list[Any] = [
        SimpleNamespace(run=SimpleNamespace(statistics={"start_s": start_s, "max_rss_bytes": peak * 1e6}))
        for start_s, peak in [(9.0, 50.0), (4.0, 61.0), (5.0, 40.0)]
    ]
    figures = start.figures_of(runs)
    assert (figures["start_s"].value, figures["node_peak_mb"].value) == (5.0, 61.0)
    assert (figures["start_s"].reached, figures["node_peak_mb"].reached) == (True, False)
    assert start.figures_of(runs[:1])["start_s"].reached is False


def test_all_ways_to_sum_sparse_rows_agree() -> None:
    features = csr.features_of(f"{csr.TALL}:200")
    rows = range(10, 60)
    for ways in (csr.gradients(features, rows), csr.sums(features, rows)):
        found = {name: way().copy() for name, way in ways.items()}
        for name, value in found.items():
            np.testing.assert_allclose(value, found[csr.OURS], rtol=1e-11, atol=1e-13, err_msg=name)


def test_gradients_of_a_run_are_counted_by_what_was_decoded() -> None:
    rows = [{"round": 0}, {"covered_set": "0x201"}, {"covered_set": "0x3"}]
    result: Any = SimpleNamespace(metrics=SimpleNamespace(rows=rows))
    assert csr.decoded(result) == {0: 2, 1: 1, 9: 1}


@pytest.mark.slow
def test_a_whole_sparse_run_is_taken_apart_in_a_fresh_process() -> None:
    run = csr.in_a_fresh_process(3, 500)
    covered = [row["covered"] for row in emuml.run(csr.experiment(3, 500)).metrics.rows[1:]]
    assert run["gradients"] == sum(covered)
    assert run["peak_mib"] < csr.PEAK_MIB
    assert all(value > 0 for value in run.values())


def test_figures_of_a_sparse_run_leave_out_data_and_metrics() -> None:
    run = {"wall_s": 12.0, "cpu_s": 11.0, "peak_mib": 600.0, "data_s": 2.0, "metrics_s": 5.0, "scipy_s": 6.0}
    seconds, peak, alone, whole = csr.figures_of(run).values()
    assert (seconds.value, peak.value, peak.reached) == (12.0, 600.0, True)
    assert (alone.ratio, alone.reached) == (1.5, True)
    assert whole.ratio == pytest.approx(6 / 11, abs=5e-4)
    assert seconds.details == run


@pytest.mark.slow
def test_planted_bugs_are_counted_by_seeds_and_their_sizes_by_campaigns() -> None:
    by_id = {mutant.id: mutants.figure(mutant, 2) for mutant in mutants.MUTANTS if mutant.id in ("GC3", "GC5", "X7")}
    assert {name: figure.value for name, figure in by_id.items()} == {"GC3": 2, "GC5": 2, "X7": 2}
    assert by_id["GC5"].reached
    assert [seed["size"] for seed in by_id["GC5"].details["seeds"]] == [1, 1]  # type: ignore[attr-defined]
    whole = mutants.summary(by_id)
    assert (whole["found"].value, whole["found"].target) == (6, 6)
    assert (whole["shrunk size, median"].value, whole["shrunk size, most"].value) == (0.5, 1)


def test_both_forms_of_the_benchmark_do_the_same() -> None:
    assert {script.emulate(form, 3, 4) for form in script.FORMS} == {4 + 2 * 3 * 4}
    lives = {form: script.alive(form) for form in script.FORMS}
    event = script.fx.Received(script.MASTER, script.Ask(3))
    assert lives["scripts"].handle(event, 1.0) == lives["handlers"].handle(event, 1.0)
    assert {script.feed(life, 10) for life in lives.values()} == {10}


@pytest.mark.slow
def test_scripts_and_handlers_are_measured_in_turns() -> None:
    figures = script.measure(brief=True)
    assert {name: figure.target for name, figure in figures.items()} == {
        "emulated, 10 workers": None,
        "by hand": None,
        "added_us": None,
    }


def test_emulated_pushes_are_held_against_the_chain() -> None:
    found = update_times.figure(workers=2, staleness=1, pushes=600)
    assert found.value is not None
    assert found.value < 0.2  # four standard errors of so few pushes
    assert found.details["chain_hz"] == 1.6


def test_every_contestant_of_timing_has_the_same_rounds_and_pushes() -> None:
    workers, rounds, pushes = 40, 200, 8_000
    (simpy_s, numpy_s), ours_s = (
        (timing_kernels.simpy_rounds(workers, rounds), timing_kernels.numpy_rounds(workers, rounds, workers)),
        timing_kernels.sample.round_times(timing_kernels.LAW, timing_kernels.All(workers), rounds, 1).ended_s[-1],
    )
    assert simpy_s == pytest.approx(numpy_s)  # the same draws, added in another order
    assert ours_s == pytest.approx(numpy_s, rel=0.09)  # four standard errors of other draws
    barrier = timing_kernels.SSP(timing_kernels.SLACK)
    found = timing_kernels.sample.push_times(timing_kernels.LAW, barrier, workers, pushes, 1).at_s[-1]
    assert timing_kernels.simpy_pushes(workers, pushes) == pytest.approx(found, rel=0.09)


@pytest.mark.slow
def test_timing_is_measured_in_turns() -> None:
    figures = timing_kernels.measure(brief=True)
    assert {figure.target for figure in figures.values()} == {100.0, 8.0, 0.5}
    assert len(figures) == 8


def test_simpy_programs_differ_in_their_import_alone_and_give_one_trace() -> None:
    builds = simpy_events.programs("parameter_server")
    environments = [type(build(2, 1)[0]).__module__ for build in builds.values()]
    assert len(set(environments)) == 2
    (_, ours), (_, theirs) = (simpy_events.run_s(build, (20, 3), frozen=False) for build in builds.values())
    assert (ours, len(ours)) == (theirs, 20 * 3 * 2 * 8)


def test_programs_with_other_traces_are_not_compared() -> None:
    one, other = simpy_events.programs("timeouts").values()
    with pytest.raises(AssertionError, match="give different traces"):
        simpy_events.alternate({"a": one, "b": lambda *size: other(3, 3)}, (2, 2), 1, frozen=False)


@pytest.mark.slow
def test_simpy_programs_are_measured_in_turns() -> None:
    figures = simpy_events.measure(brief=True)
    assert {figure.target for figure in figures.values()} == {5.0, 12.0, 1000.0}
    assert len(figures) == 4

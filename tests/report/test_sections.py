"""What sections draw and say, from runs and from rows that are made up."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.experiment.result import Metrics
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import SSP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers
from emuml.report.figure import Column, Shown, by_round
from emuml.report.html import page
from emuml.report.markup import to_text
from emuml.report.sections import coverage, decoding, quality, round_times, sent, staleness, stragglers, timelines
from emuml.report.traffic import Flow, traffic
from emuml.report.view import View
from emuml.workloads import GradientDescent, LogisticRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


def ran(collect: int | None = 4, law: Any = LAW, rounds: int = 40, **changes: Any) -> View:
    protocol = GradientCoding(FractionalRepetition(2), collect, **changes)
    cluster = Cluster(workers=6, compute=law)
    return View.of_result(emuml.run(emuml.Experiment(LogisticRegression(), protocol, cluster, rounds=rounds, seed=5)))


@pytest.fixture(scope="module")
def partly() -> View:
    return ran()


@pytest.fixture(scope="module")
def exact() -> View:
    return ran(collect=None)


def text_of(section: Any, *views: View) -> str:
    made = section(Shown.of(views))
    return "" if made is None else to_text(made)


def with_rows(view: View, **columns: Any) -> View:
    """Return a view with further columns from its first round on; None takes a column away."""
    rows = [dict(view.metrics.rows[0])]
    for i, row in enumerate(view.metrics.rows[1:]):
        rows.append({name: value for name, value in row.items() if columns.get(name, 0) is not None})
        rows[-1] |= {name: values[i] for name, values in columns.items() if values is not None}
    return replace(view, metrics=Metrics(rows))


def test_groups_are_counted_from_the_sets_that_were_logged(partly: View) -> None:
    counts = coverage.decoded_counts(partly, 3)
    assert counts is not None
    assert counts.rounds == 40
    assert counts.decoded.sum() == np.nansum(partly.metrics["covered"])


def test_bits_of_a_set_are_its_groups(partly: View) -> None:
    rows = [{"covered_set": text} for text in ("0x1", "0x401", "0x0", hex(1 << 10))]
    counts = coverage.decoded_counts(replace(partly, metrics=Metrics(rows)), 11)
    assert counts is not None
    assert counts.decoded.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_coverage_by_chance_is_called_so(partly: View) -> None:
    text = text_of(coverage.section, partly)
    assert "All groups lie in the band" in text
    assert "expected, 0.9333" in text  # 1 - C(4,4)/C(6,4)
    assert "band of chance" in text


def test_a_group_that_is_always_late_is_named_with_its_partitions() -> None:
    delays = np.random.default_rng(1).exponential(0.5, (40, 6))
    delays[:, 2:4] += 20.0
    text = text_of(coverage.section, ran(law=DelayTrace(delays)))
    assert "Group 1 (partitions 2-3) was never decoded" in text
    assert "biased" in text


def test_a_group_that_is_often_late_is_named(partly: View) -> None:
    sets = ["0x7" if i % 2 else "0x3" for i in range(40)]
    text = text_of(coverage.section, with_rows(partly, covered_set=sets))
    assert "Group 2 (partitions 4-5) was decoded less often than chance allows" in text


def test_runs_that_did_not_log_sets_say_so(partly: View) -> None:
    text = text_of(coverage.section, with_rows(partly, covered_set=None))
    assert "did not log which groups were decoded" in text
    assert "share of groups decoded" in text


def test_exact_runs_are_told_in_words(exact: View, partly: View) -> None:
    covered, decoded = text_of(coverage.section, exact), text_of(decoding.section, exact)
    assert "All 3 groups answered in each of the 40 rounds" in covered
    assert "All 40 rounds exact" in decoded
    assert "<figure" not in covered + decoded
    both = text_of(decoding.section, exact, replace(partly, label="other"))
    assert "all 40 rounds exact" in both
    assert both.count("<figure") == 1


def test_errors_have_their_mean_and_their_expectation(partly: View) -> None:
    text = text_of(decoding.section, partly)
    errors = partly.metrics["decode_error"][1:]
    assert f"mean {errors.mean():.4g} partitions, in closed form 0.4." in text  # 6 C(4,4)/C(6,4)
    assert "expected, 0.4<" in text


def test_round_times_have_the_closed_form_over_them(partly: View) -> None:
    text = text_of(round_times.section, partly)
    assert text.count('class="line theory"') == 4  # two keys, two drawings
    assert "KS bound" in text
    histogram = text.partition("<figcaption>Round times")[2]
    expected = [float(row) for row in re.findall(r"<td>([\d.]+)</td></tr>", histogram)]
    assert 34 < sum(expected) < 40  # of 40 rounds; a few are expected beyond the first and the last that were seen
    assert "without" not in text


def test_without_a_closed_form_words_stand_in_its_place() -> None:
    text = text_of(round_times.section, ran(stragglers="carry-over"))
    assert "This run is drawn without closed forms: no closed form is known" in text
    assert "KS" not in text
    assert "difference" not in text
    assert 'class="line theory"' not in text


def test_seconds_logged_stand_beside_those_that_passed() -> None:
    view = ran(stragglers="wait-all")
    logged, elapsed = stragglers.durations(view)
    assert elapsed.sum() == pytest.approx(view.duration_s)
    assert (logged <= elapsed).all()
    assert logged.sum() < 0.7 * elapsed.sum()
    text = text_of(stragglers.section, view)
    assert f"{elapsed.sum() / logged.sum():.3g} times as much" in text
    assert "elapsed: until the next one started" in text


def test_late_answers_and_the_drain_are_told() -> None:
    view = ran(stragglers="carry-over")
    text = text_of(stragglers.section, view)
    assert f"{np.nansum(view.metrics['stale']):,.0f} answers came to rounds that were over" in text
    assert view.drain_s is not None
    assert view.drain_s > 0
    assert "to finish what they had queued" in text


def test_runs_that_cancel_have_no_such_section(partly: View) -> None:
    assert stragglers.section(Shown.of([partly])) is None


def test_bytes_are_those_of_the_trace(partly: View) -> None:
    counted = traffic(partly.trace, partly.rounds)
    sends = [row for row in partly.trace if row[2] == "send"]
    assert counted.total_bytes.sum() + counted.after_bytes == sum(row[5] for row in sends)
    assert sum(one.sum() for one in counted.messages.values()) == len(sends)
    down, up = Flow("Parameters", "server", "worker"), Flow("Gradient", "worker", "server")
    assert set(counted.size_bytes) == {down, up}
    assert counted.messages[down].tolist() == [6.0] * 40
    arrivals = partly.metrics["arrivals"][1:]
    assert (counted.messages[up] >= arrivals).all()


def test_what_is_sent_after_the_last_round_stands_apart() -> None:
    rows = [
        (0.0, "server-0", "send", "worker-0", "P", 10),
        (1.0, "worker-0", "send", "server-0", "G", 5),
        (1.0, "server-0", "publish", 1),
        (1.5, "worker-0", "send", "server-0", "G", 7),
    ]
    counted = traffic(rows, 1)
    assert counted.total_bytes.tolist() == [15.0]
    assert counted.after_bytes == 7


def test_bytes_of_several_runs_are_totals(partly: View, exact: View) -> None:
    text = text_of(sent.section, partly, replace(exact, label="exact"))
    assert "sent so far" in text
    assert "Parameters, server to worker" not in text
    assert ">server to worker<" in text


def test_every_measure_is_drawn(partly: View) -> None:
    numbers = np.linspace(0.5, 0.9, 40).tolist()
    view = with_rows(partly, auc=numbers, validation_auc=numbers, mse=numbers)
    single = text_of(quality.section, view)
    captions = ["Loss", "Accuracy", "Area under the ROC curve", "Mean square error"]
    assert [single.index(f"<figcaption>{one} over") for one in captions] == sorted(
        single.index(f"<figcaption>{one} over") for one in captions
    )
    assert "validation auc ends at 0.9" in single
    several = quality.chosen(Shown.of([view, view]), "auc")
    assert [one.name for one in several] == ["validation_auc"] * 2
    assert {one.name for one in quality.chosen(Shown.of([view, view]), "loss")} == {"train_loss"}


def test_losses_may_be_drawn_by_logarithms_and_scores_never(partly: View) -> None:
    numbers = np.geomspace(0.01, 1.0, 40).tolist()
    view = with_rows(partly, train_loss=numbers, validation_loss=numbers, accuracy=numbers, validation_auc=numbers)
    loss, *scores = text_of(quality.section, view).split("</figure>")[:-1]
    assert "loss (logarithmic)" in loss
    assert len(scores) == 2
    assert "logarithmic" not in "".join(scores)


def test_late_work_is_drawn_as_late() -> None:
    text = text_of(timelines.section, ran(stragglers="skip-stale"))
    assert 'class="late"' in text
    assert "computed too late" in text


def test_long_tables_are_thinned_evenly_and_say_so() -> None:
    rounds = np.arange(1000.0)
    text = to_text(by_round([Column("a", rounds, rounds), Column("b", rounds[:10], rounds[:10])], "Numbers", 100))
    assert "Numbers: 100 of 1000 rounds" in text
    assert text.count("<tr>") == 101
    assert ">999<" in text


@pytest.mark.slow
def test_a_report_of_a_thousand_rounds_of_a_hundred_workers_stays_small() -> None:
    protocol = GradientCoding(IgnoreStragglers(), collect=50)
    cluster = Cluster(workers=100, compute=LAW)
    view = View.of_result(emuml.run(emuml.Experiment(LogisticRegression(), protocol, cluster, rounds=1000)))
    assert len(page([view]).encode()) < 500_000
    assert len(page([view] * 12).encode()) < 2_000_000


@pytest.fixture(scope="module")
def stale() -> View:
    protocol = AsyncUpdates(SSP(2))
    workload = LogisticRegression(optimizer=GradientDescent(rate=0.5))
    return View.of_result(emuml.run(emuml.Experiment(workload, protocol, Cluster(6, compute=LAW), rounds=20, seed=5)))


def test_staleness_is_counted_over_all_rounds(stale: View) -> None:
    tally = stale.tally("staleness")
    assert tally.total() == 20 * 6
    leads = stale.tally("lead")
    assert 0 < max(leads) <= 2
    text = text_of(staleness.section, stale)
    mean = sum(value * times for value, times in tally.items()) / 120
    assert f"120 updates, on average {mean:.4g} versions stale, at most {max(tally)}" in text
    assert f"{np.nansum(stale.metrics['blocked_s']):.4g} s in all" in text


def test_updates_and_waiting_are_shared_out_among_the_workers(stale: View) -> None:
    shares, waited_s = stale.tally("worker_updates"), stale.sums("worker_blocked_s")
    assert shares.total() == 20 * 6
    assert sum(waited_s.values()) == pytest.approx(np.nansum(stale.metrics["blocked_s"]), rel=1e-12)
    text = text_of(staleness.section, stale)
    assert "Updates by worker, of 120" in text
    row = f">2</th><td>{shares[2]}</td><td>{shares[2] / 120:.4g}</td><td>{waited_s[2]:.4g}</td>"
    assert row in text


def test_runs_of_former_versions_are_shown_without_shares_of_workers(stale: View) -> None:
    text = text_of(staleness.section, with_rows(stale, worker_updates=None, worker_blocked_s=None))
    assert "Updates by staleness" in text
    assert "Updates by worker" not in text


def test_runs_in_step_have_no_section_on_staleness(partly: View) -> None:
    assert text_of(staleness.section, partly) == ""

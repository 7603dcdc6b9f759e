"""What plans and reports say of runs with exact codes."""

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.experiment.plan import plan
from emuml.explanation.words import notes
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import CyclicMDS, CyclicRepetition, YeAbbe
from emuml.report.html import page
from emuml.report.plan_box import rows
from emuml.report.view import View
from emuml.theory import NoClosedForm, expected_decode_error, expected_round_time
from emuml.workloads import LogisticRegression


def experiment(code, workers, compute=None):
    cluster = Cluster(workers=workers, compute=compute or ShiftedExponential(0.05, 0.5))
    return emuml.Experiment(LogisticRegression(data="two-gaussians:300x4"), GradientCoding(code), cluster, rounds=4)


def notes_of(given):
    return [text for name, text in rows(plan(given)) if name == "note"]


def test_a_plan_tells_the_worst_case_and_warns_where_nothing_would_be_left():
    assert any(
        "3 neighbours" in note and "amplified 62 times" in note for note in notes_of(experiment(CyclicMDS(3), 30))
    )
    (warned,) = [note for note in notes_of(experiment(CyclicMDS(19), 100)) if note.startswith("warning")]
    assert "a relative error of 2.4e-01 in double precision" in warned
    assert "FractionalRepetition(replication=20)" in warned


def test_an_explanation_tells_the_worst_case_of_each_code_and_warns():
    said = list(notes(emuml.explain(experiment(CyclicMDS(19), 100), rounds=2)))

    assert any(line.startswith("cyclic-mds(stragglers=19): warning: if 19 neighbours") for line in said)
    assert any(line.startswith("cyclic-repetition(stragglers=19): if 19 neighbours") for line in said)


def test_theory_and_plans_know_that_nothing_is_missing():
    assert expected_decode_error(CyclicMDS(3), 10) == expected_decode_error(YeAbbe(2, 2), 10, collect=8) == 0.0
    with pytest.raises(NoClosedForm):
        expected_decode_error(CyclicMDS(3), 10, collect=6)
    found = plan(experiment(CyclicRepetition(2), 10))
    assert (found.decoding.covered, found.decoding.error, found.decoding.basis) == (1.0, 0.0, "exact")
    assert found.wall_s > 0


@pytest.mark.parametrize(("tail", "seconds"), [("fixed", 1.2808), ("scaled", 4.5233)])
def test_theory_of_rounds_has_the_times_of_cyclic_codes(tail, seconds):
    law = ShiftedExponential(0.05, 0.5, tail)
    for code in (CyclicRepetition(3), CyclicMDS(3)):
        assert expected_round_time(code, 30, law) == pytest.approx(seconds, abs=5e-5)


def test_a_plan_knows_that_messages_are_short():
    long, short = (
        next(each for each in plan(experiment(code, 10)).messages if each.kind == "answers").most_bytes
        for code in (YeAbbe(3, 1), YeAbbe(0, 4))
    )
    assert long - short == 8 * (5 - 2)  # of four parameters and an intercept


def test_a_report_tells_it_too_and_calls_rounding_exact():
    shown = page([View.of_result(emuml.run(experiment(CyclicMDS(3), 30)))])
    assert "every decoded gradient was the full one" in shown
    assert "If 3 neighbours in the order of the code straggle" in shown
    assert '<p class="warning">Warning: if 19 neighbours' in page(
        [View.of_result(emuml.run(experiment(CyclicMDS(19), 100)))]
    )


def test_a_run_whose_neighbours_straggle_waits_for_more_answers():
    """19 neighbours in the order of the code are late in each round: 81 answers would be drowned in rounding."""
    times_s = np.ones((4, 100))
    times_s[:, 81:] = 2.0 + np.arange(19)
    result = emuml.run(experiment(CyclicMDS(19, "natural"), 100, DelayTrace(times_s)))
    logged = [row for row in result.metrics.rows if "arrivals" in row]

    assert all(81 < row["arrivals"] < 100 for row in logged)
    assert all(row["decode_error"] < 1e-4 for row in logged)
    assert result.parameters == pytest.approx(emuml.run(experiment(CyclicMDS(0), 100)).parameters, rel=1e-2)

"""Weights of the data in runs of codes whose answers mix partitions: counted, judged, drawn."""

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential, WorkerFactors
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import Bernoulli, CyclicRepetition, FractionalRepetition, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Complete
from emuml.report.expected import linear_code
from emuml.report.figure import Shown
from emuml.report.html import page
from emuml.report.markup import to_text
from emuml.report.sections import coverage, weights
from emuml.report.view import View
from emuml.workloads import LogisticRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


def ran(code, collect=None, law=LAW, workers=10, rounds=60):
    cluster = Cluster(workers=workers, compute=law)
    experiment = emuml.Experiment(LogisticRegression(), GradientCoding(code, collect), cluster, rounds=rounds, seed=5)
    return View.of_result(emuml.run(experiment))


def text_of(section, *views):
    made = section(Shown.of(views))
    return "" if made is None else to_text(made)


def test_an_exact_code_weighs_everything_by_one():
    view = ran(CyclicRepetition(2))
    assert "Every part of the data had weight 1 in each of the 60 rounds." in text_of(weights.section, view)
    assert "Noise gain" in text_of(weights.section, view)
    assert text_of(coverage.section, view) == ""


def test_weights_give_the_errors_that_were_logged():
    view = ran(GraphCode(Complete(), tolerance=None), collect=5)
    found = weights.weights_of(view, linear_code(view.experiment))
    errors = view.metrics["decode_error"][1:]
    assert np.sum((found - 1.0) ** 2, axis=1) == pytest.approx(errors, abs=1e-9)
    text = text_of(weights.section, view)
    assert "Mean weight of each partition" in text
    assert "all partitions lie in the band" in text


def test_data_that_only_slow_workers_hold_are_named():
    slow = WorkerFactors(base=LAW, factors=(1.0,) * 7 + (50.0,) * 3)
    view = ran(GraphCode(Complete(), tolerance=None), collect=6, law=slow)
    said = weights.judged(weights.weights_of(view, linear_code(view.experiment)))
    assert said == "Mean weight 0.9933; partitions 0, 1 weigh more than chance allows."


def test_the_band_holds_partitions_that_are_treated_alike():
    """Of 200 samples of 40 rounds and 6 partitions, at most about 2 have anybody outside: 8 are four sigma away."""
    draws = np.random.default_rng(0)
    outside = 0
    for _ in range(200):
        sample = draws.uniform(0.0, 2.0, (40, 6))
        outside += bool(weights.band_of(sample).excludes(sample.mean(axis=0)).any())
    assert outside <= 8


def test_codes_of_groups_have_no_such_section():
    view = ran(FractionalRepetition(2), collect=4)
    assert text_of(weights.section, view) == ""
    assert "Coverage" in text_of(coverage.section, view)


def test_a_page_shows_both_kinds_side_by_side():
    made = page([ran(FractionalRepetition(2), 4), ran(Bernoulli(2.0), 6)])
    assert "Weights of the data" in made
    assert "Coverage" in made

"""ErasureHead reproduced: its configurations have the program's settings, its numbers come out, misses are told.

Reference: arXiv:1901.09671 and its program (hwang595/ErasureHead).
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import emuml
from emuml.cluster import erasurehead_delays
from emuml.theory import round_ends
from emuml.workloads import AcceleratedGradientDescent, GradientDescent
from papers.erasurehead import expected, figures, program, reproduce, trace, training
from papers.erasurehead.schemes import CONFIGS, FOLDER, configured, schemes

TRAINING_ROWS = {"amazon": 26_215, "covertype": 396_112, "kc-house": 17_290, "artificial": 3_000, "program": 3_000}
"""Of the published splits; the program's l2 is one over them."""


@pytest.mark.parametrize("config", sorted(TRAINING_ROWS))
def test_a_configuration_has_the_settings_of_the_program(config: str) -> None:
    experiment = configured(config)
    optimizer = experiment.workload.optimizer
    assert (experiment.cluster.workers, experiment.rounds, experiment.protocol.collect) == (30, 100, 15)
    assert experiment.workload.l2 == pytest.approx(1 / TRAINING_ROWS[config], rel=2e-5)
    assert type(optimizer) is (GradientDescent if config == "program" else AcceleratedGradientDescent)
    decay, rate = {"kc-house": (0.98, 0.1), "covertype": (1.0, 0.1)}.get(config, (1.0, 10.0))
    assert [optimizer.rate_at(i) for i in range(100)] == pytest.approx([rate * decay ** (i + 1) for i in range(100)])


def test_every_configuration_takes_every_scheme() -> None:
    for path in CONFIGS.glob("*.yaml"):
        for scheme in schemes():
            protocol = configured(path.stem, scheme).protocol
            assert protocol.code.build(30, collect=protocol.collect).workers == 30


def test_the_artificial_data_has_the_rows_of_the_program() -> None:
    problem = configured("artificial").workload.problem(0)
    assert problem.features.shape == (3_000, 100)
    assert problem.validation_features.shape == (600, 100)


@pytest.mark.parametrize("scheme", trace.SCHEMES)
def test_recursions_on_the_delays_give_the_expected_seconds(scheme: str) -> None:
    protocol = configured("artificial", scheme).protocol
    rule = protocol.code.build(30, collect=protocol.collect).stop_rule()
    wanted = expected.values("trace")
    for stragglers in trace.SEMANTICS:
        ends = round_ends(erasurehead_delays(), rule, stragglers)
        assert ends.ended_s[-1] / 100 == pytest.approx(wanted[f"{scheme}/{stragglers}"], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["ignore 15", "FRC r=3", "AGC r=3 c=15"])
def test_emulated_rounds_take_the_expected_seconds(scheme: str) -> None:
    measured, runs = trace.seconds(scheme)
    wanted = expected.values("trace")
    assert measured == pytest.approx({name: wanted[f"{scheme}/{name}"] for name in measured}, abs=1e-6)
    if scheme == "AGC r=3 c=15":
        assert all(check.holds for check in expected.compare("trace coverage", trace.coverage(runs["cancel"])))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", sorted(program.OVERHEAD_S))
def test_the_measured_runs_of_the_program_are_emulated_to_two_percent(scheme: str) -> None:
    run = program.emulated(scheme)
    assert run.duration_s == pytest.approx(program.ELAPSED_S[scheme], rel=0.02)
    assert 100 * trace.logged_s(run) == pytest.approx(program.LOGGED_S[scheme], rel=0.02)


def test_every_expected_number_has_a_meaning_a_source_and_a_reason() -> None:
    for name, group in expected.groups().items():
        assert sum(kind in group for kind in expected.TOLERANCES) == 1, name
        assert all(group[key] for key in ("what", "source", "reason", "values")), name


def test_a_number_is_held_against_its_band() -> None:
    found = dict(expected.values("program losses apart"))
    assert all(check.distance == 0 for check in expected.compare("program losses apart", found))
    (miss,) = [one for one in expected.compare("program losses apart", found | {"AUC": 0.002}) if not one.holds]
    assert (miss.name, miss.distance) == ("program losses apart/AUC", pytest.approx(1.5))
    (lost,) = [one for one in expected.compare("program losses apart", found | {"AUC": math.nan}) if not one.holds]
    assert lost.distance == math.inf


def test_standard_errors_are_those_of_what_was_found() -> None:
    found = {name: expected.Sampled(value + 0.2, 0.1) for name, value in expected.values("trace in theory").items()}
    assert {round(check.distance, 9) for check in expected.compare("trace in theory", found)} == {round(2 / 3, 9)}


def test_numbers_on_one_side_only_do_not_hold() -> None:
    found = expected.values("trace coverage") | {"more": 1.0}
    del found["exact rounds"]
    missed = [check.name for check in expected.compare("trace coverage", found) if not check.holds]
    assert missed == ["trace coverage/exact rounds", "trace coverage/more"]
    assert reproduce.figure_of(expected.compare("trace coverage", found)[0]).details["found"] is None


@pytest.mark.slow
def test_a_miss_is_told_and_changes_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = json.loads(expected.EXPECTED.read_text())
    groups["program"]["values"]["FRC r=3"]["logged"] = 200.21
    changed = tmp_path / "expected.json"
    changed.write_text(json.dumps(groups))
    monkeypatch.setattr(expected, "EXPECTED", changed)
    expected.groups.cache_clear()
    try:
        assert reproduce.main(["--only", "program", "--json"]) == 1
    finally:
        expected.groups.cache_clear()
    printed = capsys.readouterr()
    assert "outside of its band: program/FRC r=3/logged: found 51.4" in printed.err
    printed_figures = json.loads(printed.out)
    assert printed_figures["program/wall_s"]["baseline"] == "the published program, 602 s"
    outside = [name for name, figure in printed_figures.items() if figure["value"] > 1]
    assert [name for name in outside if name != "program/wall_s"] == ["program/FRC r=3/logged"]


def test_figures_are_drawn_from_the_numbers_that_are_kept() -> None:
    kept = figures.read()
    for name, draw in figures.FIGURES.items():
        assert draw(kept) == (figures.FOLDER / f"{name}.svg").read_text(), name


def test_the_page_has_the_seconds_that_are_expected() -> None:
    page = (FOLDER / "README.md").read_text()
    wanted = expected.values("trace")
    for scheme in trace.SCHEMES:
        times = [f"{wanted[f'{scheme}/{name}']:.4f}" for name in ("logged", *trace.SEMANTICS)]
        assert re.search(rf"^{scheme} +{' +'.join(times)} +[0-9.]+x +[0-9.]+x$", page, re.MULTILINE), scheme


def test_the_page_has_the_gains_of_the_figures() -> None:
    page, kept = (FOLDER / "README.md").read_text(), figures.read()
    for name in ("amazon-access-twin", "covertype", "kc-house", "two-gaussians:3600x100"):
        target = training.CLOSE * kept[name]["uncoded"]["loss"][-1]
        reached = {
            scheme: next((t for t, loss in zip(*curve.values(), strict=True) if loss <= target), math.inf)
            for scheme, curve in kept[name].items()
        }
        for scheme in ("FRC r=3", training.AGC, "AGC covered"):
            assert f"| {reached['uncoded'] / reached[scheme]:.2f}x |" in page, (name, scheme)
        wanted = expected.values(name)
        for scheme in (training.AGC, "AGC covered"):
            ratio = wanted[f"{scheme}/train loss"] / wanted["uncoded/train loss"]
            assert f"| {ratio:.4f} |" in page, (name, scheme)


def test_data_that_cannot_be_used_are_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    (tmp_path / "kc-house.npz").write_bytes(b"not data")
    assert reproduce.main(["--only", "kc-house"]) == 2
    assert capsys.readouterr().err.startswith("kc-house: workload.data")


def test_a_configuration_runs_as_it_stands() -> None:
    experiment = configured("artificial", None, trace.SMALL, "rounds=2")
    rule = experiment.protocol.code.build(30, collect=15).stop_rule()
    ends = round_ends(erasurehead_delays(2), rule, "cancel")
    assert emuml.run(experiment).duration_s == pytest.approx(ends.ended_s[-1], abs=1e-12)

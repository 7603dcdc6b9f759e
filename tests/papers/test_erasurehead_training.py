"""What is learned under each scheme is what a plain loop learns; times under both load models and many workers.

Reference: arXiv:1901.09671, section on experiments, and its program (hwang595/ErasureHead) for settings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import emuml
from emuml.cluster import erasurehead_delays
from emuml.errors import UserError
from emuml.workloads.data import load
from papers.erasurehead import expected, loads, plain, sizes, training
from papers.erasurehead.schemes import configured, schemes
from tests.datafiles import data_file

DELAYS = erasurehead_delays()


def plainly(config: str, scheme: str, rows: Any, rounds: int = 100) -> tuple[Any, dict[str, float]]:
    given = training.experiment(config, scheme, rows)
    optimizer, problem = given.workload.optimizer, given.workload.problem(0)
    decay = getattr(optimizer.schedule, "decay", 1.0)
    losses, parameters = plain.train(problem, plain.by_delays(scheme, DELAYS[:rounds]), optimizer.rate, decay)
    return losses, plain.quality(problem, losses, parameters)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", training.SMALL)
def test_artificial_data_are_learned_as_expected(scheme: str) -> None:
    _, rows = training.data_of("artificial")
    found = training.quality(training.emulated("artificial", scheme, rows))
    wanted = expected.values("two-gaussians:3600x100")
    assert found == pytest.approx({key: wanted[f"{scheme}/{key}"] for key in found}, rel=1e-6)
    assert plainly("artificial", scheme, rows)[1] == pytest.approx(found, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "name"), [("kc-house", "kc-house-twin:900"), ("amazon", "amazon-access-twin:900")])
def test_sparse_data_are_learned_as_in_a_plain_loop(config: str, name: str) -> None:
    rows = load(name, 0, "data")
    run = emuml.run(training.experiment(config, training.AGC, rows))
    losses, quality = plainly(config, training.AGC, rows)
    np.testing.assert_allclose(run.metrics["train_loss"], losses, rtol=1e-9)
    assert training.quality(run.metrics) == pytest.approx(quality, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kc-house", "kc-house-twin"])
def test_house_prices_are_learned_as_expected(name: str) -> None:
    if name == "kc-house":
        data_file("ml/kc_house_data.csv.xz")
    found = training.quality(training.emulated("kc-house", training.AGC, load(name, 0, "data")))
    wanted = expected.values(name)
    assert found == pytest.approx({key: wanted[f"{training.AGC}/{key}"] for key in found}, rel=1e-6)


@pytest.mark.soak
@pytest.mark.parametrize("config", ["amazon", "covertype"])
def test_large_data_are_learned_as_expected(config: str) -> None:
    part = training.train(config, lambda words: None)
    assert [str(check) for check in part.checks() if not check.holds] == []


def test_a_twin_stands_in_for_data_that_are_not_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    assert training.data_of("kc-house")[0] == "kc-house-twin"
    (tmp_path / "kc-house.npz").write_bytes(b"not data")
    with pytest.raises(UserError, match="kc-house"):
        training.data_of("kc-house")


def test_the_plain_loop_decodes_what_a_run_decodes() -> None:
    run = emuml.run(configured("artificial", None, "workload.data=two-gaussians:300x5", "rounds=20"))
    assert list(plain.by_run(run)) == list(plain.by_delays(training.AGC, DELAYS[:20]))


def test_waiting_for_all_keeps_the_losses_and_takes_the_time_of_all() -> None:
    settings = "workload.data=two-gaussians:300x5", "rounds=20"
    waiting, cancelled = (
        emuml.run(configured("artificial", None, *settings, f"protocol.stragglers={stragglers}"))
        for stragglers in ("wait-all", "cancel")
    )
    assert waiting.metrics["train_loss"].tolist() == cancelled.metrics["train_loss"].tolist()
    assert waiting.metrics["time_s"][1:] == pytest.approx(training.waiting_for_all(training.AGC)[:20])


@pytest.mark.parametrize("scheme", loads.compared())
def test_closed_forms_under_both_models_are_the_expected_ones(scheme: str) -> None:
    found = {f"{model} {shift_s}": loads.closed_form(scheme, model, shift_s)[0] for model, shift_s in loads.LAWS}
    wanted = expected.values("loads")
    assert found == pytest.approx({law: wanted[f"{scheme}/{law}"] for law in found}, abs=5.1e-5)


def test_schemes_that_take_the_same_time_are_compared_once() -> None:
    assert schemes().keys() - set(loads.compared()) == {"ignore 15 unscaled", "AGC unbiased", "AGC covered"}


@pytest.mark.slow
@pytest.mark.parametrize("model", loads.MODELS)
def test_emulated_rounds_under_a_model_take_what_theory_says(model: str) -> None:
    found = loads.emulated("AGC r=3 c=15", model, 0.05)
    assert abs(found.value - expected.values("loads")[f"AGC r=3 c=15/{model} 0.05"]) < 3 * found.error


def test_what_is_said_of_the_models_follows_from_the_numbers() -> None:
    theory: dict[str, dict[str, float]] = {}
    for name, value in expected.values("loads").items():
        scheme, law = name.rsplit("/", 1)
        theory.setdefault(scheme, {})[law] = value
    said = loads.conclusions(theory)
    assert said[0].startswith("FRC r=3 is 3.21 times as fast as uncoded under A, 1.27 times under B")
    assert [sentence for sentence in said if "beats every exact code" in sentence] == said[-2:]
    theory["ignore 3"]["B 0.5"] = 2.6
    assert "does not beat every exact code" in loads.conclusions(theory)[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "workers"), [("half", 1000), ("AGC r=3", 100), ("FRC r=5", 1000)])
def test_emulated_rounds_of_many_workers_take_what_theory_says(rule: str, workers: int) -> None:
    given = sizes.experiment(rule, workers)
    wanted = expected.values("sizes emulated")[f"{rule}/{workers}"]
    assert sizes.closed_form(given)[0] == pytest.approx(wanted, abs=1e-6)
    found = sizes.emulated(given)
    assert abs(found.value - wanted) < 3 * found.error

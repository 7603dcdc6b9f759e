"""What reports know of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.errors import FormatError, UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.report.facts import facts
from emuml.report.view import View, brief
from emuml.theory import expected_round_time
from emuml.workloads import LinearRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


def result(**changes: object) -> emuml.Result:
    given = {"workload": LinearRegression(), "protocol": GradientCoding(), "cluster": Cluster(workers=3, compute=LAW)}
    return emuml.run(emuml.Experiment(**{"rounds": 5, "seed": 2, **given, **changes}))  # type: ignore[arg-type]


def test_round_times_add_up_to_the_duration() -> None:
    view = View.of_result(result())
    assert len(view.round_times_s) == view.rounds == 5
    assert view.round_times_s.sum() == pytest.approx(view.duration_s, rel=1e-12)


def test_the_closed_form_is_that_of_the_protocol() -> None:
    code = FractionalRepetition(replication=3)
    view = View.of_result(result(protocol=GradientCoding(code=code, collect=2)))
    assert view.expected_round_s() == expected_round_time(code, 3, LAW, collect=2)


def test_time_to_a_loss_is_the_first_time_it_was_observed() -> None:
    view = View.of_result(result())
    losses = view.metrics["train_loss"]
    assert view.seconds_to(losses[2]) == view.metrics["time_s"][2]
    assert view.seconds_to(losses.min() - 1) is None


def test_facts_of_a_delay_trace_show_its_shape() -> None:
    trace = DelayTrace(np.full((5, 3), 0.25))
    view = View.of_result(result(cluster=Cluster(workers=3, compute=trace)))
    assert dict(facts(view))["cluster"] == "cluster(workers=3, compute=delay-trace(array=array(5, 3)))"
    assert view.expected_round_s() == pytest.approx(0.25)


def test_facts_name_the_faults_that_were_planned() -> None:
    faults = FaultPlan([Crash("worker-1", after=("round", 3))])
    view = View.of_result(result(faults=faults))
    assert dict(facts(view))["faults"] == "crash(node=worker-1, after=[round, 3])"
    assert "faults" not in dict(facts(View.of_result(result())))


def test_brief_leaves_defaults_out() -> None:
    assert brief(GradientCoding()) == "gradient-coding"
    assert brief(GradientCoding(collect=3)) == "gradient-coding(collect=3)"


def test_a_cut_trace_shows_what_it_has(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    emuml.run(result().experiment, out=folder)
    whole = View.of_folder(folder).trace
    data = (folder / "trace").read_bytes()
    (folder / "trace").write_bytes(data[: len(data) // 2])
    (folder / "summary.json").unlink()
    view = View.of_folder(folder)
    assert 0 < len(view.trace) < len(whole)
    assert view.trace == whole[: len(view.trace)]
    assert view.stopped == "the run did not finish"


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no config\.yaml; allowed: a run directory"):
        View.of_folder(tmp_path)
    emuml.run(result().experiment, out=tmp_path / "run")
    (tmp_path / "run" / "trace").write_bytes(b"something else altogether")
    with pytest.raises(FormatError, match="no trace file"):
        View.of_folder(tmp_path / "run")

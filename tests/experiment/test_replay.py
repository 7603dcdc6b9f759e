"""Replay of results and run directories: bit-equal, or an error that names the first difference."""

import json

import msgspec
import numpy as np
import pytest

from emuml import Crash, FaultPlan, replay, run
from emuml.cli.main import status
from emuml.errors import Diverged, FormatError, RunFailed, UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression
from tests.experiment.small import rows_of, small
from tests.experiment.test_run import CRASHES

PROTOCOLS = [
    GradientCoding(Uncoded()), GradientCoding(IgnoreStragglers(), collect=3),
    GradientCoding(FractionalRepetition(2, "covered"), collect=4),
]  # fmt: skip
PLANS = {
    "no faults": FaultPlan(),
    "workers": CRASHES,
    "server at its own log": FaultPlan((Crash("server-0", after=("round", 4), restart_after_s=0.5),)),
    "server by the clock": FaultPlan((Crash("server-0", at_s=1.3, restart_after_s=0.5),)),
}


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["uncoded", "k-of-n", "approximate"])
def test_a_result_is_replayed_to_the_last_bit(protocol, plan, journal):
    result = run(small(protocol=protocol, faults=PLANS[plan]), journal=journal)
    again = replay(result)

    assert again.engine == ("replay" if journal else "des")
    assert again.parameters_sha256 == result.parameters_sha256
    assert rows_of(again) == rows_of(result)
    assert (again.rounds, again.duration_s, again.stopped) == (result.rounds, result.duration_s, result.stopped)


@pytest.fixture
def recorded():
    return run(small(faults=CRASHES), journal=True)


def with_step(result, key, position, **changed):
    """Change one step of one journal of a result."""
    journal = result.run.journals[key]
    journal.steps[position] = msgspec.structs.replace(journal.steps[position], **changed)


def test_a_step_whose_effects_differ_is_named(recorded):
    key = ("worker-2", 1)
    step = recorded.run.journals[key].steps[5]
    with_step(recorded, key, 5, effects=step.effects ^ 1)
    with pytest.raises(Diverged) as caught:
        replay(recorded)

    assert (caught.value.node, caught.value.index) == ("worker-2", 5)
    assert caught.value.recorded == f"{step.effects ^ 1:08x}"
    assert caught.value.replayed == f"{step.effects:08x}"


def test_a_message_whose_content_differs_is_named(recorded):
    steps = recorded.run.journals["server-0", 1].steps
    position = next(step.index for step in steps if step.kind == "message" and step.index > 9)
    *origin, digest = steps[position].details
    with_step(recorded, ("server-0", 1), position, details=[*origin, digest ^ 4])
    with pytest.raises(Diverged) as caught:
        replay(recorded)

    assert (caught.value.node, caught.value.index) == ("server-0", position)
    assert caught.value.field == f"message from {origin[0]}"


def test_a_result_of_a_task_that_differs_is_told_apart_from_the_protocol(recorded):
    steps = recorded.run.journals["worker-0", 1].steps
    position = next(step.index for step in steps if step.kind == "computed")
    tag, digest, seconds = steps[position].details
    with_step(recorded, ("worker-0", 1), position, details=[tag, digest ^ 1, seconds])
    with pytest.raises(Diverged, match="the kernel, BLAS or machine differs, not the protocol") as caught:
        replay(recorded)

    assert (caught.value.node, caught.value.index) == ("worker-0", position)


def test_messages_in_another_order_are_named(recorded):
    steps = recorded.run.journals["server-0", 1].steps
    first = next(step.index for step in steps if step.kind == "message")
    details = steps[first].details, steps[first + 1].details
    with_step(recorded, ("server-0", 1), first, details=details[1])
    with_step(recorded, ("server-0", 1), first + 1, details=details[0])
    try:
        again = replay(recorded)
    except RunFailed as error:
        assert "server-0" in str(error)  # noqa: PT017
    else:
        assert again.parameters_sha256 == recorded.parameters_sha256


def test_a_journal_that_was_cut_says_where_it_ends(recorded):
    journal = recorded.run.journals["worker-3", 1]
    del journal.steps[4:]
    with pytest.raises(RunFailed, match=r"the journals were cut.*server-0 at index \d+ needs message"):
        replay(recorded)


def test_another_result_than_the_one_recorded_is_named(recorded):
    for result in (recorded, run(small(faults=CRASHES))):
        result.parameters = result.parameters + 1e-16 * np.abs(result.parameters).max() * 8
        with pytest.raises(Diverged, match="parameters_sha256"):
            replay(result)


def test_an_emulated_run_whose_trace_differs_is_named():
    result = run(small())
    result.trace.rows[7] = (*result.trace.rows[7][:-1], "something else")
    with pytest.raises(Diverged, match="index 7 in trace"):
        replay(result)


# Folders


@pytest.mark.slow
def test_a_folder_is_replayed(tmp_path):
    result = run(small(faults=CRASHES), out=tmp_path / "one")

    for path in (tmp_path / "one", f"{tmp_path}/latest"):
        assert replay(path).parameters_sha256 == result.parameters_sha256


def test_a_folder_with_other_parameters_is_refused(tmp_path):
    result = run(small(), out=tmp_path / "one")
    np.save(tmp_path / "one" / "parameters.npy", result.parameters + 1.0)
    with pytest.raises(Diverged, match="parameters_sha256"):
        replay(tmp_path / "one")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"there is no config\.yaml"):
        replay(tmp_path)


def test_a_real_run_that_kept_no_journals_cannot_be_replayed(tmp_path):
    settings = RuntimeSettings(processes="shared", journal=False)
    deployed = run(small(), "tcp", out=tmp_path / "one", runtime=settings)
    for source in (deployed, tmp_path / "one"):
        with pytest.raises(UserError, match="kept no journals"):
            replay(source)


@pytest.mark.slow
def test_what_was_compared_is_said(tmp_path):
    run(small(), out=tmp_path / "one")
    assert replay(tmp_path / "one").compared == ("trace", "parameters")
    assert replay(run(small(), journal=True)).compared == ("journals", "parameters")


@pytest.fixture
def cut(tmp_path):
    """Return the folder of a run that was interrupted: half of its trace, and no results."""
    folder = tmp_path / "cut"
    run(small(), out=folder)
    trace = folder / "trace"
    trace.write_bytes(trace.read_bytes()[: trace.stat().st_size // 2])
    for name in ("summary.json", "parameters.npy"):
        (folder / name).unlink()
    return folder


def test_an_interrupted_run_is_replayed_as_far_as_it_went(cut):
    whole, again = run(small()), replay(cut)
    assert again.compared == ("trace",)
    assert 0 < len(again.trace) < len(whole.trace)
    assert again.trace.rows == whole.trace.rows[: len(again.trace)]


def test_a_changed_trace_is_named(cut):
    trace = cut / "trace"
    trace.write_bytes(trace.read_bytes().replace(b"worker-3", b"worker-4", 1))
    with pytest.raises(Diverged, match="in trace"):
        replay(cut)


@pytest.mark.parametrize("name", ["parameters.npy", "provenance.json"])
def test_a_finished_run_without_its_files_is_refused(tmp_path, name):
    run(small(), out=tmp_path / "one")
    (tmp_path / "one" / name).unlink()
    with pytest.raises(FormatError, match="cannot be read"):
        replay(tmp_path / "one")


def test_a_missing_or_damaged_file_is_told_in_one_line(tmp_path, capsys):
    folder = tmp_path / "one"
    run(small(), out=folder)
    trace, provenance = folder / "trace", folder / "provenance.json"

    def refused(where):
        assert status(["replay", str(folder)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"emuml: {where}: ")
        return line

    trace.rename(tmp_path / "kept")
    assert "No such file" in refused(trace)
    trace.mkdir()
    assert "Is a directory" in refused(trace)
    provenance.write_text("[1, 2]")
    assert "Expected `object`, got `array`" in refused(provenance)
    (folder / "nodes" / "worker-0" / "journal").mkdir(parents=True)
    provenance.write_text("{}")
    assert "Is a directory" in refused(folder / "nodes" / "worker-0" / "journal")


def test_a_run_whose_summary_was_cut_is_replayed_like_one_that_did_not_finish(tmp_path):
    run(small(), out=tmp_path / "one")
    summary = tmp_path / "one" / "summary.json"
    summary.write_bytes(summary.read_bytes()[:100])
    assert replay(tmp_path / "one").compared == ("trace",)


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        ({}, ""),
        ({"versions": {"numpy": "1.0"}}, "the run was made with numpy 1.0, this is numpy"),
        ({"sources_sha256": "0" * 64}, "the run was made by another state of emuml's sources"),
    ],
)
def test_a_run_of_another_program_that_diverges_says_so(tmp_path, changed, hint, capsys):
    run(small(), out=tmp_path / "one")
    provenance, trace = tmp_path / "one" / "provenance.json", tmp_path / "one" / "trace"
    provenance.write_text(json.dumps({**json.loads(provenance.read_text()), **changed}))
    trace.write_bytes(trace.read_bytes().replace(b"worker-3", b"worker-4", 1))
    assert status(["replay", str(tmp_path / "one")]) == 1
    _, *rest = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"emuml: {hint}") for line in rest] == [True] * bool(hint)


def test_other_data_are_told_apart_from_a_mistake_of_the_protocol(tmp_path):
    run(small(), out=tmp_path / "one")
    provenance = tmp_path / "one" / "provenance.json"
    made_from = json.loads(provenance.read_text())
    provenance.write_text(json.dumps({**made_from, "inputs_sha256": ["0" * 64, "1" * 64]}))
    with pytest.raises(UserError, match="the data are not those of the run"):
        replay(tmp_path / "one")


def test_a_run_keeps_the_data_of_a_file_that_is_gone(tmp_path):
    X, y = small().workload.data
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    workload = LogisticRegression(data=tmp_path / "mine.npz")
    result = run(small(workload=workload), out=tmp_path / "one")
    (tmp_path / "mine.npz").unlink()
    assert replay(tmp_path / "one").parameters_sha256 == result.parameters_sha256

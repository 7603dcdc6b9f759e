"""The face: a decorated function is a test; failures are kept, tried first, replayed and printed to be pasted."""

import ast
import inspect

import pytest

import emuml.testing as et
from emuml.errors import UserError
from emuml.protocols.async_updates import SSP, AsyncUpdates
from tests.testing.keeper import Hasty, durable, nodes

KEEP = et.faults(keep={"client"})


def checked(store, make=None, describe=durable, **options):
    return et.check(make or nodes(Hasty), runs=options.pop("runs", 200), faults=KEEP, store=store, **options)(describe)


@et.check(lambda: AsyncUpdates(barrier=SSP(1)), runs=20)
def test_a_decorated_function_is_a_test_of_its_own(run):
    run.always(lambda nodes: max(nodes["server"].completed) - min(nodes["server"].completed) <= 2, "spread")
    run.sometimes(lambda nodes: bool(nodes["server"].waiting), "somebody had to wait")
    run.eventually("done")


def test_pytest_sees_no_fixture_in_it():
    assert not inspect.signature(test_a_decorated_function_is_a_test_of_its_own).parameters
    assert test_a_decorated_function_is_a_test_of_its_own.__name__ == "test_a_decorated_function_is_a_test_of_its_own"


def test_a_failure_is_printed_kept_and_tried_first(tmp_path):
    test = checked(tmp_path)
    with pytest.raises(et.CheckFailed) as failed:
        test()
    text = str(failed.value)
    (kept,) = tmp_path.glob("durable-????.json")

    assert text.splitlines()[0].startswith(f"explored {test.check.last.failure.found_after} run")
    assert "1 fault + 0 deviations" in text.splitlines()[0]
    assert str(kept) in text.splitlines()[0]
    assert "X life 1 crashed" in text
    assert "always: what was acknowledged is there, after a step of" in text
    assert test.check.last.failure.scenario.to_json() in text
    with pytest.raises(et.CheckFailed, match="explored 1 run,"):
        test()
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_printed_runs_and_fails(tmp_path):
    test = checked(tmp_path)
    with pytest.raises(et.CheckFailed) as failed:
        test()
    source = str(failed.value)[str(failed.value).index("def durable_") :]
    namespace = {"durable": test}
    exec(compile(ast.parse(source), "printed", "exec"), namespace)
    (printed,) = [value for name, value in namespace.items() if name.startswith("durable_")]

    with pytest.raises(et.CheckFailed, match="1 fault"):
        printed()


def test_a_mended_protocol_forgets_its_failures(tmp_path):
    with pytest.raises(et.CheckFailed):
        checked(tmp_path)()
    checked(tmp_path, nodes(), runs=5)()
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_scenario_any_more_is_passed_over(tmp_path):
    (tmp_path / "durable-0000.json").write_text('{"format": 0}')
    checked(tmp_path, nodes(), runs=5)()


def test_what_was_never_reached_fails(tmp_path):
    def describe(run):
        run.sometimes(lambda nodes: False, "the impossible")

    with pytest.raises(et.CheckFailed, match="never reached in 5 runs: the impossible"):
        checked(tmp_path, nodes(), describe, runs=5)()


def test_runs_and_seed_can_be_overridden(tmp_path, monkeypatch):
    test = checked(tmp_path, nodes(), runs=200)
    monkeypatch.setenv("EMUML_ET_RUNS", "3")
    test()
    assert test.check.last.runs == 3
    monkeypatch.setenv("EMUML_ET_SEED", "-1")
    with pytest.raises(UserError, match="EMUML_ET_SEED"):
        test()


def test_replay_takes_files_json_and_scenarios(tmp_path):
    test = checked(tmp_path)
    with pytest.raises(et.CheckFailed):
        test()
    (kept,) = tmp_path.iterdir()
    for given in (kept, str(kept), kept.read_text(), et.load(kept)):
        with pytest.raises(et.CheckFailed, match="what was acknowledged is there"):
            test.replay(given)
    test.replay(et.Scenario())


def test_running_nodes_needs_none_of_what_explores():
    import subprocess
    import sys

    program = (
        "import sys, emuml.testing\n"
        "emuml.testing.run_nodes\n"
        "print([name for name in ('pydantic', 'hypothesis', 'simpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_an_oracle_reads_is_drawn_with_what_led_to_it(tmp_path):
    """The keeper begins anew without what it had acknowledged: only the client's past shows the acknowledgement."""
    crash = et.CrashFault(node="keeper-0", at_s=0.4, restart_after_s=0.5)
    trial = et.run(nodes(Hasty), et.Scenario(faults=(crash,)), durable, faults=KEEP)

    assert trial.violation.read == ("client-0", "keeper-0")
    assert trial.violation.node == "keeper-0"
    assert [line for line in trial.report().splitlines() if "Kept 0" in line]


def test_a_kept_failure_that_fits_no_more_is_passed_over_and_stays(tmp_path):
    kept = tmp_path / "spreads-0000.json"
    kept.write_text(et.Scenario(workers=100).to_json())  # of a problem with 60 rows

    def spreads(run):
        run.eventually("done")

    test = et.check(lambda: AsyncUpdates(barrier=SSP(1)), runs=3, store=tmp_path)(spreads)
    test()
    assert test.check.last.runs == 3
    assert kept.is_file()


def test_tests_of_one_name_in_two_files_keep_failures_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs = et.explore(nodes(Hasty), durable, 200, faults=KEEP).failure.scenario
    (tmp_path / "test_theirs.py").touch()
    theirs.to_file(tmp_path / "durable-0000.json", "test_theirs.py::durable")
    checked(tmp_path, nodes(), runs=5)()
    assert (tmp_path / "durable-0000.json").is_file()

    (tmp_path / "test_theirs.py").unlink()  # it was renamed: what it kept is anybody's of this name
    test = checked(tmp_path)
    with pytest.raises(et.CheckFailed):
        test()
    assert test.check.last.runs == 1


def test_runs_may_not_be_overridden_by_none(tmp_path, monkeypatch):
    monkeypatch.setenv("EMUML_ET_RUNS", "0")
    with pytest.raises(UserError, match="EMUML_ET_RUNS: got '0'; allowed: a whole number >= 1"):
        checked(tmp_path, nodes())()

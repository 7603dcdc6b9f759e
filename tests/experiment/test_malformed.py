"""Malformed experiments, each a real file given to the real command line: one line for each mistake, nothing started.

A line has the place, the path of the setting, its value, what is allowed, and the nearest right name where there is
one. Expected lines are written out in full, because it is the words that help.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status
from tests.experiment.malformed import GOOD, beside, case, check, written

__all__ = ["beside"]

LAW = "{kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}"
INTEGER = "allowed: an integer > 0"
MAPPING = "allowed: a mapping of keys to values"
STRANGE = "faults=[{kind: 'strange:Earthquake', at_s: 1}]"
METRICS = "allowed: train_loss, "


def with_faults(*faults: str) -> dict[str, str]:
    return {"seed: 7\n": "seed: 7\nfaults:\n" + "".join(f"  - {fault}\n" for fault in faults)}


STATIC = {
    "syntax": case(
        "exp.yaml:8:8: not YAML: expected ',' or ']', but got ':' while parsing a flow sequence that begins in line 7",
        {"collect: 4": "collect: [4"},
    ),
    "tab": case(
        "exp.yaml:9:1: not YAML: found character '\\t' that cannot start any token; indent with spaces",
        {"  workers: 6": "\tworkers: 6"},
    ),
    "no space after a colon": case(
        f"exp.yaml:1:1: got 'workers:6'; {MAPPING}; write a space after the colon", {GOOD: "workers:6\n"}
    ),
    "key": case("exp.yaml:11:1: ronds: unknown key; did you mean 'rounds'?", {"rounds": "ronds"}),
    "nested key": case("exp.yaml:9:3: cluster.wrokers: unknown key; did you mean 'workers'?", {"workers": "wrokers"}),
    "key of the level above": case(
        "exp.yaml:10:3: cluster.rounds: unknown key; did you mean 'rounds' at the top level?",
        {"workers: 6": "workers: 6\n  rounds: 3", "\nrounds: 3": ""},
    ),
    "key of the level below": case(
        "exp.yaml:12:1: latency_s: unknown key; did you mean 'cluster.network.latency_s'?",
        {"seed: 7": "latency_s: 7"},
    ),
    "key of a part's owner": case(
        "exp.yaml:6:55: protocol.code.collect: unknown key; did you mean 'protocol.collect'?",
        {"replication: 2}": "replication: 2, collect: 4}", "  collect: 4\ncluster": "cluster"},
    ),
    "kind": case(
        "exp.yaml:5:9: protocol.kind: 'gradient-codng' is unknown; allowed: ",
        {"gradient-coding": "gradient-codng"},
    ),
    "kind of another family": case(
        "exp.yaml:10:19: cluster.compute.kind: 'uncoded' is unknown; allowed: affine-load, ", {LAW: "{kind: uncoded}"}
    ),
    "number with its unit": case(
        "exp.yaml:10:63: cluster.compute.mean_s: got '500ms'; allowed: a finite number >= 1e-12 and <= 1e+12; "
        "write a plain number, in the unit that the key's name ends with",
        {"mean_s: 0.5": "mean_s: 500ms"},
    ),
    "topology as a network": case(
        "exp.yaml:11:12: cluster.network: 'laptop-star' is unknown; allowed: latency-matrix, network, topology-"
        "network, or module:Class; a topology is written {kind: topology-network, topology: ...}",
        {LAW: LAW + "\n  network: laptop-star"},
    ),
    "file of a topology": case(
        "exp.yaml:11:47: cluster.network.topology: exp.yaml:1:1: unknown key 'workload'; allowed: format, ",
        {LAW: LAW + "\n  network: {kind: topology-network, topology: exp.yaml}"},
    ),
    "shape as a network": case(
        "exp.yaml:11:12: cluster.network: 'fat-tree' is unknown; allowed: latency-matrix, network, topology-"
        "network, or module:Class; 'fat-tree' is a topology; a topology is written {kind: topology-network, "
        "topology: ...}",
        {LAW: LAW + "\n  network: fat-tree"},
    ),
    "value of an enumeration": case(
        "exp.yaml:10:74: cluster.compute.tail: got 'scalled'; allowed: 'fixed', 'scaled'; did you mean 'scaled'?",
        {"mean_s: 0.5": "mean_s: 0.5, tail: scalled"},
    ),
    "number as text": case(
        f"exp.yaml:9:12: cluster.workers: got '6'; {INTEGER}; write it without quotes", {"workers: 6": "workers: '6'"}
    ),
    "integer as a float": case(
        f"exp.yaml:11:9: rounds: got 1000.0; {INTEGER} or null; did you mean 1000?", {"rounds: 3": "rounds: 1e3"}
    ),
    "boolean as text": case(
        "exp.yaml:4:14: workload.intercept: got 'yes'; allowed: true or false; did you mean true?",
        {"data: mine.npz": "data: mine.npz\n  intercept: yes"},
    ),
    "out of bounds": case(f"exp.yaml:9:12: cluster.workers: got 0; {INTEGER}", {"workers: 6": "workers: 0"}),
    "not a number": case(
        "exp.yaml:10:63: cluster.compute.mean_s: got nan; allowed: a finite number >= 1e-12",
        {"mean_s: 0.5": "mean_s: .nan"},
    ),
    "infinite": case(
        "exp.yaml:10:49: cluster.compute.shift_s: got inf; allowed: a finite number >= 0",
        {"shift_s: 0.05": "shift_s: .inf"},
    ),
    "missing": case(f"exp.yaml:9:3: cluster.workers: missing; {INTEGER}", {"  workers: 6\n": ""}),
    "nothing says when to stop": case(
        "exp.yaml:1:1: nothing says when to stop; allowed: rounds=100, or stop=...", {"rounds: 3\n": ""}
    ),
    "duplicate key": case(
        "exp.yaml:12:1: rounds: given twice, first at exp.yaml:11:1", {"rounds: 3": "rounds: 3\nrounds: 4"}
    ),
    "alias": case(
        "exp.yaml:12:7: not supported: an alias; write the value again instead",
        {"rounds: 3": "rounds: &n 3", "seed: 7": "seed: *n"},
    ),
    "list for a mapping": case(
        f"exp.yaml:8:10: cluster: got [6]; {MAPPING}", {f"cluster:\n  workers: 6\n  compute: {LAW}": "cluster: [6]"}
    ),
    "empty": case(f"exp.yaml:1:1: got nothing; {MAPPING}", {GOOD: ""}),
    "engine": case(
        "exp.yaml:13:9: engine: got 'tpc'; allowed: des, tcp; did you mean 'tcp'?", {"seed: 7": "seed: 7\nengine: tpc"}
    ),
    "runtime key": case(
        "exp.yaml:13:11: runtime.inyect: unknown key; did you mean 'inject'?",
        {"seed: 7": "seed: 7\nruntime: {inyect: add}"},
    ),
    "collect above the workers": case(
        "exp.yaml:7:12: protocol.collect: got 9; allowed: an integer in 1..6; the nearest is 6",
        {"collect: 4": "collect: 9"},
    ),
    "replication above the workers": case(
        "exp.yaml:6:52: protocol.code.replication: 7 replicas need as many workers, got 6; "
        "allowed: an integer in 1..6; the nearest is 6",
        {"replication: 2": "replication: 7"},
    ),
    "node of a fault": case(
        "exp.yaml:14:25: faults[0].node: 'worker-6' is not in the cluster; allowed: server-0, worker-0 to worker-5; "
        "did you mean 'worker-5'?",
        with_faults("{kind: crash, node: worker-6, at_s: 1}"),
    ),
    "node on one side of a partition": case(
        "exp.yaml:14:51: faults[0].second[0]: 'srver-0' is not in the cluster; allowed: server-0, "
        "worker-0 to worker-5; did you mean 'server-0'?",
        with_faults("{kind: partition, first: [worker-1], second: [srver-0], for_s: 1, at_s: 1}"),
    ),
    "item of a list": case(
        "exp.yaml:14:50: faults[0].after[1]: got 'one'; allowed: [text; an integer] or null",
        with_faults("{kind: crash, node: worker-3, after: [round, one]}"),
    ),
    "file of faults": case(
        "exp.yaml:13:9: faults: falts.yaml: No such file or directory; did you mean 'faults.yaml'?; "
        "allowed: a list of faults, or a file of them",
        {"seed: 7": "seed: 7\nfaults: falts.yaml"},
    ),
    "trace with too few workers": case(
        "exp.yaml:9:12: cluster.workers: DelayTrace has durations for 2 workers, got 6; allowed: an integer in 1..2",
        {LAW: "{kind: delay-trace, array: [[1, 2], [3, 4], [5, 6]]}"},
    ),
    "trace with too few rounds": case(
        "exp.yaml:11:9: rounds: ErasureHeadDelays has 2 rounds, got 3; allowed: an integer in 1..2",
        {LAW: "{kind: erasurehead-delays, rounds: 2, workers: 6}"},
    ),
    "several that need no data": case(
        [
            "exp.yaml:2:9: workload.kind: 'logistic' is unknown; allowed: ",
            "exp.yaml:7:12: protocol.collect: got 9; allowed: an integer in 1..6; the nearest is 6",
            "exp.yaml:12:7: seed: got -7; allowed: an integer >= 0",
            "exp.yaml:14:25: faults[0].node: 'worker-6' is not in the cluster; allowed: ",
        ],
        {
            "logistic-regression": "logistic",
            "collect: 4": "collect: 9",
            "seed: 7": "seed: -7\nfaults:\n  - {kind: crash, node: worker-6, at_s: 1}",
        },
    ),
    "override without a value": case(
        "argument 'cluster.workers': not of the form key=value; allowed: such as cluster.workers=50",
        {},
        "cluster.workers",
    ),
    "override of another sort": case(
        f"argument 'cluster.workers=six': cluster.workers: got 'six'; {INTEGER}", {}, "cluster.workers=six"
    ),
    "override of an unknown key": case(
        "argument 'clutser.workers=3': clutser: unknown key; did you mean 'cluster'?", {}, "clutser.workers=3"
    ),
    "override below a number": case(
        f"argument 'rounds.count=3': rounds: got a mapping; {INTEGER} or null", {}, "rounds.count=3"
    ),
}
"""What needs no data to be seen."""

LATE = {
    "data name": case(
        "exp.yaml:3:9: workload.data: 'brest-cancer' is unknown; allowed: ", {"mine.npz": "brest-cancer"}
    ),
    "data name in an argument": case(
        "argument 'workload.data=brest-cancer': workload.data: 'brest-cancer' is unknown; allowed: ",
        {},
        "workload.data=brest-cancer",
    ),
    "missing data file": case("exp.yaml:3:9: workload.data: there is no file 'mne.npz'; ", {"mine.npz": "mne.npz"}),
    "data file without targets": case("exp.yaml:3:9: workload.data: ", {"mine.npz": "half.npz"}),
    "data file of something else": case("exp.yaml:3:9: workload.data: ", {"mine.npz": "text.npz"}),
    "data file with a hole": case(
        "exp.yaml:3:9: workload.data: X[1, 0] is nan; given: 'hole.npz'; allowed: finite numbers",
        {"mine.npz": "hole.npz"},
    ),
    "labels that do not fit": case(
        "exp.yaml:3:9: workload.data: got 3 distinct labels (0, 1, 2); given: 'three.npz'; allowed: exactly two labels",
        {"mine.npz": "three.npz"},
    ),
    "more data than memory": case(
        "exp.yaml:3:9: workload.data: two-gaussians:2x1000000000000000 takes ",
        {"mine.npz": "two-gaussians:2x1000000000000000"},
    ),
    "more partitions than rows": case(
        "exp.yaml:9:12: cluster.workers: got 600 partitions for 32 training rows; allowed: 1 to 32, at least a row ",
        {"workers: 6": "workers: 600"},
    ),
    "metric": case(
        f"exp.yaml:11:47: stop.metric: 'train_los' is no metric here; {METRICS}",
        {"rounds: 3": "stop: {kind: target-loss, value: 0.1, metric: train_los}"},
    ),
    "metric in a list": case(
        f"exp.yaml:13:44: stop.conditions[1].metric: 'loss' is no metric here; {METRICS}",
        {
            "rounds: 3\n": "stop:\n  conditions: [{kind: seconds, limit_s: 3},\n"
            "               {kind: target-loss, metric: loss, value: 0}]\n  kind: any-of\n"
        },
    ),
    "several that need the data or the engine": case(
        [
            f"argument {STRANGE!r}: faults[0].kind: engine ",
            "exp.yaml:9:12: cluster.workers: got 600 partitions for 32 training rows; ",
            "exp.yaml:12:48: stop.metric: 'loss' is no metric here; ",
        ],
        {
            "workers: 6": "workers: 600",
            "rounds: 3": "stop:\n  {kind: target-loss, value: 0.1, metric:      loss}",
        },
        STRANGE,
    ),
}
"""What shows after the file was read, before anything starts."""


@pytest.mark.parametrize("name", STATIC)
def test_a_malformed_file_is_told_in_its_lines(name: str, beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check(STATIC[name], beside, capfd)


@pytest.mark.parametrize("engine", ["des", "tcp"])
@pytest.mark.parametrize("name", LATE)
def test_what_shows_later_still_points_to_the_line(
    name: str, engine: str, beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    check(LATE[name], beside, capfd, "--engine", engine)


@pytest.mark.parametrize("name", ["nested key", "two in an argument", "metric", "missing data file"])
def test_with_json_the_lines_go_to_stderr_and_nothing_to_stdout(
    name: str, beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = {
        **STATIC,
        **LATE,
        "two in an argument": case(["argument 'seed=x': seed", "exp.yaml:9:3"], {"workers": "wrkrs"}, "seed=x"),
    }
    check(cases[name], beside, capfd, "--json", "--engine", "tcp", "--out", "run")


def test_the_nearest_names_of_data_and_files_are_told(beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert check(LATE["data name"], beside, capfd).endswith("did you mean 'breast-cancer'?\n")
    assert check(LATE["missing data file"], beside, capfd).endswith("did you mean 'mine.npz'?\n")
    for name in ("metric", "metric in a list"):
        assert check(LATE[name], beside, capfd).endswith("did you mean 'train_loss'?\n")
    assert check(STATIC["kind"], beside, capfd).endswith("did you mean 'gradient-coding'?\n")
    assert check(STATIC["kind of another family"], beside, capfd).endswith("'uncoded' is a code\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"rounds: 3\nname: caf\xe9\n", "exp.yaml:2:10: not UTF-8 text: invalid continuation byte 0xe9; "),
        (b"rounds: 3\n\x07\n", "exp.yaml:2:1: not YAML: the character '\\x07' is not allowed in text"),
    ],
)
def test_a_file_that_is_no_text_names_the_first_wrong_byte(
    content: bytes, said: str, beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (beside / "exp.yaml").write_bytes(content)
    assert status(["run", "exp.yaml"]) == 2
    out, err = capfd.readouterr()
    assert (out, err[: len(said) + 7]) == ("", f"emuml: {said}")
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_names_its_nearest_sibling(beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (beside / "experiment.yaml").write_text(GOOD)
    (beside / "run").mkdir()
    (beside / "run" / "config.yaml").write_text(GOOD)
    assert status(["run", "experimnt.yaml"]) == 2
    assert status(["run", "run"]) == 2
    assert capfd.readouterr().err.splitlines() == [
        "emuml: experimnt.yaml: No such file or directory; did you mean 'experiment.yaml'?",
        "emuml: run: Is a directory; did you mean 'run/config.yaml'?",
    ]


def test_a_topology_that_is_wrong_as_a_whole_is_told_by_its_file(
    beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("wires.json").write_text("[]")
    Path("exp.yaml").write_text(GOOD.replace(LAW, LAW + "\n  network: {kind: topology-network, topology: wires.json}"))

    assert status(["run", "exp.yaml"]) == 2
    assert "exp.yaml:11:47: cluster.network.topology: wires.json: is no node-link graph" in capfd.readouterr().err


def test_the_good_file_runs(beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (beside / "exp.yaml").write_text(GOOD)
    assert status(["run", "exp.yaml", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rounds"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nested key", "override of another sort", "more partitions than rows"])
def test_a_process_of_its_own_says_the_same(name: str, beside: Path) -> None:
    given = {**STATIC, **LATE}[name]
    (beside / "exp.yaml").write_text(written(given.changes))
    before = sorted(beside.iterdir())
    command = [sys.executable, "-m", "emuml.cli.main", "run", "exp.yaml", *given.arguments, "--engine", "tcp"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"emuml: {given.said[0]}")
    assert sorted(beside.iterdir()) == before

"""Configurations: what loads, what is refused, and that every problem has its line, its column and a way out."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import emuml
from emuml import names
from emuml.cluster import Cluster, Constant, DelayTrace, Network, Pareto, ShiftedExponential, SpeedClasses, WithOutliers
from emuml.cluster.failure_laws import WeibullFailures
from emuml.cluster.faults import Crash, FaultPlan, Start
from emuml.cluster.spells import FixedRepair
from emuml.experiment.config import ConfigError, load, loads
from emuml.experiment.run_dir import RunDir
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.stopping import Rounds, Seconds, TargetLoss
from emuml.workloads import LinearRegression, LogisticRegression
from emuml.workloads.optimizers import AcceleratedGradientDescent, Exponential

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"
SMALL = """\
workload: {kind: logistic-regression, data: breast-cancer}
protocol: gradient-coding
cluster:
  workers: 4
rounds: 10
"""


def problems(text: str, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        loads(text, overrides, name="exp.yaml")
    return caught.value.problems


def with_line(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


def test_example_is_the_experiment_of_the_readme() -> None:
    loaded = load(EXAMPLE)
    assert loaded.engine == "des"
    assert loaded.runtime is None
    assert loaded.experiment == emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer", l2=1e-4),
        protocol=GradientCoding(code=FractionalRepetition(replication=3), collect=15),
        cluster=Cluster(workers=30, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
        rounds=100,
        seed=7,
        name="erasurehead",
    )


def test_text_is_a_kind_without_parameters() -> None:
    experiment = loads(
        with_line("protocol: gradient-coding", "protocol: {kind: gradient-coding, code: uncoded}")
    ).experiment
    assert experiment.protocol == GradientCoding(code=Uncoded())


def test_declarations_nest_and_lists_of_them_too() -> None:
    text = """\
workload:
  kind: linear-regression
  optimizer: {kind: accelerated-gradient-descent, rate: 1e-2, schedule: {kind: exponential-decay, decay: 0.9}}
protocol: {kind: gradient-coding, code: {kind: ignore-stragglers, scale: none}, collect: 3}
cluster: {workers: 4, network: {latency_s: 1e-3}}
stop: {kind: any-of, conditions: [{kind: seconds, limit_s: 5}, {kind: target-loss, value: 0.1}]}
faults: [{kind: crash, node: worker-1, after: [round, 3], restart_after_s: 1}, {kind: start, node: worker-2, at_s: 0.5}]
"""
    optimizer = AcceleratedGradientDescent(rate=0.01, schedule=Exponential(0.9))
    assert loads(text).experiment == emuml.Experiment(
        workload=LinearRegression(optimizer=optimizer),
        protocol=GradientCoding(code=IgnoreStragglers(scale="none"), collect=3),
        cluster=Cluster(workers=4, network=Network(latency_s=0.001)),
        stop=Seconds(5.0) | TargetLoss(0.1),
        faults=FaultPlan([Crash("worker-1", after=("round", 3), restart_after_s=1.0), Start("worker-2", at_s=0.5)]),
    )


def test_faults_may_be_a_law_with_its_repair(tmp_path: Path) -> None:
    repair = "{kind: fixed-repair, seconds: 2}"
    law = f"faults: {{kind: weibull-failures, shape: 0.7, scale_s: 40, until_s: 60, repair: {repair}}}"
    expected = WeibullFailures(0.7, 40.0, until_s=60.0, repair=FixedRepair(2.0))
    assert loads(SMALL + law).experiment.faults == expected
    (tmp_path / "down.csv").write_text("node,down_s,up_s\n1,5,7\n")
    (tmp_path / "own.yaml").write_text(SMALL + "faults: {kind: recorded-failures, array: down.csv, until_s: 9}\n")
    plan = load(tmp_path / "own.yaml").experiment.fault_plan()
    assert plan == FaultPlan((Crash("worker-1", at_s=5.0, restart_after_s=2.0),))


def test_compute_laws_are_made_of_each_other() -> None:
    text = """\
cluster:
  workers: 4
  compute:
    kind: with-outliers
    chance: 0.01
    outlier: {kind: pareto, scale_s: 5, shape: 2.5}
    base: {kind: speed-classes, factors: [1, 3], shares: [0.75, 0.25], base: {kind: constant, seconds: 0.5}}
"""
    given = SMALL.replace("cluster:\n  workers: 4\n", text)
    classes = SpeedClasses(Constant(0.5), (1.0, 3.0), (0.75, 0.25))
    found = loads(given, ["cluster.compute.base.base.seconds=0.25"]).experiment.cluster.compute
    assert loads(given).experiment.cluster.compute == WithOutliers(classes, Pareto(5.0, 2.5), 0.01)
    assert found == WithOutliers(replace(classes, base=Constant(0.25)), Pareto(5.0, 2.5), 0.01)
    assert problems(given.replace("kind: pareto", "kind: parteo"))[0].startswith(
        "exp.yaml:8:21: cluster.compute.outlier.kind: 'parteo' is unknown"
    )
    assert "cluster.compute.base.shares" in problems(given.replace("0.75, 0.25", "0.75, 0.2"))[0]


def test_engine_and_runtime_settings_are_returned_beside_the_experiment() -> None:
    loaded = loads(SMALL + "engine: tcp\nruntime: {time_scale: 1e-1, inject: add}\n")
    assert loaded.engine == "tcp"
    assert loaded.runtime is not None
    assert (loaded.runtime.time_scale, loaded.runtime.inject) == (0.1, "add")


def test_every_problem_of_a_file_is_reported_at_once_in_the_order_of_the_file() -> None:
    text = """\
workload: {kind: logistic-regresion}
protocol:
  kind: gradient-coding
  code: {kind: fractional-repetition, replication: 0, scael: none}
  collect: 15.5
cluster:
  wrokers: 30
  compute: {kind: shifted-exponentail}
rounds: 1e3
"""
    assert problems(text) == (
        "exp.yaml:1:18: workload.kind: 'logistic-regresion' is unknown; "
        "allowed: linear-regression, logistic-regression, or module:Class; did you mean 'logistic-regression'?",
        "exp.yaml:4:52: protocol.code.replication: got 0; allowed: an integer >= 1",
        "exp.yaml:4:55: protocol.code.scael: unknown key; did you mean 'scale'?",
        "exp.yaml:5:12: protocol.collect: got 15.5; allowed: an integer > 0 or null",
        "exp.yaml:7:3: cluster.wrokers: unknown key; did you mean 'workers'?",
        "exp.yaml:8:19: cluster.compute.kind: 'shifted-exponentail' is unknown; "
        f"allowed: {', '.join(sorted(names.REGISTRY['compute']))}, or module:Class; "
        "did you mean 'shifted-exponential'?",
        "exp.yaml:9:9: rounds: got 1000.0; allowed: an integer > 0 or null; did you mean 1000?",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "exp.yaml:1:1: got nothing; allowed: a mapping of keys to values"),
        ("- 1\n", "exp.yaml:1:1: got [1]; allowed: a mapping of keys to values"),
        (
            "a: [1\n",
            "exp.yaml:2:1: not YAML: expected ',' or ']', but got '<stream end>' "
            "while parsing a flow sequence that begins in line 1",
        ),
        (
            "a: 1\n\tb: 2\n",
            "exp.yaml:2:1: not YAML: found character '\\t' that cannot start any token; indent with spaces",
        ),
        ("a: \x00\n", "exp.yaml:1:4: not YAML: the character '\\x00' is not allowed in text"),
        ("a: &x 1\nb: *x\n", "exp.yaml:2:4: not supported: an alias; write the value again instead"),
        ("a: 1\n---\nb: 2\n", "exp.yaml:2:1: not YAML: but found another document"),
        ("[" * 3000, "exp.yaml:1:102: nested too deeply; allowed: 100 levels"),
    ],
)
def test_what_is_no_mapping_at_all_is_one_line(text: str, expected: str) -> None:
    assert problems(text) == (expected,)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("workers: 4", "workers: four", "4:12: cluster.workers: got 'four'; allowed: an integer > 0"),
        ("workers: 4", "workers: true", "4:12: cluster.workers: got true; allowed: an integer > 0"),
        ("workers: 4", "workers:", "4:11: cluster.workers: got nothing; allowed: an integer > 0"),
        ("workers: 4", "workers: [4]", "4:12: cluster.workers: got [4]; allowed: an integer > 0"),
        ("workers: 4", "cores: 2", "4:3: cluster.workers: missing; allowed: an integer > 0"),
        ("workers: 4", "workers: 4\n  workers: 5", "5:3: cluster.workers: given twice, first at exp.yaml:4:3"),
        ("workers: 4", "workers: 4\n  network: fast", "5:12: cluster.network: 'fast' is unknown"),
        ("workers: 4", "workers: 4\n  network: {latency_s: .inf}", "5:24: cluster.network.latency_s: got inf"),
        ("workers: 4", "workers: 4\n  compute: constant", "5:12: cluster.compute.seconds: missing"),
        ("workers: 4", "workers: 4\n  compute: {seconds: 1}", "5:12: cluster.compute: kind is missing; allowed: "),
        ("workers: 4", "workers: 4\n  compute: null", "5:12: cluster.compute: nothing is unknown; allowed: "),
        ("gradient-coding", "{kind: gradient-coding, collect: 9}", "2:44: protocol.collect: Uncoded waits for all 4"),
        ("gradient-coding", "no.such:Thing", "2:11: protocol: 'no.such:Thing' cannot be loaded (No module named 'no')"),
        (
            "gradient-coding",
            "json:loads",
            "2:11: protocol: 'json:loads' is no declaration; allowed: a frozen dataclass",
        ),
        ("gradient-coding", "emuml.stopping:Never", "2:11: protocol: Never is no protocol"),
        ("breast-cancer}", "[1, 2], l2: 1}", "1:45: workload.data: has shape (1,); given: [1, 2]; allowed: "),
        ("breast-cancer}", "x, intercept: yes}", "1:59: workload.intercept: got 'yes'; allowed: true or false"),
        ("rounds: 10", "seed: 1", "1:1: nothing says when to stop; allowed: rounds=100, or stop=..."),
        ("rounds: 10", "rounds: 10\nseed: 18446744073709551616", "6:7: seed: got 18446744073709551616"),
        ("rounds: 10", "rounds: 10\nengine: tpc", "6:9: engine: got 'tpc'; allowed: des, tcp; did you mean 'tcp'?"),
        ("rounds: 10", "rounds: 10\nformat: 2", "6:9: format: got 2; allowed: 1"),
        ("rounds: 10", "rounds: 10\nruntime: {inject: of}", "6:19: runtime.inject: got 'of'; allowed: 'floor', 'add'"),
        ("rounds: 10", "rounds: 10\nfaults: {kind: crash}", "6:16: faults.kind: 'crash' is unknown"),
        ("rounds: 10", "rounds: 10\nfaults: [crash]", "6:10: faults[0].node: missing; allowed: text"),
        (
            "rounds: 10",
            "rounds: 10\nfaults: [{kind: crash, node: worker-4, at_s: 1}]",
            "6:30: faults[0].node: 'worker-4' is not in the cluster; allowed: server-0, worker-0 to worker-3",
        ),
        ("rounds: 10", "rounds: 10\nfaults: no.yaml", "6:9: faults: no.yaml: No such file or directory"),
        ("rounds: 10", "rounds: 10\n2: 3", "6:1: 2: unknown key; allowed: workload, "),
    ],
)
def test_a_problem_has_its_place_and_what_is_allowed(old: str, new: str, expected: str) -> None:
    (problem,) = problems(with_line(old, new))
    assert problem.startswith(f"exp.yaml:{expected}")


def test_a_missing_file_names_its_nearest_sibling(tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text(SMALL)
    with pytest.raises(
        ConfigError, match=r"experimnt.yaml: No such file or directory; did you mean 'experiment.yaml'\?"
    ):
        load(tmp_path / "experimnt.yaml")


def test_a_file_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: ä".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin.yaml:1:7: not UTF-8 text: unexpected end of data 0xe4"):
        load(path)


def test_errors_survive_pickle_and_being_made_again_from_their_arguments() -> None:
    error = ConfigError(("a: b", "c: d"))
    for copy in (pickle.loads(pickle.dumps(error)), type(error)(*error.args)):
        assert (str(copy), copy.problems) == ("a: b\nc: d", ("a: b", "c: d"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-4", 1e-4), ("1.0E+2", 100.0), ("010", 10.0), (".5", 0.5), ("2", 2.0)],
)
def test_numbers_are_read_as_people_write_them(text: str, value: float) -> None:
    experiment = loads(SMALL, [f"cluster.cancel_lag_s={text}"]).experiment
    assert experiment.cluster.cancel_lag_s == value


@pytest.mark.parametrize("text", ["1e5", "2024", "no", "1:30", "'7'"])
def test_text_stays_text(text: str) -> None:
    assert loads(SMALL, [f"name={text}"]).experiment.name == text.strip("'")


def test_overrides_are_typed_and_reach_into_what_the_file_leaves_out() -> None:
    overrides = ["cluster.workers=6", "cluster.network.latency_s=1e-3", "protocol.code={kind: uncoded}", "seed=3"]
    experiment = loads(SMALL, overrides).experiment
    assert experiment.cluster == Cluster(workers=6, network=Network(latency_s=0.001))
    assert experiment.protocol == GradientCoding(code=Uncoded())
    assert experiment.seed == 3


def test_an_override_below_a_plain_kind_adds_its_parameters() -> None:
    overrides = ["protocol.code=fractional-repetition", "protocol.code.replication=2"]
    assert loads(SMALL, overrides).experiment.protocol.code == FractionalRepetition(replication=2)


def test_another_kind_keeps_the_parameters_that_it_has_too() -> None:
    text = SMALL.replace("data: breast-cancer", "data: digits, l2: 0.5")
    workload = loads(text, ["workload.kind=linear-regression"]).experiment.workload
    assert (type(workload).__name__, workload.data, workload.l2) == ("LinearRegression", "digits", 0.5)


def test_another_kind_drops_the_parameters_that_it_does_not_have() -> None:
    experiment = load(EXAMPLE, ["protocol.code.kind=uncoded", "protocol.collect=null"]).experiment
    assert experiment.protocol == GradientCoding(code=Uncoded())
    same = load(EXAMPLE, ["protocol.code.kind=fractional-repetition"]).experiment
    assert same.protocol.code == FractionalRepetition(replication=3)


def test_an_override_reaches_into_lists() -> None:
    text = SMALL + "faults: [{kind: crash, node: worker-1, at_s: 1}]\n"
    assert loads(text, ["faults.0.at_s=2"]).experiment.faults == FaultPlan([Crash("worker-1", at_s=2.0)])


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("cluster.workers", "not of the form key=value; allowed: such as cluster.workers=50"),
        ("=3", "not of the form key=value; allowed: such as cluster.workers=50"),
        ("cluster..workers=3", "not of the form key=value; allowed: such as cluster.workers=50"),
        ("tier=array", "no setting of an experiment; did you mean 'emuml run --tier array'?"),
        ("cluster.workers=0", "cluster.workers: got 0; allowed: an integer > 0"),
        ("cluster.workrs=3", "cluster.workrs: unknown key; did you mean 'workers'?"),
        ("cluster.workers=[", "not YAML: expected the node content, but found '<stream end>'"),
        ("faults.1.node=worker-1", "'1' is no index of a list of 0"),
    ],
)
def test_a_wrong_override_names_itself(override: str, expected: str) -> None:
    assert problems(SMALL + "faults: []\n", override) == (f"argument {override!r}: {expected}",)


def test_faults_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    plan = FaultPlan([Crash("worker-1", at_s=2.0)])
    plan.to_file(tmp_path / "faults.yaml")
    assert loads(SMALL + "faults: faults.yaml\n", folder=tmp_path).experiment.faults == plan
    (tmp_path / "faults.yaml").write_text("- kind: crash\n  nod: worker-1\n  at_s: 1\n")
    with pytest.raises(ConfigError) as caught:
        loads(SMALL + "faults: faults.yaml\n", folder=tmp_path)
    assert caught.value.problems == (f"{tmp_path}/faults.yaml:2:3: faults[0].nod: unknown key; did you mean 'node'?",)


def test_a_relative_path_to_data_starts_at_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=np.eye(2), y=np.array([0, 1]))
    (tmp_path / "exp.yaml").write_text(with_line("breast-cancer", "mine.npz"))
    assert load(tmp_path / "exp.yaml").experiment.workload.data == str((tmp_path / "mine.npz").resolve())
    (tmp_path / "exp.yaml").write_text(with_line("breast-cancer", "covertype:mine.npz"))
    assert load(tmp_path / "exp.yaml").experiment.workload.data == f"covertype:{(tmp_path / 'mine.npz').resolve()}"
    (tmp_path / "exp.yaml").write_text(with_line("breast-cancer", "two-gaussians:30x3"))
    assert load(tmp_path / "exp.yaml").experiment.workload.data == "two-gaussians:30x3"


EXPERIMENTS = {
    "plain": emuml.Experiment(LogisticRegression(), GradientCoding(), Cluster(workers=3), rounds=1),
    "names": emuml.Experiment(LogisticRegression(), GradientCoding(), Cluster(workers=3), rounds=1, name="1e5"),
    "full": emuml.Experiment(
        LinearRegression(batch=2, l2=1e-7, optimizer=AcceleratedGradientDescent(rate=1e-5, schedule=Exponential(0.5))),
        GradientCoding(code=FractionalRepetition(2, scale="covered"), collect=2),
        Cluster(workers=4, compute=ShiftedExponential(0.0, 1e-9, tail="scaled"), cancel_lag_s=0.1),
        stop=Rounds(3) | Seconds(1e12),
        seed=2**64 - 1,
        faults=FaultPlan([Crash("worker-1", after=("round", 3), restart_after=("round", 5))]),
    ),
    "arrays": emuml.Experiment(
        LinearRegression(data=(np.arange(8.0).reshape(4, 2), np.arange(4.0))),
        GradientCoding(),
        Cluster(workers=2, compute=DelayTrace(np.array([[0.5, 0.25]]))),
        rounds=1,
    ),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_a_run_writes_loads_back_equal(name: str, tmp_path: Path) -> None:
    RunDir(tmp_path / "run", EXPERIMENTS[name], "tcp").close()
    loaded = load(tmp_path / "run" / "config.yaml")
    assert loaded.experiment == EXPERIMENTS[name]
    assert loaded.engine == "tcp"


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    RunDir(tmp_path / "run", EXPERIMENTS["arrays"], "des").close()
    for path in (tmp_path / "run" / "inputs").iterdir():
        path.unlink()
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "run" / "config.yaml")
    assert any("is missing" in problem and "/inputs" in problem for problem in caught.value.problems)


def test_every_declared_field_of_every_registered_class_has_a_family() -> None:
    """A field whose default is itself a declaration must be read as one, not as a plain value."""
    from emuml.experiment.reader import FAMILIES_BY_FIELD

    for known in names.REGISTRY.values():
        for target in known.values():
            cls = names.load(target)
            for field in fields(cls):
                default = field.default_factory() if callable(field.default_factory) else field.default
                if is_dataclass(default) and not isinstance(default, type):
                    family = FAMILIES_BY_FIELD.get(field.name, field.name)
                    assert family in names.REGISTRY, f"{cls.__name__}.{field.name}"


def test_a_class_of_ones_own_is_named_by_its_module() -> None:
    text = with_line("gradient-coding", "{kind: 'emuml.protocols.gradient_coding.protocol:GradientCoding', collect: 4}")
    assert loads(text).experiment.protocol == GradientCoding(collect=4)

"""Problems travel as specs, weigh little where nodes live, and refuse what does not fit."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import emuml.workloads
from emuml.errors import UserError
from emuml.spec import InputFolder, Inputs, from_spec, to_spec
from emuml.workloads import (
    AcceleratedGradientDescent,
    CsrMatrix,
    GradientDescent,
    InverseTime,
    LogisticRegression,
    RegressionProblem,
)


@pytest.fixture
def problem():
    return LogisticRegression(
        data="two-gaussians:203x7",
        optimizer=AcceleratedGradientDescent(schedule=InverseTime(0.1)),
        batch=5,
        chunk_rows=16,
        initial_scale=1.0,
    ).problem(11)


def travelled(problem, folder):
    inputs = Inputs()
    text = json.dumps(to_spec(problem, inputs))
    inputs.write(folder)
    return from_spec(json.loads(text), InputFolder(folder))


@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_a_problem_from_mapped_files_gives_the_same_bits(tmp_path, batch, validation):
    here = LogisticRegression(data="two-gaussians:203x7", batch=batch, chunk_rows=16, validation=validation).problem(11)
    there = travelled(here, tmp_path)
    assert there == here
    assert hash(there) == hash(here)
    at = np.linspace(-1, 1, 8)
    tasks = [p.gradient(at, (0, 2, 5), 6, (1.0, -0.5, 2.0), draw=3) for p in (here, there)]
    assert tasks[0].key() == tasks[1].key()
    assert tasks[0].run().tobytes() == tasks[1].run().tobytes()
    assert here.metrics(at) == there.metrics(at)
    stepped = [p.step(p.start(), p.initial, tasks[0].run(), 0)[1] for p in (here, there)]
    assert stepped[0].tobytes() == stepped[1].tobytes()


def test_arrays_are_mapped_and_not_copied(problem, tmp_path):
    inputs = InputFolder(tmp_path)
    kept = Inputs()
    spec = to_spec(problem, kept)
    kept.write(tmp_path)
    there = from_spec(spec, inputs)
    mapped = inputs.arrays[spec["features"]["input"]]
    assert isinstance(mapped, np.memmap)
    assert np.shares_memory(mapped, there.features)
    assert type(there.features) is np.ndarray


def test_a_problem_survives_pickling(problem):
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_problems_differ_where_any_field_does(problem):
    others = [
        replace(problem, features=problem.features + 1),
        replace(problem, targets=-problem.targets),
        replace(problem, initial=problem.initial + 1),
        replace(problem, validation_targets=-problem.validation_targets),
        replace(problem, l2=0.5),
        replace(problem, batch=None),
        replace(problem, seed=12),
        replace(problem, optimizer=GradientDescent(rate=1.0)),
    ]
    assert all(problem != other for other in others)
    assert problem != "problem"


def test_arrays_are_read_only_and_the_users_stay_writable(make):
    initial = np.zeros(4)
    made = make(initial=initial)
    assert not made.initial.flags.writeable
    assert not made.features.flags.writeable
    assert initial.flags.writeable


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"targets": np.ones(3)}, "targets"),
        ({"features": np.ones(23)}, "features"),
        ({"validation_features": np.ones((5, 3))}, "validation_features"),
        ({"validation_targets": np.ones(4)}, "validation_targets"),
        ({"initial": np.zeros(5)}, "initial"),
        ({"names": ("a", "b")}, "names"),
        ({"model": "logistic"}, "targets"),
        ({"features": np.ones((0, 4)), "targets": np.ones(0)}, "features"),
    ],
)
def test_what_does_not_fit_is_named(make, change, where):
    with pytest.raises(UserError) as caught:
        replace(make(), **change)
    assert caught.value.where == f"RegressionProblem.{where}"
    assert caught.value.allowed


def test_a_problem_needs_a_rate(make):
    with pytest.raises(UserError, match=r"GradientDescent\.rate"):
        make(optimizer=GradientDescent())


def test_too_many_partitions_are_refused(make):
    with pytest.raises(UserError, match="got 24 partitions for 23 training rows"):
        make().gradient(np.zeros(4), (0,), 24)
    assert list(make().partition_bounds(4)) == [0, 5, 11, 17, 23]


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_a_node_needs_numpy_alone(problem, tmp_path, rows):
    if rows == "sparse":
        ones = CsrMatrix(np.arange(problem.rows + 1), np.arange(problem.rows, dtype=np.int32) % 8, columns=8)
        problem = replace(problem, features=ones)
    inputs = Inputs()
    (tmp_path / "spec.json").write_text(json.dumps(to_spec(problem, inputs)))
    inputs.write(tmp_path)
    program = f"""
import json, sys
from pathlib import Path
from emuml.spec import InputFolder, from_spec
folder = Path({str(tmp_path)!r})
problem = from_spec(json.loads((folder / "spec.json").read_text()), InputFolder(folder))
value = problem.gradient(problem.initial, (0, 1), 3, draw=2).run()
problem.metrics(problem.initial)
problem.step(problem.start(), problem.initial, value, 0)
heavy = "sklearn scipy pydantic simpy networkx emuml.workloads.data emuml.workloads.regression".split()
print(json.dumps([value.tobytes().hex(), [name for name in heavy if name in sys.modules]]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    value, heavy = json.loads(done.stdout)
    assert heavy == []
    assert value == problem.gradient(problem.initial, (0, 1), 3, draw=2).run().tobytes().hex()


def test_public_names_exist():
    assert set(emuml.workloads.__all__) <= set(dir(emuml.workloads))
    for name in emuml.workloads.__all__:
        assert getattr(emuml.workloads, name).__name__ == name
    with pytest.raises(AttributeError, match="'Nothing'"):
        _ = emuml.workloads.Nothing


@pytest.mark.parametrize("columns", [1, 3, 7, 8, 17, 64, 129])
@pytest.mark.parametrize("chunk_rows", [1, 3, 7, 128])
def test_equal_rows_are_ranked_equal_wherever_they_stand(columns, chunk_rows):
    draws = np.random.default_rng(columns)
    X = np.tile(draws.normal(size=columns), (41, 1))
    y = np.where(np.arange(41) % 3 == 0, 1.0, -1.0)
    none = np.zeros((0, columns)), np.zeros(0)
    problem = RegressionProblem(
        "logistic", X, y, *none, np.zeros(columns), GradientDescent(rate=0.1), chunk_rows=chunk_rows
    )
    assert problem.metrics(draws.normal(size=columns))["auc"] == 0.5

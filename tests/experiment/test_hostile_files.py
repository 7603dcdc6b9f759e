"""Files by somebody who means no good: huge, deep, endless and unprintable ones are one line each, and soon."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from emuml.cli.main import status
from emuml.cluster import Constant, DelayTrace, Network, ShiftedExponential
from emuml.cluster.compute import ErasureHeadDelays
from emuml.errors import UserError, printable
from emuml.experiment.config import LINES_MAX, ConfigError, loads
from emuml.stopping import AnyOf, Rounds, Seconds, Updates
from tests.experiment.malformed import GOOD, beside, case, check

__all__ = ["beside"]
LAW = "{kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}"
SECONDS = "allowed: a finite number >= 1e-12 and <= 1e+12"
TOP = "allowed: workload, protocol, cluster, rounds, seed, stop, faults, name, format, engine, runtime"
ROUNDS = "exp.yaml:11:9: rounds: got"
FAULT = "exp.yaml:13:"


def with_rounds(text: str) -> dict[str, str]:
    return {"rounds: 3": f"rounds: {text}"}


def with_end(text: str) -> dict[str, str]:
    return {"rounds: 3": f"stop: {text}"}


def with_fault(text: str) -> dict[str, str]:
    return {"seed: 7\n": f"seed: 7\nfaults: [{text}]\n"}


CASES = {
    "no condition to end": case(
        "exp.yaml:11:34: stop.conditions: got []; allowed: at least one condition",
        with_end("{kind: any-of, conditions: []}"),
    ),
    "no condition in a condition": case(
        "exp.yaml:11:62: stop.conditions[0].conditions: got []; allowed: at least one condition",
        with_end("{kind: any-of, conditions: [{kind: any-of, conditions: []}]}"),
    ),
    "an unknown key takes nobody's place": case(
        ["exp.yaml:9:3: cluster.qqq: unknown key; allowed: ", "exp.yaml:9:3: cluster.workers: missing; allowed: "],
        {"workers: 6": "qqq: 6"},
    ),
    "endless mean": case(
        f"exp.yaml:10:63: cluster.compute.mean_s: got 1e+308; {SECONDS}", {"mean_s: 0.5": "mean_s: 1e308"}
    ),
    "vanishing mean": case(
        f"exp.yaml:10:63: cluster.compute.mean_s: got 1e-320; {SECONDS}", {"mean_s: 0.5": "mean_s: 1e-320"}
    ),
    "endless shift": case(
        "exp.yaml:10:49: cluster.compute.shift_s: got 1e+308; allowed: a finite number >= 0 and <= 1e+12",
        {"shift_s: 0.05": "shift_s: 1e308"},
    ),
    "endless latency": case(
        "exp.yaml:11:24: cluster.network.latency_s: got 1e+308; allowed: a finite number >= 0 and <= 1e+12",
        {LAW: f"{LAW}\n  network: {{latency_s: 1e308}}"},
    ),
    "rounds of thirty digits": case(
        f"{ROUNDS} {'9' * 30}; allowed: an integer in 1..1000000000000", with_rounds("9" * 30)
    ),
    "rounds of two hundred digits": case(
        f"{ROUNDS} {'9' * 60}...{'9' * 17}; allowed: an integer in 1..1000000000000", with_rounds("9" * 200)
    ),
    "rounds of five thousand digits": case(
        "exp.yaml:11:9: an integer of 5,000 characters; allowed: at most 300", with_rounds("9" * 5000)
    ),
    "updates of thirty digits": case(
        f"exp.yaml:11:30: stop.count: got {'9' * 30}; allowed: an integer > 0 and <= 1000000000000",
        with_end(f"{{kind: updates, count: {'9' * 30}}}"),
    ),
    "endless limit": case(
        "exp.yaml:11:32: stop.limit_s: got 1e+300; allowed: a finite number >= 0 and <= 1e+12",
        with_end("{kind: seconds, limit_s: 1e300}"),
    ),
    "more delays than memory": case(
        "exp.yaml:10:47: cluster.compute.rounds: 100000000000 rounds of 6 workers are more than ten million delays; "
        "allowed: an integer in 1..1666666",
        {LAW: "{kind: erasurehead-delays, rounds: 100000000000, workers: 6}"},
    ),
    "half a moment": case(
        f"{FAULT}47: faults[0].after: got ['round']; allowed: [text; an integer] or null",
        with_fault("{kind: crash, node: worker-1, after: [round]}"),
    ),
    "no node id": case(
        f"{FAULT}30: faults[0].node: 'worker_1' is no node id; expected role-index, such as 'worker-3'",
        with_fault("{kind: crash, node: worker_1, at_s: 1}"),
    ),
    "underscore": case(f"{ROUNDS} '1_000'; allowed: an integer > 0 or null; did you mean 1000?", with_rounds("1_000")),
    "tag of one's own": case("exp.yaml:11:9: not supported: the tag !foo; leave it out", with_rounds("!foo 3")),
    "tag of another sort": case("exp.yaml:11:9: not supported: the tag !!bool; leave it out", with_rounds("!!bool 3")),
    "tag that makes objects": case(
        "exp.yaml:11:9: not supported: the tag !!python/object/apply:os.system; leave it out",
        with_rounds("!!python/object/apply:os.system ['touch x']"),
    ),
    "quoted format": case(
        "exp.yaml:12:9: format: got '1'; allowed: 1; write it without quotes", {"seed: 7": "format: '1'"}
    ),
    "true for one": case("exp.yaml:12:9: format: got true; allowed: 1", {"seed: 7": "format: true"}),
    "deep": case(
        "exp.yaml:12:104: nested too deeply; allowed: 100 levels", {"seed: 7": f"a: {'[' * 5000}{']' * 5000}"}
    ),
    "long value": case(
        f"exp.yaml:2:9: workload.kind: '{'z' * 59}...{'z' * 16}' is unknown; allowed: linear-regression, ",
        {"logistic-regression": "z" * 100_000},
    ),
    "long name of data": case(
        f"exp.yaml:3:9: workload.data: '{'z' * 59}...{'z' * 16}' is unknown; allowed: ", {"mine.npz": "z" * 100_000}
    ),
    "long name of a file of data": case(
        f"exp.yaml:3:9: workload.data: there is no file '{'z' * 59}...{'z' * 12}.npz'; allowed: ",
        {"mine.npz": "z" * 300 + ".npz"},
    ),
    "long key": case(f"exp.yaml:12:1: {'k' * 180}...{'k' * 17}: unknown key; {TOP}", {"seed: 7": f"{'k' * 900}: 1"}),
    "key of two lines": case(f"exp.yaml:12:1: a\\nb: unknown key; {TOP}", {"seed: 7": '"a\\nb": 1'}),
    "coloured key": case(f"exp.yaml:12:1: \\x1b[31mred: unknown key; {TOP}", {"seed: 7": '"\\e[31mred": 1'}),
    "coloured key given twice": case(
        ["exp.yaml:12:1: \\x1b: unknown key", "exp.yaml:13:1: \\x1b: given twice, first at exp.yaml:12:1"],
        {"seed: 7": '"\\e": 1\n"\\e": 1'},
    ),
    "relative module": case(
        "exp.yaml:2:9: workload.kind: '..a:B' cannot be loaded (TypeError: ", {"logistic-regression": "'..a:B'"}
    ),
    "relative module in an argument": case(
        "argument \"workload.kind='..a:B'\": workload.kind: '..a:B' cannot be loaded (TypeError: ",
        {},
        "workload.kind='..a:B'",
    ),
    "module that raises": case(
        "exp.yaml:2:9: workload.kind: 'raises:A' cannot be loaded (RuntimeError: one\\ntwo)",
        {"logistic-regression": "raises:A"},
    ),
    "module that exits": case(
        "exp.yaml:2:9: workload.kind: 'exits:A' cannot be loaded (SystemExit: 5)", {"logistic-regression": "exits:A"}
    ),
    "module that names what is not there": case(
        "exp.yaml:2:9: workload.kind: 'hints:A' cannot be loaded (NameError: ", {"logistic-regression": "hints:A"}
    ),
    "class that raises": case(
        "exp.yaml:2:3: workload: A: KeyError('no')", {"logistic-regression": "refuses:A", "  data: mine.npz\n": ""}
    ),
}
MODULES = {
    "raises": "raise RuntimeError('one\\ntwo')",
    "exits": "import sys; sys.exit(5)",
    "hints": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: 'Nowhere'\n",
    "refuses": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n"
    "    def __post_init__(self):\n        raise KeyError('no')\n",
}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_is_one_line_for_each_mistake(
    name: str, beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for module, text in MODULES.items():
        (beside / f"{module}.py").write_text(text)
    check(CASES[name], beside, capfd)
    check(CASES[name], beside, capfd, "--plan")


@pytest.mark.parametrize("text", ["key{0}: 1\n", "faults:\n", "workload: 3\n"])
def test_of_many_problems_the_first_are_told_and_the_rest_is_counted(text: str) -> None:
    faults = "".join(f"- {{kind: crash, node: worker-{i + 6}, at_s: 1}}\n" for i in range(1000))
    added = f"faults:\n{faults}" if text == "faults:\n" else "".join(text.format(i) for i in range(1000))
    with pytest.raises(ConfigError) as caught:
        loads(GOOD.replace("mine.npz", "breast-cancer") + added)
    assert len(caught.value.problems) == LINES_MAX + 1
    assert caught.value.problems[-1] == "and 950 more problems"
    assert caught.value.problems[0].startswith("<text>:13:1" if text != "faults:\n" else "<text>:14:23")


def test_a_problem_more_is_told_rather_than_counted() -> None:
    added = "".join(f"key{i}: 1\n" for i in range(LINES_MAX + 1))
    with pytest.raises(ConfigError) as caught:
        loads(GOOD.replace("mine.npz", "breast-cancer") + added)
    assert len(caught.value.problems) == LINES_MAX + 1
    assert "key50" in caught.value.problems[-1]


@pytest.mark.parametrize("name", ["x" * 300 + ".yaml", "a/" + "x" * 300, "nul\0.yaml", "a\nb\x1b[31m.yaml"])
def test_names_that_no_file_has_are_one_printable_line(
    name: str, beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert status(["run", name]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("emuml: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert len(err) < 200


@pytest.mark.parametrize("where", ["the experiment", "the faults"])
def test_what_is_no_regular_file_is_refused_unread(where: str, beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(beside / "pipe")
    (beside / "exp.yaml").write_text(f"{GOOD}faults: pipe\n" if where == "the faults" else GOOD)
    file = "exp.yaml" if where == "the faults" else "pipe"
    for name in (file, file if where == "the faults" else "/dev/zero"):
        assert status(["run", name]) == 2
        assert "no regular file" in capfd.readouterr().err


def test_a_pipe_that_a_shell_hands_over_is_read(beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, GOOD.replace("mine.npz", str(beside / "mine.npz")).replace("seed", "sed").encode())
    os.close(writing)
    assert status(["run", f"/dev/fd/{reading}"]) == 2
    os.close(reading)
    assert capfd.readouterr().err == f"emuml: /dev/fd/{reading}:12:1: sed: unknown key; did you mean 'seed'?\n"


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnyOf(()),
        lambda: Rounds(10**12 + 1),
        lambda: Updates(10**30),
        lambda: Seconds(1.0001e12),
        lambda: Constant(1e-13),
        lambda: Constant(1.1e12),
        lambda: ShiftedExponential(1.1e12, 1.0),
        lambda: ShiftedExponential(0.0, 1e-13),
        lambda: ShiftedExponential(0.0, 1.1e12),
        lambda: DelayTrace(np.array([[1.1e12]])),
        lambda: ErasureHeadDelays(rounds=10_000_001, workers=1),
        lambda: ErasureHeadDelays(mean_s=1e-13),
        lambda: Network(latency_s=1.1e12),
        lambda: Network(bandwidth_bps=1e-7),
    ],
)
def test_absurd_declarations_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(UserError, match="allowed"):
        make()


def test_the_greatest_declarations_that_are_allowed_have_finite_moments() -> None:
    for law in (ShiftedExponential(1e12, 1e12), ShiftedExponential(0.0, 1e-12), Constant(1e12), Constant(1e-12)):
        assert np.isfinite([law.mean(1e3), law.variance(1e3)]).all()


def test_printable_text_is_left_alone_and_the_rest_is_escaped() -> None:
    assert printable("größe 3 [a]\\n") == "größe 3 [a]\\n"
    assert printable("a\nb\r\t\0\x1b[31m\u202e\udce9") == r"a\nb\r\t\x00\x1b[31m\u202e\udce9"

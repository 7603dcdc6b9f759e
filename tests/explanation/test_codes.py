"""Explanations: who is set beside whom, what is said, and what is refused."""

import json

import pytest

import emuml
from emuml.cli.app import run_command
from emuml.cluster import Cluster, Constant, Pareto, ShiftedExponential, Weibull, WithOutliers, WorkerFactors
from emuml.errors import UserError
from emuml.explanation.words import notes, tables, verdict
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, Uncoded
from emuml.workloads import LogisticRegression

REPEATED = FractionalRepetition(3)


def experiment(code=REPEATED, collect=None, workers=12, protocol=None, law=None):
    return emuml.Experiment(
        LogisticRegression(data="breast-cancer", l2=1e-3),
        protocol or GradientCoding(code=code, collect=collect),
        Cluster(workers=workers, compute=law or ShiftedExponential(shift_s=0.05, mean_s=0.5)),
        rounds=50,
        seed=2,
    )


def test_codes_of_equal_work_are_compared_and_the_own_comes_first():
    found = emuml.explain(experiment(), rounds=30)
    names = [row.name for row in found.rows]
    assert names[0] == "fractional-repetition(replication=3)"
    assert len(set(names)) == len(names)
    assert "uncoded" in names
    loads = {row.name: row.found.load.mean for row in found.rows}
    assert {loads[name] for name in names if name.startswith(("cyclic", "balanced", "fractional", "graph"))} == {3.0}
    assert found.rows[0].gradients == pytest.approx(50)
    assert found.time_s == pytest.approx(50 * found.rows[0].found.round_s.mean)


def test_what_does_not_fit_is_told_with_its_reason():
    found = emuml.explain(experiment(workers=13), rounds=10)
    assert set(found.refused) | {row.name for row in found.rows}
    assert all(why for why in found.refused.values())
    assert all(any(name in line for line in notes(found)) for name in found.refused)


def test_what_would_fit_is_told():
    found = emuml.explain(experiment(), rounds=10)
    assert "the nearest is 3; CyclicRepetition(stragglers=2) fits as well" in found.refused["cyclic-mds(stragglers=2)"]


def test_the_own_code_must_fit():
    with pytest.raises(UserError, match="replicas"):
        emuml.explain(experiment(FractionalRepetition(40)))


def test_a_protocol_without_a_code_is_refused():
    with pytest.raises(UserError, match="async-updates"):
        emuml.explain(experiment(protocol=AsyncUpdates()))


def test_deadlines_are_those_of_the_experiment():
    given = experiment(protocol=GradientCoding(code=REPEATED, deadline_s=0.3))
    found = emuml.explain(given, rounds=10)
    assert all(row.found.round_s.mean <= 0.3 for row in found.rows)


def test_codes_with_more_partitions_than_rows_are_told():
    given = experiment(FractionalRepetition(2), workers=501)
    found = emuml.explain(given, rounds=2)
    assert len(found.rows) > 1
    assert "501 partitions for 455" in found.refused["uncoded"]


@pytest.mark.parametrize("load", [0.5, 13.0, float("inf"), float("nan")])
def test_nobody_does_more_than_all_or_less_than_a_share(load):
    with pytest.raises(UserError, match=r"1\.\.12"):
        emuml.explain(experiment(), load=load)


def test_the_other_load_model_is_shown_where_there_are_two():
    found = emuml.explain(experiment(), rounds=10)
    by_name = {row.name: row for row in found.rows}
    assert by_name["uncoded"].other_s == by_name["uncoded"].found.round_s  # a load of 1 is the same under both
    frc = by_name["fractional-repetition(replication=3)"]
    # Three times the tail, and the same shift.
    assert frc.other_s.mean == pytest.approx(0.15 + 3 * (frc.found.round_s.mean - 0.15))
    assert emuml.explain(experiment(law=Constant(1.0)), rounds=10).rows[0].other_s is None


@pytest.mark.parametrize("tail", ["fixed", "scaled"])
def test_any_law_with_a_tail_has_another_load_model(tail):
    def law(tail):
        return WorkerFactors(
            base=Weibull(scale_s=0.2, shape=0.8, shift_s=0.05, tail=tail), factors=(4.0,) + (1.0,) * 11
        )

    other = {"fixed": "scaled", "scaled": "fixed"}[tail]
    found = emuml.explain(experiment(law=law(tail)), rounds=10)
    turned = emuml.explain(experiment(law=law(other)), rounds=10)
    assert found.tail == tail
    assert [row.other_s for row in found.rows] == [row.found.round_s for row in turned.rows]
    mixed = WithOutliers(base=law(tail), outlier=Pareto(scale_s=5.0, shape=2.5), chance=0.1)
    assert emuml.explain(experiment(law=mixed), rounds=10).tail is None


def test_words_name_the_fastest_exact_code():
    found = emuml.explain(experiment(), rounds=30)
    assert any("any sampled round: fractional-repetition(replication=3)" in line for line in verdict(found))
    assert all(len(row) == len(table.head) for table in tables(found) for row in table.rows)


def test_what_a_sample_cannot_tell_apart_is_told():
    said = "".join(verdict(emuml.explain(experiment(), rounds=400)))
    # Copies of four intervals each are groups of three with other numbers.
    assert "balanced-repetition(stragglers=2)" in said
    assert "fractional-repetition(replication=3)" in said
    few = emuml.explain(experiment(), rounds=2)
    balanced = next(row for row in tables(few)[0].rows if row[0].startswith("balanced"))
    assert balanced[2].endswith("∞")


def test_without_redundancy_two_shares_are_the_work_of_others():
    found = emuml.explain(experiment(Uncoded()), rounds=10)
    assert any(row.found.load.mean == 2.0 for row in found.rows)
    assert emuml.explain(experiment(Uncoded()), load=1.0, rounds=10).rows[-1].found.load.mean == 1.0


FILE = """
workload: {kind: logistic-regression, data: breast-cancer}
protocol: {kind: gradient-coding, code: {kind: fractional-repetition, replication: 3}}
cluster: {workers: 12, compute: {kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}}
rounds: 20
"""


def test_the_command_prints_tables_or_one_object(tmp_path, capsys):
    file = tmp_path / "given.yaml"
    file.write_text(FILE)
    run_command(["explain", str(file), "--rounds", "10"])
    said = capsys.readouterr().out
    assert "In equal time" in said
    assert "Fastest of those" in said
    run_command(["explain", str(file), "cluster.workers=9", "--rounds", "10", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["codes"][0]["code"] == "fractional-repetition(replication=3)"
    assert found["codes"][0]["decode_error_per_partition"] == 0

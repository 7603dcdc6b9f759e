"""Versions of parameters that an emulation keeps: counted, and refused beyond a bound before anything starts."""

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.errors import UserError
from emuml.experiment.fitting import prepare
from emuml.experiment.kept import SETTING, kept, limit_bytes, memory_bytes
from emuml.experiment.plan import plan
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.stopping import Seconds
from emuml.workloads import LogisticRegression
from emuml.workloads.optimizers import GradientDescent
from tests.experiment.small import small

DATA = np.arange(60.0).reshape(30, 2) % 7.0, np.arange(30) % 3 > 0
CLUSTER = Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5))


def counted(protocol, tier="event", **changed):
    workload = LogisticRegression(data=DATA, optimizer=GradientDescent(rate=0.1))
    experiment = small(protocol=protocol, workload=workload, cluster=CLUSTER, **changed)
    return {what: count for count, what in kept(experiment, prepare(experiment), tier)}


@pytest.mark.parametrize(
    ("protocol", "answers"),
    [
        (GradientCoding(Uncoded()), 6), (GradientCoding(IgnoreStragglers(), 4), 4),
        (GradientCoding(FractionalRepetition(2)), 3), (GradientCoding(FractionalRepetition(2), 2), 2),
    ],
)  # fmt: skip
def test_rounds_keep_what_is_published_and_what_is_decoded(protocol, answers):
    assert counted(protocol) == {"published versions": 9, "answers that are decoded together": answers}


def test_workers_that_read_at_their_own_pace_keep_a_version_each():
    published = {"published versions": 9}

    assert counted(AsyncUpdates(BSP())) == {**published, "pushes that make one step": 6}
    assert counted(AsyncUpdates(ASP())) == {**published, "versions that workers have read": 6}
    stale = {**published, "versions that workers have read": 6, "copies that workers go on with": 6}
    assert counted(AsyncUpdates(SSP(3))) == {**stale, "pushes that are not confirmed": 24}
    assert counted(AsyncUpdates(SSP(3)), "array") == {**stale, "pushes that are not confirmed": 6}


def test_rounds_that_nobody_counts_are_not_counted():
    found = counted(GradientCoding(Uncoded()), rounds=None, stop=Seconds(5.0))

    assert found == {"answers that are decoded together": 6}


def test_a_run_beyond_the_bound_is_refused_before_it_starts(tmp_path, monkeypatch):
    # Nine versions and two answers of four parameters of eight bytes.
    monkeypatch.setenv(SETTING, "351")
    said = (
        "memory: parameters would take about 352 B: 9 published versions, 2 answers that are decoded together, of 32 B "
        "each; allowed: at most 351 B (by EMUML_MEMORY_BYTES); fewer rounds, or larger steps between versions"
    )
    experiment = small(protocol=GradientCoding(FractionalRepetition(2), 2))

    with pytest.raises(UserError) as refused:
        emuml.run(experiment, out=tmp_path / "run")
    assert str(refused.value) == said
    assert plan(experiment).notes[-1] == f"too large to run: {said}"
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv(SETTING, "352")
    assert emuml.run(experiment).rounds == 8


def test_what_takes_most_is_what_to_change(monkeypatch):
    monkeypatch.setenv(SETTING, "100")
    workload = LogisticRegression(data=DATA, optimizer=GradientDescent(rate=0.1))

    for protocol, rounds, advice in [
        (AsyncUpdates(SSP(2)), 2, "fewer workers, or a barrier with less slack"),
        (GradientCoding(Uncoded()), 2, "tier='array' adds answers as they are evaluated"),
        (GradientCoding(Uncoded()), 9, "fewer rounds"),
    ]:
        with pytest.raises(UserError, match=advice):
            emuml.run(small(protocol=protocol, workload=workload, cluster=CLUSTER, rounds=rounds))


def test_the_bound_is_half_of_the_memory_unless_it_is_set(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    assert limit_bytes() == 0.5 * memory_bytes() > 1e6
    monkeypatch.setenv(SETTING, "2.5e9")
    assert limit_bytes() == 2.5e9
    for wrong in ("much", "0", "-1", "nan"):
        monkeypatch.setenv(SETTING, wrong)
        with pytest.raises(UserError, match="a number of bytes > 0, such as 8e9"):
            limit_bytes()


def test_over_tcp_versions_are_in_many_processes(monkeypatch):
    monkeypatch.setenv(SETTING, "1")

    assert plan(small(), engine="tcp").engine == "tcp"

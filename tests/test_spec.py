"""Canonical specs: declarations come back equal from plain JSON, and wrong values are named with what is allowed."""

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import given
from hypothesis import strategies as st

from emuml import names
from emuml.cluster import (
    FatTree,
    LatencyMatrix,
    Link,
    Route,
    ServerCosts,
    Star,
    Topology,
    TopologyNetwork,
    TwoTier,
    compute,
    failure_laws,
    faults,
    recorded_failures,
    spells,
)
from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.mixtures import AffineLoad, WithOutliers
from emuml.cluster.tails import LogNormal, Pareto, Weibull
from emuml.cluster.workers import MarkovSlowness, SharedDraws, SpeedClasses, WorkerFactors
from emuml.errors import FormatError, UserError
from emuml.protocols import AdaptiveCoding, AsyncUpdates, SequentialGradientCoding
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.gradient_coding import (
    BalancedRepetition,
    Bernoulli,
    CyclicMDS,
    CyclicRepetition,
    Expander,
    FractionalRepetition,
    GradientCoding,
    GraphCode,
    HeterogeneousCode,
    IgnoreStragglers,
    PartialWork,
    StochasticCode,
    Uncoded,
    VerifiedRepetition,
    YeAbbe,
)
from emuml.protocols.gradient_coding.codes import graphs
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition
from emuml.spec import InputFolder, Inputs, array_digest, check, class_of, from_spec, to_spec
from emuml.stopping import AnyOf, Rounds, Seconds, TargetLoss, Updates
from emuml.workloads import CsrMatrix, LinearRegression, LogisticRegression
from emuml.workloads import optimizers as opt

DATA = (np.arange(12.0).reshape(6, 2), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]))
ACCELERATED = opt.AcceleratedGradientDescent(0.25, opt.Exponential(0.5))
LOGISTIC = LogisticRegression(data=DATA, l2=0.5, optimizer=ACCELERATED, batch=1, validation=0.2)
RING = Topology(
    ("a", "b"),
    (Link("ab", 1e9, 0.5, "fatpipe", ("a", "b")), Link("bc", 1e9, between=("b", "c")), Link("spare", 1.0)),
    ("c",),
    (Route("a", "b", ("ab", "bc", "bc"), ("up", "up", "down")),),
    "ecmp",
)

DECLARATIONS = [
    LOGISTIC,
    LinearRegression(chunk_rows=7),
    LOGISTIC.problem(3),
    CsrMatrix(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), columns=3, values=np.array([1.0, 2.0, 3.0])),
    opt.GradientDescent(),
    ACCELERATED,
    opt.Constant(),
    opt.Exponential(0.75),
    opt.InverseTime(2),
    GradientCoding(FractionalRepetition(2, "covered"), collect=3),
    GradientCoding(deadline_s=2, first_times=1.5),
    AsyncUpdates(SSP(3), on_lost="evict"),
    AdaptiveCoding((FractionalRepetition(1), FractionalRepetition(2)), (0.5,), window=8),
    AsyncUpdates(ASP()),
    AsyncUpdates(BSP()),
    BSP(),
    SSP(None),
    ASP(),
    Uncoded(),
    IgnoreStragglers("none"),
    FractionalRepetition(4, "unbiased"),
    VerifiedRepetition(5, 2, "drop"),
    StochasticCode(3, 0.25),
    HeterogeneousCode(2, (0.5, 0, 0.25)),
    CyclicRepetition(3),
    CyclicMDS(3, "seeded"),
    YeAbbe(2, 3, allow_large=True),
    BalancedRepetition(2),
    GraphCode(graphs.Petersen(), tolerance=0.05),
    Expander(graphs.RandomRegular(4), "optimal"),
    Bernoulli(3.0, regularised=True, decoder="optimal", partitions=12),
    graphs.Petersen(),
    graphs.Complete(),
    graphs.Cycle(),
    graphs.Hypercube(),
    graphs.RandomRegular(3),
    graphs.EdgeList(((0, 1), (1, 2), (2, 0))),
    Cluster(workers=3, compute=compute.Constant(2), network=Network(0.5, 1e6), cores=2),
    compute.Instant(),
    compute.Constant(0.1),
    compute.ShiftedExponential(0.05, 0.5, "scaled"),
    Weibull(0.5, 0.7, 0.05),
    LogNormal(0.5, 0.3, tail="scaled"),
    Pareto(0.5, 2.5),
    WithOutliers(compute.Constant(1), Pareto(5, 2), 0.01),
    AffineLoad(compute.Constant(1), 0.5),
    WorkerFactors(compute.Constant(1), (1, 2.5)),
    SpeedClasses(LogNormal(0.5, 0.3), (1, 2), (0.5, 0.5)),
    MarkovSlowness(compute.Constant(1), 5, 0.1, 0.2),
    SharedDraws(compute.ShiftedExponential(0.05, 0.5), 4, 0.5),
    compute.DelayTrace(np.array([[0.1, 0.2], [0.3, 0.4]])),
    compute.ErasureHeadDelays(rounds=10),
    Network(),
    TopologyNetwork(FatTree(2), placement=("host-1", "host-0")),
    LatencyMatrix(np.array([[0.0, 0.1], [np.nan, 0.0]]), 1e6, missing="reverse"),
    RING,
    RING.links[0],
    RING.routes[0],
    PartialWork(2, 0.25, "prefix", "groups"),
    SelectiveRepetition(2, 5, 3),
    MultiplexedCoding(2, 4, 3),
    SequentialGradientCoding(MultiplexedCoding(1, 2, 3), 0.5),
    Star(3, 1e9),
    TwoTier(2, 4, uplink_bps=1e9),
    FatTree(4, latency_s=1e-6),
    ServerCosts(1e9, 1e-6),
    Storage(0.125, 3.0),
    Detection(1, 2, 3, suspect_s=0.5, down_s=2),
    faults.FaultPlan((faults.Crash("worker-1", at_s=2, restart_after=("round", 3)), faults.Start("worker-2", at_s=0))),
    failure_laws.ExponentialFailures(5, 60, spells.FixedRepair(2), role="server"),
    failure_laws.WeibullFailures(0.7, 5, 60, spells.ExponentialRepair(2)),
    failure_laws.GroupFailures(4, 5, 60, 1.5, 0.5, spells.LognormalRepair(2, 1.2)),
    recorded_failures.RecordedFailures([[0, 1, 2], [1, 5, float("inf")]], until_s=9, speed=2),
    spells.FixedRepair(0),
    spells.ExponentialRepair(2),
    spells.LognormalRepair(2, 1.25),
    faults.Crash("worker-0", after=("round", 4), restart_after_s=0.5),
    faults.Start("worker-0", after=("round", 1)),
    faults.Hang("worker-0", 2.0, at_s=1.0),
    faults.Partition(("server-0",), ("worker-0", "worker-1"), 1.5, at_s=0),
    faults.GroupCrash(("worker-0", "worker-2"), at_s=3, warning_s=120, within_s=1.5),
    faults.SlowLink("server-0", "worker-0", 0.5, 2, after=("round", 9)),
    faults.Lossy("server-0", "worker-0", 0.25, 2, at_s=1, timeout_s=1),
    faults.SlowNode("worker-0", 3, 2, at_s=7),
    Rounds(5),
    Updates(6),
    Seconds(0.5),
    TargetLoss(0.25, "validation_loss"),
    Rounds(5) | Seconds(7) | TargetLoss(0.1),
]


@pytest.mark.parametrize("declared", DECLARATIONS, ids=lambda declared: names.kind_of(type(declared)))
def test_every_declaration_comes_back_from_plain_data(declared, tmp_path):
    inputs = Inputs()
    text = json.dumps(to_spec(declared, inputs), allow_nan=False)
    inputs.write(tmp_path)

    for source in (inputs, InputFolder(tmp_path)):
        again = from_spec(json.loads(text), source)
        assert type(again) is type(declared)
        assert again == declared
        assert hash(again) == hash(declared)
        assert json.dumps(to_spec(again, Inputs())) == text


def test_every_registered_declaration_is_among_these():
    tried = {names.kind_of(type(declared)) for declared in DECLARATIONS}

    assert {kind for known in names.REGISTRY.values() for kind in known} == tried


def test_a_spec_writes_out_defaults_and_leaves_nothing_behind():
    assert to_spec(Network(0.5), Inputs()) == {"kind": "network", "latency_s": 0.5, "bandwidth_bps": None}
    assert to_spec(Rounds(2) | Rounds(3), Inputs()) == {
        "kind": "any-of",
        "conditions": [{"kind": "rounds", "count": 2}, {"kind": "rounds", "count": 3}],
    }


def test_arrays_travel_beside_the_spec_once(tmp_path):
    inputs = Inputs()
    array = np.arange(3.0)
    first, second = to_spec(array, inputs), to_spec(array.copy(), inputs)
    inputs.write(tmp_path)

    assert first == second == {"input": array_digest(array)}
    assert [path.name for path in tmp_path.iterdir()] == [f"{array_digest(array)}.npy"]
    mapped = InputFolder(tmp_path).get(array_digest(array))
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable


@pytest.mark.parametrize(
    "other",
    [np.arange(4.0), np.arange(3.0, dtype=np.float32), np.arange(3), np.arange(3.0).reshape(1, 3), np.arange(1.0, 4.0)],
)
def test_digests_tell_arrays_apart_by_dtype_shape_and_bytes(other):
    assert array_digest(other) != array_digest(np.arange(3.0))
    assert array_digest(np.asfortranarray(other)) == array_digest(other)


def test_a_missing_input_is_named(tmp_path):
    with pytest.raises(FormatError, match="input 0abc is missing"):
        InputFolder(tmp_path).get("0abc")


@pytest.mark.parametrize("value", [{1: 2}, object(), {1, 2}, 1j])
def test_what_has_no_spec_is_refused(value):
    with pytest.raises(UserError, match="has no canonical spec"):
        to_spec(value, Inputs())


@pytest.mark.parametrize("kind", ["no-such-kind", "emuml.node:NodeId"])
def test_unknown_kinds_are_refused_by_name(kind):
    with pytest.raises(FormatError, match=kind):
        class_of(kind)


@dataclass(frozen=True)
class Declared:
    whole: Annotated[int, Ge(1), Le(9)] = 1
    part: Annotated[float, Gt(0), Lt(1)] = 0.5
    maybe: Annotated[float, Gt(0)] | None = None
    text: str = ""
    flag: bool = False
    word: Literal["a", "b"] = "a"
    pair: tuple[str, int] = ("round", 1)
    many: tuple[float, ...] = ()
    inner: Network | None = None

    def __post_init__(self) -> None:
        check(self)


def test_a_declaration_of_another_module_is_found_by_where_it_lives():
    declared = Declared(many=(1, 2.5), inner=Network(1))
    spec = to_spec(declared, Inputs())

    assert spec["kind"] == f"{__name__}:Declared"
    assert from_spec(spec, Inputs()) == declared


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("part", np.float64(0.25), 0.25),
        ("whole", np.int64(3), 3),
        ("maybe", 2, 2.0),
        ("many", [1, 2], (1.0, 2.0)),
        ("pair", ["round", np.int32(4)], ("round", 4)),
        ("flag", np.True_, True),
    ],
)
def test_equal_meanings_get_one_form(field, value, kept):
    found = getattr(Declared(**{field: value}), field)

    assert found == kept
    assert type(found) is type(kept)
    if isinstance(kept, tuple):
        assert [type(item) for item in found] == [type(item) for item in kept]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("whole", 0, "a finite number >= 1"),
        ("whole", 10, "a finite number <= 9"),
        ("whole", True, "an integer"),
        ("whole", 2.0, "an integer"),
        ("whole", "3", "an integer"),
        ("part", 0, "a finite number > 0"),
        ("part", 1, "a finite number < 1"),
        ("part", float("nan"), "a finite number > 0"),
        ("part", True, "a number"),
        ("part", "x", "a number"),
        ("maybe", float("inf"), "a finite number > 0"),
        ("maybe", -1, "a finite number > 0"),
        ("text", 3, "text"),
        ("flag", 1, "true or false"),
        ("word", "c", "'a' | 'b'"),
        ("pair", ("round",), "2 items"),
        ("pair", ("round", "x"), "an integer"),
        ("many", (1.0, "x"), "a number"),
        ("inner", Rounds(1), "Network"),
    ],
)
def test_wrong_values_are_named_with_what_is_allowed(field, value, allowed):
    with pytest.raises(UserError) as caught:
        Declared(**{field: value})

    assert caught.value.where.startswith(f"Declared.{field}")
    assert caught.value.what.startswith("got ")
    assert caught.value.allowed == allowed


def test_a_wrong_item_is_named_by_its_place():
    with pytest.raises(UserError, match=r"Declared\.many\[1\]: got 'x'"):
        Declared(many=(1.0, "x"))


def test_replacing_a_field_checks_again():
    with pytest.raises(UserError, match=r"Declared\.whole"):
        replace(Declared(), whole=-1)


@given(st.integers(-5, 15))
def test_bounds_are_exactly_as_declared(value):
    accepted = True
    try:
        Declared(whole=value)
    except UserError:
        accepted = False

    assert accepted == (1 <= value <= 9)


plain: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(st.recursive(plain, lambda inner: st.lists(inner).map(tuple), max_leaves=10))
def test_plain_values_come_back_with_their_types(value):
    again = from_spec(json.loads(json.dumps(to_spec(value, Inputs()))), Inputs())

    assert again == value
    assert repr(again) == repr(value)


def test_conditions_flatten():
    assert Rounds(1) | (Rounds(2) | Rounds(3)) == AnyOf((Rounds(1), Rounds(2), Rounds(3)))


def test_an_input_that_was_changed_is_refused_by_who_verifies(tmp_path):
    inputs = Inputs()
    digest = inputs.add(np.arange(4.0))
    inputs.write(tmp_path)
    assert InputFolder(tmp_path, verify=True).get(digest).tolist() == [0.0, 1.0, 2.0, 3.0]
    np.save(tmp_path / f"{digest}.npy", np.arange(4.0) + 1)
    with pytest.raises(FormatError, match="was changed"):
        InputFolder(tmp_path, verify=True).get(digest)

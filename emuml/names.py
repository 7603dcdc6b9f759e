"""Registered names: the word a configuration uses -> where the class lives, as strings only.

Importing this module imports nothing else of the package, so command line help and lean node processes stay fast.
Third parties add to it through the entry point group ``emuml.names`` or by writing ``module:Class`` as the name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from emuml.errors import UserError, did_you_mean

REGISTRY: dict[str, dict[str, str]] = {
    "workload": {
        "logistic-regression": "emuml.workloads.regression:LogisticRegression",
        "linear-regression": "emuml.workloads.regression:LinearRegression",
    },
    "problem": {"regression-problem": "emuml.workloads.problem:RegressionProblem"},
    "matrix": {"csr-matrix": "emuml.workloads.csr:CsrMatrix"},
    "optimizer": {
        "gradient-descent": "emuml.workloads.optimizers:GradientDescent",
        "accelerated-gradient-descent": "emuml.workloads.optimizers:AcceleratedGradientDescent",
    },
    "schedule": {
        "constant-rate": "emuml.workloads.optimizers:Constant",
        "exponential-decay": "emuml.workloads.optimizers:Exponential",
        "inverse-time-decay": "emuml.workloads.optimizers:InverseTime",
    },
    "protocol": {
        "gradient-coding": "emuml.protocols.gradient_coding:GradientCoding",
        "adaptive-coding": "emuml.protocols.adaptive_coding:AdaptiveCoding",
        "async-updates": "emuml.protocols.async_updates:AsyncUpdates",
        "sequential-gradient-coding": "emuml.protocols.sequential_coding:SequentialGradientCoding",
    },
    "barrier": {
        "bsp": "emuml.protocols.async_updates:BSP",
        "ssp": "emuml.protocols.async_updates:SSP",
        "asp": "emuml.protocols.async_updates:ASP",
    },
    "code": {
        "uncoded": "emuml.protocols.gradient_coding:Uncoded",
        "ignore-stragglers": "emuml.protocols.gradient_coding:IgnoreStragglers",
        "fractional-repetition": "emuml.protocols.gradient_coding:FractionalRepetition",
        "verified-repetition": "emuml.protocols.gradient_coding:VerifiedRepetition",
        "stochastic-code": "emuml.protocols.gradient_coding:StochasticCode",
        "heterogeneous-code": "emuml.protocols.gradient_coding:HeterogeneousCode",
        "cyclic-repetition": "emuml.protocols.gradient_coding:CyclicRepetition",
        "cyclic-mds": "emuml.protocols.gradient_coding:CyclicMDS",
        "ye-abbe": "emuml.protocols.gradient_coding:YeAbbe",
        "partial-work": "emuml.protocols.gradient_coding:PartialWork",
        "sr-sgc": "emuml.protocols.sequential_coding:SelectiveRepetition",
        "m-sgc": "emuml.protocols.sequential_coding:MultiplexedCoding",
        "balanced-repetition": "emuml.protocols.gradient_coding:BalancedRepetition",
        "graph-code": "emuml.protocols.gradient_coding:GraphCode",
        "expander": "emuml.protocols.gradient_coding:Expander",
        "bernoulli": "emuml.protocols.gradient_coding:Bernoulli",
    },
    "graph": {
        "petersen": "emuml.protocols.gradient_coding.codes.graphs:Petersen",
        "complete": "emuml.protocols.gradient_coding.codes.graphs:Complete",
        "cycle": "emuml.protocols.gradient_coding.codes.graphs:Cycle",
        "hypercube": "emuml.protocols.gradient_coding.codes.graphs:Hypercube",
        "random-regular": "emuml.protocols.gradient_coding.codes.graphs:RandomRegular",
        "edge-list": "emuml.protocols.gradient_coding.codes.graphs:EdgeList",
    },
    "cluster": {"cluster": "emuml.cluster.cluster:Cluster"},
    "compute": {
        "instant": "emuml.cluster.compute:Instant",
        "constant": "emuml.cluster.compute:Constant",
        "shifted-exponential": "emuml.cluster.compute:ShiftedExponential",
        "weibull": "emuml.cluster.tails:Weibull",
        "log-normal": "emuml.cluster.tails:LogNormal",
        "pareto": "emuml.cluster.tails:Pareto",
        "with-outliers": "emuml.cluster.mixtures:WithOutliers",
        "affine-load": "emuml.cluster.mixtures:AffineLoad",
        "worker-factors": "emuml.cluster.workers:WorkerFactors",
        "speed-classes": "emuml.cluster.workers:SpeedClasses",
        "markov-slowness": "emuml.cluster.workers:MarkovSlowness",
        "shared-draws": "emuml.cluster.workers:SharedDraws",
        "delay-trace": "emuml.cluster.delays:DelayTrace",
        "erasurehead-delays": "emuml.cluster.delays:ErasureHeadDelays",
    },
    "network": {
        "network": "emuml.cluster.cluster:Network",
        "topology-network": "emuml.cluster.networks:TopologyNetwork",
        "latency-matrix": "emuml.cluster.networks:LatencyMatrix",
    },
    "topology": {
        "topology": "emuml.cluster.topology:Topology",
        "star": "emuml.cluster.topology_shapes:Star",
        "two-tier": "emuml.cluster.topology_shapes:TwoTier",
        "fat-tree": "emuml.cluster.topology_shapes:FatTree",
    },
    "link": {"link": "emuml.cluster.topology:Link"},
    "route": {"route": "emuml.cluster.topology:Route"},
    "server_costs": {"server-costs": "emuml.cluster.networks:ServerCosts"},
    "storage": {"storage": "emuml.cluster.cluster:Storage"},
    "detection": {"detection": "emuml.cluster.cluster:Detection"},
    "faults": {
        "fault-plan": "emuml.cluster.faults:FaultPlan",
        "exponential-failures": "emuml.cluster.failure_laws:ExponentialFailures",
        "weibull-failures": "emuml.cluster.failure_laws:WeibullFailures",
        "group-failures": "emuml.cluster.failure_laws:GroupFailures",
        "recorded-failures": "emuml.cluster.recorded_failures:RecordedFailures",
    },
    "repair": {
        "fixed-repair": "emuml.cluster.spells:FixedRepair",
        "exponential-repair": "emuml.cluster.spells:ExponentialRepair",
        "lognormal-repair": "emuml.cluster.spells:LognormalRepair",
    },
    "fault": {
        "crash": "emuml.cluster.fault_kinds:Crash",
        "group-crash": "emuml.cluster.fault_kinds:GroupCrash",
        "start": "emuml.cluster.fault_kinds:Start",
        "hang": "emuml.cluster.fault_kinds:Hang",
        "partition": "emuml.cluster.fault_kinds:Partition",
        "slow-link": "emuml.cluster.fault_kinds:SlowLink",
        "lossy": "emuml.cluster.fault_kinds:Lossy",
        "slow-node": "emuml.cluster.fault_kinds:SlowNode",
    },
    "stop": {
        "rounds": "emuml.stopping:Rounds",
        "updates": "emuml.stopping:Updates",
        "seconds": "emuml.stopping:Seconds",
        "target-loss": "emuml.stopping:TargetLoss",
        "any-of": "emuml.stopping:AnyOf",
    },
}


def load(target: str) -> Any:
    """Import ``module:Name`` and return the named object."""
    module, _, name = target.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def resolve(family: str, name: str, where: str = "") -> Any:
    """Return the class registered under ``name`` in ``family``.

    Raises
    ------
    UserError
        If the name is unknown; the message lists what is allowed and the nearest name.
    """
    known = REGISTRY.get(family, {})
    if name not in known:
        raise UserError(f"{name!r} is unknown", where or family, ", ".join(sorted(known)), did_you_mean(name, known))
    return load(known[name])


def kind_of(cls: type) -> str:
    """Return the registered name of a class, or ``module:Class`` when it has none."""
    target, homes = f"{cls.__module__}:{cls.__qualname__}", _homes()
    package = cls.__module__
    while package:
        if (home := f"{package}:{cls.__qualname__}") in homes:
            return homes[home]
        package = package.rpartition(".")[0]
    return target


def family_of(kind: str) -> str | None:
    """Return the first family that knows ``kind``."""
    return next((family for family, known in REGISTRY.items() if kind in known), None)


def _homes() -> dict[str, str]:
    """Map ``module:Class`` to the registered name; a package around its module may re-export it."""
    return {target: kind for known in REGISTRY.values() for kind, target in known.items()}

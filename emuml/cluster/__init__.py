"""What a run runs on: workers and their speed, network, storage and faults, as plain declarations.

Names are imported when first used, so that a node process loads only what its run describes. Nothing here is an
engine: declarations answer questions, the emulator and the TCP runtime ask them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emuml.cluster.cluster import Cluster as Cluster
    from emuml.cluster.cluster import Detection as Detection
    from emuml.cluster.cluster import Network as Network
    from emuml.cluster.cluster import Storage as Storage
    from emuml.cluster.compute import ComputeModel as ComputeModel
    from emuml.cluster.compute import Constant as Constant
    from emuml.cluster.compute import Instant as Instant
    from emuml.cluster.compute import ShiftedExponential as ShiftedExponential
    from emuml.cluster.delays import DelayTrace as DelayTrace
    from emuml.cluster.delays import ErasureHeadDelays as ErasureHeadDelays
    from emuml.cluster.delays import erasurehead_delays as erasurehead_delays
    from emuml.cluster.mixtures import AffineLoad as AffineLoad
    from emuml.cluster.mixtures import WithOutliers as WithOutliers
    from emuml.cluster.networks import LatencyMatrix as LatencyMatrix
    from emuml.cluster.networks import ServerCosts as ServerCosts
    from emuml.cluster.networks import TopologyNetwork as TopologyNetwork
    from emuml.cluster.tails import LogNormal as LogNormal
    from emuml.cluster.tails import Pareto as Pareto
    from emuml.cluster.tails import Weibull as Weibull
    from emuml.cluster.topology import Link as Link
    from emuml.cluster.topology import Route as Route
    from emuml.cluster.topology import Topology as Topology
    from emuml.cluster.topology_shapes import FatTree as FatTree
    from emuml.cluster.topology_shapes import Star as Star
    from emuml.cluster.topology_shapes import TwoTier as TwoTier
    from emuml.cluster.workers import MarkovSlowness as MarkovSlowness
    from emuml.cluster.workers import SharedDraws as SharedDraws
    from emuml.cluster.workers import SpeedClasses as SpeedClasses
    from emuml.cluster.workers import WorkerFactors as WorkerFactors

_HOMES = {
    "Cluster": "emuml.cluster.cluster",
    "Network": "emuml.cluster.cluster",
    "Storage": "emuml.cluster.cluster",
    "Detection": "emuml.cluster.cluster",
    "ComputeModel": "emuml.cluster.compute",
    "Instant": "emuml.cluster.compute",
    "Constant": "emuml.cluster.compute",
    "ShiftedExponential": "emuml.cluster.compute",
    "Weibull": "emuml.cluster.tails",
    "LogNormal": "emuml.cluster.tails",
    "Pareto": "emuml.cluster.tails",
    "AffineLoad": "emuml.cluster.mixtures",
    "WithOutliers": "emuml.cluster.mixtures",
    "MarkovSlowness": "emuml.cluster.workers",
    "SharedDraws": "emuml.cluster.workers",
    "SpeedClasses": "emuml.cluster.workers",
    "WorkerFactors": "emuml.cluster.workers",
    "DelayTrace": "emuml.cluster.delays",
    "ErasureHeadDelays": "emuml.cluster.delays",
    "erasurehead_delays": "emuml.cluster.delays",
    "LatencyMatrix": "emuml.cluster.networks",
    "ServerCosts": "emuml.cluster.networks",
    "TopologyNetwork": "emuml.cluster.networks",
    "Link": "emuml.cluster.topology",
    "Route": "emuml.cluster.topology",
    "Topology": "emuml.cluster.topology",
    "FatTree": "emuml.cluster.topology_shapes",
    "Star": "emuml.cluster.topology_shapes",
    "TwoTier": "emuml.cluster.topology_shapes",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

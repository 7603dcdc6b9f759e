"""Fault-tolerant and straggler-tolerant training protocols, written once, run on an emulator or over real TCP.

Public names only; each is imported when it is first used, so that ``import emuml`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Array": "emuml.message",
    "Message": "emuml.message",
    "Node": "emuml.node",
    "NodeId": "emuml.node",
    "PeerState": "emuml.node",
    "Context": "emuml.context",
    "PeerChange": "emuml.waits",
    "Script": "emuml.script",
    "ScriptContext": "emuml.script_context",
    "Task": "emuml.task",
    "combine": "emuml.lazy",
    "Roster": "emuml.roster",
    "Rounds": "emuml.stopping",
    "Updates": "emuml.stopping",
    "Seconds": "emuml.stopping",
    "TargetLoss": "emuml.stopping",
    "ParameterBlocks": "emuml.parameters",
    "FaultPlan": "emuml.cluster.faults",
    "Crash": "emuml.cluster.faults",
    "Start": "emuml.cluster.faults",
    "GroupCrash": "emuml.cluster.faults",
    "Hang": "emuml.cluster.faults",
    "Lossy": "emuml.cluster.faults",
    "Partition": "emuml.cluster.faults",
    "SlowLink": "emuml.cluster.faults",
    "SlowNode": "emuml.cluster.faults",
    "Experiment": "emuml.experiment.experiment",
    "Result": "emuml.experiment.result",
    "run": "emuml.experiment.run",
    "explain": "emuml.explanation.codes",
    "replay": "emuml.experiment.replay",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from emuml.cluster.faults import Crash as Crash
    from emuml.cluster.faults import FaultPlan as FaultPlan
    from emuml.cluster.faults import GroupCrash as GroupCrash
    from emuml.cluster.faults import Hang as Hang
    from emuml.cluster.faults import Lossy as Lossy
    from emuml.cluster.faults import Partition as Partition
    from emuml.cluster.faults import SlowLink as SlowLink
    from emuml.cluster.faults import SlowNode as SlowNode
    from emuml.cluster.faults import Start as Start
    from emuml.context import Context as Context
    from emuml.experiment.experiment import Experiment as Experiment
    from emuml.experiment.replay import replay as replay
    from emuml.experiment.result import Result as Result
    from emuml.experiment.run import run as run
    from emuml.explanation.codes import explain as explain
    from emuml.lazy import combine as combine
    from emuml.message import Array as Array
    from emuml.message import Message as Message
    from emuml.node import Node as Node
    from emuml.node import NodeId as NodeId
    from emuml.node import PeerState as PeerState
    from emuml.parameters import ParameterBlocks as ParameterBlocks
    from emuml.roster import Roster as Roster
    from emuml.script import Script as Script
    from emuml.script_context import ScriptContext as ScriptContext
    from emuml.stopping import Rounds as Rounds
    from emuml.stopping import Seconds as Seconds
    from emuml.stopping import TargetLoss as TargetLoss
    from emuml.stopping import Updates as Updates
    from emuml.task import Task as Task
    from emuml.waits import PeerChange as PeerChange


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'emuml' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

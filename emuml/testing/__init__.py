"""Testing of protocols and engines.

``run_nodes`` runs bare nodes on either engine. ``check`` explores: a protocol is run many times on the emulator under
schedules and faults that its contract allows, and a failure comes back as a small scenario that replays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emuml.testing.running import run_nodes

if TYPE_CHECKING:
    from emuml.testing.budget import Budget as Budget
    from emuml.testing.budget import clusters as clusters
    from emuml.testing.budget import faults as faults
    from emuml.testing.budget import quorum as quorum
    from emuml.testing.campaign import Campaign as Campaign
    from emuml.testing.campaign import explore as explore
    from emuml.testing.checking import CheckFailed as CheckFailed
    from emuml.testing.checking import check as check
    from emuml.testing.checking import run as run
    from emuml.testing.machine import ClusterMachine as ClusterMachine
    from emuml.testing.oracles import Description as Description
    from emuml.testing.oracles import OracleError as OracleError
    from emuml.testing.scenario import CrashFault as CrashFault
    from emuml.testing.scenario import CutFault as CutFault
    from emuml.testing.scenario import Deviation as Deviation
    from emuml.testing.scenario import PauseFault as PauseFault
    from emuml.testing.scenario import Scenario as Scenario
    from emuml.testing.scenario import SlowFault as SlowFault
    from emuml.testing.scenario import load as load
    from emuml.testing.strategies import scenarios as scenarios
    from emuml.testing.subject import shipped as shipped

_HOMES = {
    "Budget": "budget",
    "Campaign": "campaign",
    "CheckFailed": "checking",
    "ClusterMachine": "machine",
    "CrashFault": "scenario",
    "CutFault": "scenario",
    "Description": "oracles",
    "Deviation": "scenario",
    "OracleError": "oracles",
    "PauseFault": "scenario",
    "Scenario": "scenario",
    "SlowFault": "scenario",
    "check": "checking",
    "clusters": "budget",
    "explore": "campaign",
    "faults": "budget",
    "load": "scenario",
    "quorum": "budget",
    "run": "checking",
    "scenarios": "strategies",
    "shipped": "subject",
}

__all__ = [
    "run_nodes",
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    """Import what explores when it is first used: running nodes needs neither pydantic nor Hypothesis."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

"""Bare nodes on either engine, without an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from emuml.blas import single_threaded
from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import FaultPlan
from emuml.errors import UserError
from emuml.node import Factory, NodeId
from emuml.outcome import Run
from emuml.roster import Roster
from emuml.spec import Inputs
from emuml.testing.given import checked_nodes

if TYPE_CHECKING:
    from emuml.runtime.settings import RuntimeSettings

GivenNodes = Mapping[NodeId, tuple[str, Factory]] | Mapping[str, tuple[str, Factory]]


def run_nodes(
    nodes: GivenNodes,
    engine: Literal["des", "tcp"] = "des",
    cluster: Cluster | None = None,
    faults: FaultPlan | None = None,
    seed: int = 0,
    until_s: float | None = None,
    *,
    processes: Literal["each", "shared"] | None = None,
    runtime: RuntimeSettings | None = None,
    journal: bool = True,
    choose: Callable[[str, int], int] | None = None,
    folder: Path | None = None,
) -> Run:
    """Run nodes and return the engine's record.

    A run that fails does not raise: look at ``run.error``, whose ``__cause__`` is the exception of a handler, and at
    ``run.stopped``, the reason given to ``ctx.stop``.

    Parameters
    ----------
    nodes : mapping of id -> (role, factory)
        Ids are :class:`emuml.NodeId` or their text, such as ``"worker-3"``.
    engine : {"des", "tcp"}
    cluster : Cluster, optional
        Laws and cores; its counts are not used. Task cost 1 is load 1.
    faults : FaultPlan, optional
    until_s : float, optional
        End the run then, if nothing stopped it before.
    processes : {"each", "shared"}, optional
        TCP only. Over processes of their own, factories must be importable by name, with plain arguments.
    choose : callable, optional
        Emulator only: picks among legal schedules.
    """
    if engine not in ("des", "tcp"):
        raise UserError(f"got {engine!r}", "engine", "'des' or 'tcp'")
    if until_s is not None and until_s < 0:
        raise UserError(f"got {until_s!r}", "until_s", "seconds >= 0")
    parsed = checked_nodes(nodes)
    roster = Roster(tuple(sorted(parsed)), seed)
    cluster, faults = cluster or Cluster(workers=1), faults or FaultPlan()
    if engine == "des":
        from emuml.des.emulator import Emulator

        with single_threaded():
            return Emulator(parsed, cluster, roster, faults, journal=journal, choose=choose).run(until_s)
    return _over_tcp(parsed, roster, cluster, faults, until_s, processes, runtime, folder)


def _over_tcp(
    nodes: Mapping[NodeId, tuple[str, Factory]],
    roster: Roster,
    cluster: Cluster,
    faults: FaultPlan,
    until_s: float | None,
    processes: str | None,
    runtime: RuntimeSettings | None,
    folder: Path | None,
) -> Run:
    from emuml.runtime.deployment import Job, call_spec, deploy, with_processes

    settings, inputs = with_processes(runtime, processes), Inputs()
    builds: dict[NodeId, dict[str, Any]] = {}
    if settings.processes == "each":
        builds = {id: call_spec(factory, inputs) for id, (_, factory) in nodes.items()}
    job = Job(nodes, roster, cluster, builds.__getitem__, inputs, faults=faults, until_s=until_s)
    return deploy(job, settings, folder)

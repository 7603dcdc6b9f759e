"""A scenario over TCP, in its logical form: crashes strike where the emulated run had logged as much.

Wall-clock times mean nothing to a real run, so a crash at a time becomes a crash at the last count that was logged
before it, and a restart one at the last count before that. Deviations cannot be forced and are dropped; faults that the
runtime cannot execute are refused by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import After, Crash, Fault, FaultPlan
from emuml.outcome import Run
from emuml.testing.mishaps import AnyMishap, CrashFault
from emuml.testing.oracles import Judge
from emuml.testing.scenario import Scenario
from emuml.testing.trial import Trial, Trier

COUNTER = "round"
"""The logged count that crashes are tied to."""

BACK_S = 0.05
"""Seconds after which a node is back of which the emulated run logged nothing while it was down."""


def logical(scenario: Scenario, emulated: Run, counter: str = COUNTER) -> FaultPlan:
    """Return the crashes at logged counts instead of times.

    Parameters
    ----------
    emulated : Run
        Of the same scenario, on the emulator.
    counter : str
        A metric that some node logs, and that counts up.

    Returns
    -------
    FaultPlan
        A crash before anything was logged stays at a time, of 0 s.
    """
    logs = [(row[0], row[3][counter]) for row in emulated.trace.rows if row[2] == "log" and counter in row[3]]
    times = [float(time_s) for time_s, _ in logs]
    return FaultPlan(tuple(_struck(fault, logs, times, counter) for fault in scenario.faults))


def _struck(fault: AnyMishap, logs: Sequence[tuple[float, Any]], times: list[float], counter: str) -> Fault:
    if isinstance(fault, CrashFault):
        return _crash(fault, logs, times, counter)
    struck = _last(logs, times, fault.at_s, counter)
    return replace(fault.as_fault(), **({} if struck is None else {"at_s": None, "after": struck}))


def _crash(fault: CrashFault, logs: Sequence[tuple[float, Any]], times: list[float], counter: str) -> Crash:
    struck = _last(logs, times, fault.at_s, counter)
    back: After | None = None
    if fault.restart_after_s is not None:
        back = _last(logs, times, fault.at_s + fault.restart_after_s, counter)
    waits = fault.restart_after_s is not None and (back is None or back == struck)
    return Crash(
        fault.node,
        at_s=0.0 if struck is None else None,
        after=struck,
        restart_after_s=BACK_S if waits else None,
        restart_after=None if waits else back,
    )


def _last(logs: Sequence[tuple[float, Any]], times: list[float], now: float, counter: str) -> After | None:
    position = bisect_right(times, now)
    return (counter, int(logs[position - 1][1])) if position else None


def possible(trier: Trier, scenario: Scenario) -> FaultPlan:
    """Return the logical form of a scenario's faults, such that the run can go on where the emulated one could.

    A crash at a count is earlier than the one at its time, so that the count at which the node is to come back may need
    what it had still sent. So the form is tried on the emulator first: if a run does not end there that ended, nodes
    are back after ``BACK_S`` instead.
    """
    from emuml.des.emulator import Emulator

    emulated = trier.run(scenario)
    plan = logical(emulated.scenario, emulated.run)
    if emulated.run.stopped is None or not emulated.ok:
        return plan
    built = trier.subject.build(scenario)
    tried = Emulator(built.nodes, scenario.cluster(), built.roster, plan, built.unit_cost)
    if tried.run(trier.budget.heal_s + trier.description.within_s).stopped is not None:
        return plan
    return FaultPlan(tuple(_back_soon(fault) for fault in plan.faults))


def _back_soon(fault: Fault) -> Fault:
    if isinstance(fault, Crash) and fault.restart_after is not None:
        return replace(fault, restart_after=None, restart_after_s=BACK_S)
    return fault


def over_tcp(trier: Trier, scenario: Scenario) -> Trial:
    """Run a scenario's nodes over TCP, all in this process, and judge the finished run.

    Returns
    -------
    Trial
        Its scenario has no deviations: they were dropped. Oracles of single steps see nothing here.
    """
    from emuml.runtime.settings import RuntimeSettings
    from emuml.testing.running import run_nodes
    from emuml.testing.views import Finished

    plan = possible(trier, scenario)
    built = trier.subject.build(scenario)
    run = run_nodes(
        built.nodes,
        "tcp",
        Cluster(workers=scenario.workers),
        plan,
        scenario.seed,
        processes="shared",
        runtime=RuntimeSettings(stall_s=2.0, start_deadline_s=60.0, drain_s=5.0),
    )
    judge = Judge(trier.description)
    said = {str(id): node.waiting_for() for id, node in run.nodes.items()}
    waiting = {name: text for name, text in said.items() if text}
    judge.at_end(Finished(scenario, built.protocol, built.problem, run), waiting)
    return Trial(scenario.model_copy(update={"deviations": ()}), run, judge.violation)

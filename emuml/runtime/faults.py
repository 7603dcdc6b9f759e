"""The fault plan over TCP: real kills, real restarts, at times of the run's clock or at logged step boundaries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from emuml.cluster.faults import After, Crash, Fault, Start
from emuml.errors import RunFailed
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.runtime.coordinator import Coordinator

SUPPORTED = (Crash, Start)


class FaultExecutor:
    """Executes one plan; the coordinator asks it at the start and at each counter of the plan that was logged."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._plan = coordinator.deployment.faults
        self.absent = frozenset(f.target for f in self._plan.faults if isinstance(f, Start))
        self.pending = 0

    def schedule(self) -> None:
        """Put the clock forms on the loop."""
        for fault in self._plan.faults:
            at_s = getattr(fault, "at_s", None)
            if at_s is not None:
                self._later(at_s, fault)

    def _later(self, delay_s: float, fault: Fault, restart: bool = False) -> None:
        self.pending += 1
        self._coordinator.loop.call_later(delay_s, self._due, fault, restart)

    def _due(self, fault: Fault, restart: bool) -> None:
        coordinator = self._coordinator

        async def act() -> None:
            try:
                await (self._start(fault) if restart else self._strike(fault))
            except RunFailed as error:
                coordinator.fail(error)
            finally:
                self.pending -= 1

        coordinator._background(act())

    async def reached(self, after: After) -> None:
        """Execute what waits for a counter; return when it is done and visible to the neighbours."""
        for fault in self._plan.faults:
            if getattr(fault, "after", None) == after:
                await self._strike(fault)
        for fault in self._plan.faults:
            if getattr(fault, "restart_after", None) == after:
                await self._start(fault)

    async def _strike(self, fault: Fault) -> None:
        coordinator = self._coordinator
        coordinator.result.trace.add(coordinator.now, str(fault.target), "fault", type(fault).__name__)
        if isinstance(fault, Crash):
            await self._crash(fault.target)
            if fault.restart_after_s is not None:
                self._later(fault.restart_after_s, fault, restart=True)
        else:
            await self._start(fault)

    async def _crash(self, id: NodeId) -> None:
        coordinator = self._coordinator
        member = coordinator.members[id]
        if member.handle is None:
            return
        member.expected_end = True
        handle = member.handle
        coordinator.result.trace.add(coordinator.now, str(id), "crash", member.incarnation)
        handle.kill()
        await asyncio.wait([handle.exited])

    async def _start(self, fault: Fault) -> None:
        coordinator, id = self._coordinator, fault.target
        member = coordinator.members[id]
        if member.handle is None:
            coordinator.start_node(id)
            await coordinator.wait_for(lambda: member.ready or member.handle is None, lambda: f"{id} to join again")

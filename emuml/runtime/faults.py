"""The fault plan over TCP: real kills, real restarts, at times of the run's clock or at logged step boundaries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
        self._reached: set[After] = set()
        self._due_yet = list(self._plan.faults)
        self._timers: list[asyncio.TimerHandle] = []

    def close(self) -> None:
        """Execute nothing any more: the run is over."""
        for timer in self._timers:
            timer.cancel()

    def schedule(self) -> None:
        """Put the clock forms on the loop."""
        together: dict[float, tuple[Fault, ...]] = {}
        for fault in self._plan.faults:
            at_s = getattr(fault, "at_s", None)
            if at_s is not None:
                together[at_s] = (*together.get(at_s, ()), fault)
        for at_s, faults in together.items():
            self._later(at_s, faults)

    def _later(self, delay_s: float, faults: Sequence[Fault], restart: bool = False) -> None:
        self.pending += 1
        self._timers.append(self._coordinator.loop.call_later(delay_s, self._due, faults, restart))

    def _due(self, faults: Sequence[Fault], restart: bool) -> None:
        coordinator = self._coordinator

        async def act() -> None:
            try:
                await (self._start(faults[0]) if restart else self._strike(faults))
            except RunFailed as error:
                coordinator.fail(error)
            finally:
                self.pending -= 1

        coordinator._background(act())

    def missed(self) -> list[str]:
        """Return a sentence for each fault that the run ended without."""
        return self._plan.missed(self._due_yet)

    async def reached(self, after: After) -> None:
        """Execute what waits for a counter, the first time; return when it is done and visible to the neighbours."""
        if after in self._reached:
            return
        self._reached.add(after)
        await self._strike([fault for fault in self._plan.faults if getattr(fault, "after", None) == after])
        for fault in self._plan.faults:
            if getattr(fault, "restart_after", None) == after:
                await self._start(fault)

    async def _strike(self, faults: Sequence[Fault]) -> None:
        """Execute faults of one instant: all crashed nodes vanish before anybody is told (contract 10.4)."""
        coordinator = self._coordinator
        self._due_yet = [fault for fault in self._due_yet if not any(fault is struck for struck in faults)]
        for fault in faults:
            coordinator.result.trace.add(coordinator.now, str(fault.target), "fault", type(fault).__name__)
        crashes = [fault for fault in faults if isinstance(fault, Crash)]
        exits = [exited for fault in crashes if (exited := self._kill(fault.target)) is not None]
        if exits:
            await asyncio.wait(exits)
        for fault in crashes:
            if fault.restart_after_s is not None:
                self._later(fault.restart_after_s, [fault], restart=True)
        for fault in faults:
            if not isinstance(fault, Crash):
                await self._start(fault)

    def _kill(self, id: NodeId) -> asyncio.Future[str] | None:
        coordinator = self._coordinator
        member = coordinator.members[id]
        if member.handle is None:
            return None
        member.expected_end = True
        coordinator.result.trace.add(coordinator.now, str(id), "crash", member.incarnation)
        member.handle.kill()
        return member.handle.exited

    async def _start(self, fault: Fault) -> None:
        coordinator, id = self._coordinator, fault.target
        member = coordinator.members[id]
        if member.handle is None:
            coordinator.start_node(id)
            await coordinator.wait_for(lambda: member.ready or member.handle is None, lambda: f"{id} to join again")

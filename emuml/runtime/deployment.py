"""Running nodes over TCP on this host: local processes, or all nodes on one loop of the calling process.

The coordinator has a thread and a loop of its own; the caller waits, so that Ctrl-C ends the run and everything in it.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from emuml.blas import single_threaded
from emuml.cluster.cluster import Cluster
from emuml.cluster.faults import FaultPlan
from emuml.errors import RunFailed, UserError
from emuml.journal import read_journal
from emuml.message import Decoder
from emuml.node import NodeId, Nodes
from emuml.outcome import LogSink, Observer, Run
from emuml.provenance import versions
from emuml.roster import Roster
from emuml.runtime.connection import Security
from emuml.runtime.coordinator import Coordinator
from emuml.runtime.faults import SUPPORTED
from emuml.runtime.member import Member
from emuml.runtime.node_spec import NodeSpec
from emuml.runtime.plan import Deployment, Handle
from emuml.runtime.processes import start_process
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import Inputs, to_spec
from emuml.trace import Trace, merge, read_rows


@dataclass
class Job:
    """What to run: nodes as factories (shared processes) and as plain data (processes of their own)."""

    nodes: Nodes
    roster: Roster
    cluster: Cluster
    builds: Callable[[NodeId], dict[str, Any]]
    inputs: Inputs
    unit_cost: float = 1.0
    faults: FaultPlan = field(default_factory=FaultPlan)
    observers: Sequence[Observer] = ()
    log_sinks: Sequence[LogSink] = ()
    vital: frozenset[str] = frozenset()
    until_s: float | None = None


def deploy(job: Job, settings: RuntimeSettings, folder: Path | None = None) -> Run:
    """Run a job over TCP; errors of the run are in the returned record.

    Without a folder the files go to a temporary one that lasts as long as the record.

    Raises
    ------
    UserError
        Before anything starts.
    """
    job.faults.checked_for(job.roster.ids, SUPPORTED, "tcp")
    result = Run("tcp", Trace())
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="emuml-")
        weakref.finalize(result, temporary.cleanup)
        folder = Path(temporary.name)
    result.folder = folder
    job.inputs.write(folder / "inputs")
    began = time.perf_counter()
    try:
        _run_in_thread(lambda: Coordinator(_deployment(job, settings, folder, result), result))
    finally:
        result.wall_s = time.perf_counter() - began
        _collect(result, folder)
    return result


def _run_in_thread(coordinate: Callable[[], Coordinator]) -> None:
    """Run a coordinator to its end; the first Ctrl-C ends the run, the second one kills its nodes."""
    failure: list[BaseException] = []
    started: list[Coordinator] = []
    over, interrupts = threading.Event(), 0

    async def main() -> None:
        coordinator = coordinate()
        started.append(coordinator)
        if interrupts:
            coordinator.fail(RunFailed("interrupted"))
        await coordinator.run()

    def work() -> None:
        try:
            with single_threaded():
                asyncio.run(main())
        except BaseException as error:
            failure.append(error)
        finally:
            over.set()

    thread = threading.Thread(target=work, name="coordinator")
    thread.start()
    # Not thread.join: when an exception interrupts it, CPython 3.11 takes the thread for ended.
    while not over.is_set():
        try:
            over.wait()
        except KeyboardInterrupt:
            interrupts += 1
            for coordinator in started:
                act = partial(coordinator.fail, RunFailed("interrupted")) if interrupts == 1 else coordinator.kill_all
                with suppress(RuntimeError):  # it has just ended
                    coordinator.loop.call_soon_threadsafe(act)
    thread.join()
    if interrupts:
        raise KeyboardInterrupt
    if failure:
        raise failure[0]


def _deployment(job: Job, settings: RuntimeSettings, folder: Path, result: Run) -> Deployment:
    secret, run = secrets.token_hex(20), secrets.token_hex(4)
    security = Security(run, secret, "coordinator", 1, Decoder([]), settings)
    compute = to_spec(job.cluster.compute, job.inputs)
    job.inputs.write(folder / "inputs")

    def spec(id: NodeId, incarnation: int, address: tuple[str, int]) -> NodeSpec:
        return NodeSpec(
            run=run,
            node=str(id),
            incarnation=incarnation,
            secret=secret,
            coordinator=address,
            folder=str(folder.resolve()),
            ids=[str(node) for node in job.roster.ids],
            seed=job.roster.seed,
            stop=to_spec(job.roster.stop, Inputs()),
            settings=settings,
            cores=job.cluster.cores,
            unit_cost=job.unit_cost,
            compute=compute,
            triggers=sorted(job.faults.triggers()),
            build=job.builds(id) if settings.processes == "each" else {},
            versions=versions(),
        )

    deployment = Deployment(
        roster=job.roster,
        settings=settings,
        security=security,
        start=lambda id, incarnation, address: start_process(spec(id, incarnation, address)),
        faults=job.faults,
        observers=job.observers,
        log_sinks=job.log_sinks,
        vital=job.vital,
        until_s=job.until_s,
    )
    if settings.processes == "shared":
        deployment.start = lambda id, incarnation, address: SharedHandle(
            spec(id, incarnation, address), job.nodes[id][1], deployment, result
        )
    return deployment


class SharedHandle:
    """A node on the coordinator's own loop: real sockets, no process of its own."""

    def __init__(self, spec: NodeSpec, factory: Callable[[], Any], deployment: Deployment, result: Run) -> None:
        self.exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        key = (spec.node, spec.incarnation)
        self._member = Member(spec, factory, partial(deployment.original_errors.__setitem__, key))
        self._result = result
        self._task = asyncio.get_running_loop().create_task(self._member.run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        reason = "killed by SIGKILL" if self._member.killed else "finished"
        if not task.cancelled() and task.exception() is not None:
            reason = f"{type(task.exception()).__name__}: {task.exception()}"
        if self._member.host is not None:
            self._result.nodes[self._member.spec.id] = self._member.host.life.node
        if not self.exited.done():
            self.exited.set_result(reason)

    def kill(self) -> None:
        """Drop the node object and its sockets."""
        if not self._task.done():
            self._member.kill()

    def last_lines(self, count: int = 12) -> str:
        """Return nothing: a shared node prints where the caller does."""
        return ""


def _collect(result: Run, folder: Path) -> None:
    """Read what the nodes wrote: journals, and traces merged by time."""
    for path in sorted(folder.glob("nodes/*/journal")):
        if path.stat().st_size:
            journal = read_journal(path)
            result.journals[journal.header.node, journal.header.incarnation] = journal
    if result.journals:  # killed nodes could not tell how many events they had handled
        result.events = sum(len(journal.steps) for journal in result.journals.values())
    rows = [list(read_rows(path)) for path in sorted(folder.glob("nodes/*/trace")) if path.stat().st_size]
    result.trace = merge([result.trace.rows, *rows])
    with (folder / "trace").open("wb") as stream:
        written = Trace(stream, keep=False)
        for row in result.trace.rows:
            written.add(*row)


def check_importable(spec: Any) -> None:
    """Refuse a spec that a node process could not rebuild because a class lives in the caller's own script.

    Raises
    ------
    UserError
        Naming the class and what to do.
    """
    if isinstance(spec, Mapping):
        kind = spec.get("kind", "")
        if isinstance(kind, str) and kind.startswith("__main__:"):
            raise UserError(
                f"{kind.partition(':')[2]} is defined in the script that runs",
                "engine tcp",
                "classes of a module that node processes can import",
                "or RuntimeSettings(processes='shared')",
            )
        spec = list(spec.values())
    if isinstance(spec, (list, tuple)):
        for item in spec:
            check_importable(item)


def call_spec(factory: Any, inputs: Inputs) -> dict[str, Any]:
    """Return the plain data from which a node process makes a factory again.

    Raises
    ------
    UserError
        If the factory is not a module-level callable, plain or in a ``functools.partial`` with positional arguments.
    """
    function, arguments = (factory.func, factory.args) if isinstance(factory, partial) else (factory, ())
    name = getattr(function, "__qualname__", "<")
    elsewhere = getattr(function, "__module__", "__main__") != "__main__"
    if "<" in name or not elsewhere or (isinstance(factory, partial) and factory.keywords):
        raise UserError(
            f"a node process cannot import {factory!r} by name",
            "nodes",
            "a class or function of a module that is not the script, or functools.partial of one, without keywords",
            "processes='shared' takes any callable",
        )
    return {"call": f"{function.__module__}:{name}", "arguments": [to_spec(argument, inputs) for argument in arguments]}


def with_processes(settings: RuntimeSettings | None, processes: str | None) -> RuntimeSettings:
    """Return settings with another process model, if one is given."""
    settings = settings or RuntimeSettings()
    return settings if processes is None else replace(settings, processes=processes)  # type: ignore[arg-type]


__all__ = ["Handle", "Job", "call_spec", "deploy", "with_processes"]

"""The array tier for pushes: workers as times in one heap, one call of the server for each push.

Events and their order are those of the event tier, ties included; see :mod:`emuml.des.pool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from emuml import switches
from emuml._kernels import built
from emuml.cluster.cluster import Cluster, Network
from emuml.context import Context, retire
from emuml.des.array_tier import ArrayTier, most_at_once
from emuml.des.pool import Pool as PurePool
from emuml.des.rows import Rows
from emuml.errors import Deadlock, Livelock, NodeFailed, RunFailed
from emuml.outcome import LogSink, Observer
from emuml.pushes import PushNodes
from emuml.roster import Roster


class PushTier(ArrayTier):
    """One emulated run of pushes, without events of workers.

    Parameters
    ----------
    nodes : PushNodes
    cluster : Cluster
    roster : Roster
    unit_cost : float
        Cost of a task of load 1.
    observers, log_sinks : sequences of callables
        As of the emulator.
    pool : class, optional
        Where workers are; default: the compiled one, or with ``EMUML_PURE=1`` that in plain Python.
    """

    def __init__(
        self,
        nodes: PushNodes,
        cluster: Cluster,
        roster: Roster,
        unit_cost: float,
        observers: Sequence[Observer] = (),
        log_sinks: Sequence[LogSink] = (),
        pool: Any = None,
    ) -> None:
        assert isinstance(cluster.network, Network)
        super().__init__(nodes, roster, observers, log_sinks)
        self._server = cast("Any", self.node)
        rows, network = Rows(cluster.compute, roster.seed, nodes.costs() / unit_cost), cluster.network
        sizes = self._server.up_bytes, self._server.down_bytes
        kind = pool or default_pool()
        links, still_max = (network.latency_s, network.bandwidth_bps or 0.0), most_at_once(cluster.workers)
        self._pool = kind(cluster.workers, rows, *links, *sizes, still_max)

    def now_s(self) -> float:
        """See :class:`ArrayTier`."""
        return float(self._pool.now_s)

    def serve(self) -> None:
        """See :class:`ArrayTier`."""
        pool, life, result = self._pool, self.life, self.result
        effects, ctx = life.effects, Context(life, 0.0)
        effects.clear()

        def drain() -> bool:
            taken = list(effects)
            effects.clear()
            self.take(taken)
            return result.stopped is not None

        pool.ask()
        try:
            pool.run(ctx, effects, self._server.asked, self._server.pushed, drain)
        except RunFailed:
            raise
        except (Exception, SystemExit, GeneratorExit) as error:
            raise NodeFailed(str(life.id), 1, pool.now_s, "a push") from error
        finally:
            retire(ctx)
        if result.stopped is None:
            if pool.is_stuck:
                raise Livelock(pool.now_s, pool.still, life.describe())
            raise Deadlock(pool.now_s, life.describe())


def default_pool() -> Any:
    """Return the compiled pool, or the one in plain Python; both give the same results."""
    if switches.pure() or not built("pushes"):
        return PurePool
    from emuml._kernels.pushes import Pool

    return Pool


def why_not(cluster: Cluster) -> str:
    """Return why this tier cannot serve such a run, or an empty string."""
    if not cluster.shares_nothing:
        return "messages wait for each other"
    if cluster.servers != 1:
        return f"there are {cluster.servers} servers"
    return ""

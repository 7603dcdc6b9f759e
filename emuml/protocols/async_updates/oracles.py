"""What a run of asynchronous updates must keep; for tests, and for users who build on the protocol.

``run`` is a description of :mod:`emuml.testing`. Some oracles read off the parameters which updates are in them, so
they want the problem that explorers train by default: coordinate ``p`` is the sum of ``2**clock`` over the pushes of
worker ``p``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml.protocols.async_updates.messages import Update, View
from emuml.protocols.async_updates.slices import slice_of

if TYPE_CHECKING:
    from emuml.protocols.async_updates.protocol import AsyncUpdates


def describe(run: Any, protocol: AsyncUpdates) -> None:
    """State what holds after every step, for every message, at the end, and that the run ends.

    Parameters
    ----------
    run : emuml.testing.Description
    protocol : AsyncUpdates
        On any number of servers; each is judged by itself. Copies that workers compute from are judged while all of
        several servers are in their first life and train: later ones have workers do again what was lost. A push that
        only some of them got is done again, too, so that a copy may hold more of a worker's pushes than it has made.
    """
    slack = protocol.barrier.slack
    if slack is not None:
        run.always(
            lambda nodes: _spread(_acting(nodes)) <= slack + 1,
            "the spread of clocks is at most slack + 1",
            of="server",
        )
        run.each_sent(lambda sent: _is_due(sent, slack), "a view holds all that the barrier asks for")
    run.always(lambda nodes: _nobody_waits_in_vain(_acting(nodes)), "no worker waits that may read", of="server")
    run.always(
        lambda nodes: _acting(nodes).evicted.isdisjoint(_acting(nodes).waiting),
        "who is evicted does not wait",
        of="server",
    )
    run.each_sent(_names_no_later_clock, "no push is of an iteration that its worker has not begun")
    if protocol.on_lost == "wait":
        run.each_sent(lambda sent: _is_labelled(sent.message), "a view holds the updates that its label says")
        run.always(lambda nodes: _applied_once(nodes), "every counted push is in the table, once", of="server")
        run.always(
            lambda nodes: not _all_train(nodes) or _copy_is_fresh(_acting(nodes), slack),
            "a worker computes from a copy that is fresh enough and has its own updates",
            of="worker",
        )
    run.at_end(_ends_whole, "rounds are published in order, each once for each life of the server")
    run.at_end(
        lambda finished: _shares_add_up(finished, protocol.barrier.in_step, protocol.on_lost == "wait"),
        "logged shares of workers add up to the updates and to what the table holds",
    )
    run.eventually("done", within_s=120.0)


def held(table: Any) -> list[int | None]:
    """Return for each worker how many pushes a table holds, or ``None`` if one is missing or there twice."""
    values = [int(value) for value in np.asarray(table)]
    return [value.bit_length() if value & (value + 1) == 0 else None for value in values]


def shares_of(text: Any) -> dict[int, float]:
    """Return what a round's log says of each worker: ``0:3 1:2.5`` as a mapping.

    Examples
    --------
    >>> shares_of("0:3 1:2.5")
    {0: 3.0, 1: 2.5}
    """
    pairs = (item.partition(":") for item in str(text).split())
    return {int(worker): float(amount) for worker, _, amount in pairs}


def _shares_add_up(finished: Any, in_step: bool, waits: bool) -> bool:
    """Every applied push is some worker's; seconds of waiting are shared out, too, up to rounding."""
    pushes: dict[int, float] = {}
    last = 0
    for log in (item.metrics for item in finished.logs):
        shares, waited_s = shares_of(log["worker_updates"]), shares_of(log["worker_blocked_s"])
        if log["round"] <= last:  # a new life of the server
            pushes = {}
        last = log["round"]
        pushes = {worker: pushes.get(worker, 0.0) + shares.get(worker, 0.0) for worker in pushes.keys() | shares.keys()}
        if sum(shares.values()) != sum(shares_of(log["staleness"]).values()):
            return False
        if not in_step and sum(pushes.values()) != log["updates"]:
            return False
        if not math.isclose(sum(waited_s.values()), log["blocked_s"], abs_tol=1e-9):
            return False
    mine = slice_of(0, finished.scenario.servers, finished.scenario.workers)
    table = held(finished.published[-1].parameters)[mine]  # of the server that logs
    return not waits or all(pushes.get(worker, 0.0) == count for worker, count in enumerate(table, mine.start))


def _acting(nodes: Any) -> Any:
    return nodes[str(nodes.acting)]


def _all_train(nodes: Any) -> bool:
    """Tell whether every one of several servers trains in its first life; one by itself always counts."""
    servers = _acting(nodes).servers
    if len(servers) == 1:
        return True
    return all(nodes.life(str(id)) == 1 and nodes.lives(str(id)) and not nodes[str(id)].ended for id in servers)


def _spread(server: Any) -> int:
    members = server.members
    return max(members, default=0) - min(members, default=0)


def _is_due(sent: Any, slack: int) -> bool:
    """Of iterations before ``clock - slack`` all updates are there, by the label; at the end nobody is held back."""
    view = sent.message
    return not isinstance(view, View) or view.slowest >= view.clock - slack or sent.nodes[str(sent.sender)].ended


def _is_labelled(message: Any) -> bool:
    """Of every worker that has skipped nothing, updates before ``slowest`` are there."""
    if not isinstance(message, View):
        return True
    return all(count is not None and count >= message.slowest for count in held(message.value))


def _nobody_waits_in_vain(server: Any) -> bool:
    if server.ended:
        return True
    members = server.members
    free = (worker for worker in server.waiting if worker not in server.together)
    return not any(server.barrier.may_start(server.completed[worker], members) for worker in free)


def _applied_once(nodes: Any) -> bool:
    server = _acting(nodes)
    mine = slice_of(nodes.acting.index, len(server.gathering.servers), server.workers)
    done = [count - (worker in server.together) for worker, count in enumerate(server.completed)]
    return held(server.table.values) == done[mine]


def _copy_is_fresh(worker: Any, slack: int | None) -> bool:
    if worker.waits or worker.clock < 0:
        return True
    counts = held(worker.copy)
    mine = counts[worker.index]
    if mine is None or mine < worker.clock or (mine > worker.clock and len(worker.servers) == 1) or None in counts:
        return False
    return slack is None or all(
        count >= worker.clock - slack for count in counts[: worker.workers] if count is not None
    )


def _names_no_later_clock(sent: Any) -> bool:
    return not isinstance(sent.message, Update) or sent.message.clock <= sent.nodes[str(sent.sender)].clock


def _ends_whole(finished: Any) -> bool:
    """Versions count up from 0; a new life of the server begins again with 0."""
    last = -1
    for item in finished.published:
        if item.version not in (0, last + 1):
            return False
        last = item.version
    return last >= 0

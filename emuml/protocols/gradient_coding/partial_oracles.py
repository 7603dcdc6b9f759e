"""What a run of partial work must keep; see ``oracles.py``, which hands over to this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.lazy import array_of
from emuml.protocols.gradient_coding.pace import nobody_rests
from emuml.protocols.gradient_coding.partial_nodes import Share

if TYPE_CHECKING:
    from emuml.protocols.gradient_coding.codes.partial import PartialCode
    from emuml.protocols.gradient_coding.protocol import GradientCoding


def describe(run: Any, protocol: GradientCoding) -> None:
    """State what holds after every step, for every message, at the end, and that the run ends.

    Parameters
    ----------
    run : emuml.testing.Description
    protocol : GradientCoding
        With ``code=PartialWork(...)``.
    """
    run.reference(trained, name="parameters are those of the logged partitions, each once")
    run.each_sent(_answers_a_question, "a share is of a round that was asked for")
    run.at_end(_has_enough, "with all workers up a round closes with enough partitions")
    run.at_end(nobody_rests, "without faults nobody rests who was asked")
    run.always(_counts_once, "a partition counts once it was sent", of="server")
    run.eventually("done", within_s=120.0)


def built(finished: Any) -> PartialCode:
    """Return the code of a finished run."""
    code: PartialCode = finished.protocol.code.build(finished.scenario.workers)
    return code


def trained(finished: Any) -> list[NDArray[Any]]:
    """Return the versions that a plain loop gives for the logged partitions; a new life of the server begins again."""
    code, problem = built(finished), finished.problem
    logs = iter([item.metrics for item in finished.logs if "covered_set" in item.metrics])
    found: list[NDArray[Any]] = []
    state, parameters = problem.start(), problem.initial
    for item in finished.published:
        if item.version == 0:
            state, parameters = problem.start(), problem.initial
        else:
            log = next(logs, None)
            if log is None or log["round"] != item.version:
                return []
            bits = int(str(log["covered_set"]), 16)
            owned = [partition for partition in range(code.partitions) if bits >> partition & 1]
            tasks = [problem.gradient(parameters, (i,), code.partitions, draw=item.version - 1) for i in owned]
            total = np.sum([array_of(task.run()) for task in tasks], axis=0)
            state, parameters = problem.step(state, parameters, total, item.version - 1)
        found.append(parameters)
    return found


def _answers_a_question(sent: Any) -> bool:
    if not isinstance(sent.message, Share):
        return True
    return (sent.message.life, sent.message.round) <= tuple(sent.nodes[str(sent.sender)].newest)


def _has_enough(finished: Any) -> bool:
    needed = built(finished).needed
    logs = [item.metrics for item in finished.logs if "covered" in item.metrics]
    return all(log["covered"] >= needed or log["down"] > 0 for log in logs)


def _counts_once(nodes: Any) -> bool:
    server = nodes["server"]
    sent = {server.code.order(w)[j] for w, shares in enumerate(server.shares) for j in range(len(shares))}
    return bool(sent == server.there and (server.closed or len(sent) < server.code.needed))

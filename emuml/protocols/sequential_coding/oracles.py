"""What a run of sequential coding must keep; for tests, and for users who build on the protocol.

``run`` is a description of :mod:`emuml.testing`. The reference is a plain loop with whole gradients, at the versions of
which the log says how old they are; it wants a problem whose sums are exact, and is asked where decoding only adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.lazy import array_of
from emuml.protocols.sequential_coding.messages import Results

if TYPE_CHECKING:
    from emuml.protocols.sequential_coding.protocol import SequentialGradientCoding
    from emuml.protocols.sequential_coding.seam import Sequence


def describe(run: Any, protocol: SequentialGradientCoding) -> None:
    """State what holds for every message, at the end, and that the run ends.

    Parameters
    ----------
    run : emuml.testing.Description
    protocol : SequentialGradientCoding
    """
    run.reference(trained, when=_only_adds, name="parameters are those of whole gradients at the logged versions")
    run.each_sent(_answers_a_question, "results are of a round that was asked for")
    run.at_end(_in_time, "every job is decoded in time, and its gradient is no older than that")
    run.eventually("done", within_s=120.0)


def _built(finished: Any) -> Sequence:
    found: Sequence = finished.protocol.sequence(finished.scenario.workers, finished.scenario.seed)
    return found


def trained(finished: Any) -> list[NDArray[Any]]:
    """Return the versions that a plain loop gives; a new life of the server begins again."""
    code, problem = _built(finished), finished.problem
    logs = iter([item.metrics for item in finished.logs if "staleness" in item.metrics])
    every = tuple(range(code.partitions))
    found: list[NDArray[Any]] = []
    state, versions = problem.start(), [problem.initial]
    for item in finished.published:
        if item.version == 0:
            state, versions = problem.start(), [problem.initial]
        else:
            log = next(logs, None)
            if log is None or log["round"] != item.version:
                return []
            job = item.version - 1
            task = problem.gradient(versions[job - log["staleness"]], every, code.partitions, draw=job)
            state, parameters = problem.step(state, versions[job], array_of(task.run()), job)
            versions.append(parameters)
        found.append(versions[-1])
    return found


def _only_adds(finished: Any) -> bool:
    """Tell whether all weights and coefficients of a code are whole numbers."""
    code = _built(finished)
    every = {(worker, part): None for worker in range(code.workers) for part in range(code.slots)}
    factors = [code.piece(worker, part)[1] or (1.0,) for (worker, part), _ in code.decode(every).terms]
    return all(np.all(np.asarray(each) == 1.0) for each in factors)


def _answers_a_question(sent: Any) -> bool:
    if not isinstance(sent.message, Results):
        return True
    return (sent.message.life, sent.message.round) == tuple(sent.nodes[str(sent.sender)].newest)


def _in_time(finished: Any) -> bool:
    delay = _built(finished).delay
    logs = [item.metrics for item in finished.logs if "staleness" in item.metrics]
    return all(log["rounds_taken"] <= delay + 1 and log["staleness"] <= delay for log in logs)

"""What a run of gradient coding must keep; for tests, and for users who build on the protocol.

``run`` is a description of :mod:`emuml.testing`. The reference is a plain loop over the decode sets that were logged;
it wants a problem whose sums are exact, such as the one that explorers train by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.lazy import array_of
from emuml.protocols.gradient_coding import partial_oracles
from emuml.protocols.gradient_coding.codes import PartialWork
from emuml.protocols.gradient_coding.codes.seam import ROUNDING, BuiltCode
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding.pace import closes_in_time, nobody_rests
from emuml.rounds import Answers

if TYPE_CHECKING:
    from emuml.protocols.gradient_coding.protocol import GradientCoding


def describe(run: Any, protocol: GradientCoding) -> None:
    """State what holds after every step, for every message, at the end, and that the run ends.

    Parameters
    ----------
    run : emuml.testing.Description
    protocol : GradientCoding
    """
    if isinstance(protocol.code, PartialWork):
        partial_oracles.describe(run, protocol)
        return
    run.reference(trained, name="parameters are those of the logged decode sets")
    if protocol.collect is None:
        run.at_end(
            lambda finished: _decodes_as_promised(finished, protocol), "with all workers up codes decode as promised"
        )
    else:
        run.at_end(lambda finished: _collects(finished, protocol), "a round closes with enough distinct answers")
    if protocol.stragglers in ("cancel", "wait-all"):
        describe_interruption(run, lambda finished: closes_in_time(finished, protocol))
    describe_rounds(run)


def describe_interruption(run: Any, is_in_time: Callable[[Any], bool]) -> None:
    """State what holds where new parameters end old work; ``is_in_time`` judges a finished run."""
    run.always(
        lambda nodes: _works_on_the_newest(nodes[str(nodes.acting)]), "work is on the newest question", of="worker"
    )
    run.at_end(is_in_time, "without faults a round takes no longer than the answers that it needs")


def describe_rounds(run: Any) -> None:
    """State what holds whatever the code of a round is, and whatever becomes of stragglers."""
    run.each_sent(_answers_a_question, "an answer is to a question that was asked")
    run.each_sent(_asks_for_the_open_round, "questions are of the open round, at its parameters")
    run.at_end(nobody_rests, "without faults nobody rests who was asked")
    run.always(
        lambda nodes: _is_at_work(nodes[str(nodes.acting)]), "whoever was asked is at work or has answered", of="worker"
    )
    run.always(_counts_what_was_asked, "counted answers are to the open question of this life", of="server")
    run.always(lambda nodes: _is_undecided(nodes["server"]), "a round that can be decoded is closed", of="server")
    run.eventually("done", within_s=120.0)


def trained(finished: Any) -> list[NDArray[Any]]:
    """Return the versions that a plain loop gives for the logged decode sets; a new life of the server begins again."""
    protocol = finished.protocol
    code = protocol.code.build(finished.scenario.workers, finished.scenario.seed, protocol.collect)
    return trained_with(finished, lambda log: code)


def trained_with(finished: Any, code_of: Callable[[Any], Any]) -> list[NDArray[Any]]:
    """Return the same where the code of a round is told by what was logged of it."""
    problem = finished.problem
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
            state, parameters = _stepped(
                problem, code_of(log), state, parameters, int(str(log["covered_set"]), 16), item.version
            )
        found.append(parameters)
    return found


def _stepped(problem: Any, code: Any, state: Any, parameters: Any, bits: int, version: int) -> tuple[Any, Any]:
    """Take one step with the groups of a set: any worker of a group answers for it."""
    received = sorted(group[0] for j, group in enumerate(code.groups) if bits >> j & 1)
    decoding = code.decode(received)
    total: Any = np.zeros_like(parameters)
    if type(code).combine is not BuiltCode.combine:  # answers are more than sums of gradients
        tasks = {worker: code.task(problem, parameters, worker, version - 1) for worker in received}
        answers = Answers.of({worker: array_of(task.run()) for worker, task in tasks.items()})
        combined = code.of(parameters.shape).combine(answers, decoding)
        return problem.step(state, parameters, total if combined is None else combined, version - 1)  # type: ignore[no-any-return]
    for worker, weight in zip(received, decoding.weights.tolist(), strict=True):
        total = total + weight * array_of(code.task(problem, parameters, worker, version - 1).run())
    return problem.step(state, parameters, total, version - 1)  # type: ignore[no-any-return]


def _decodes_as_promised(finished: Any, protocol: GradientCoding) -> bool:
    promised = _promised_error(finished, protocol)
    logs = [item.metrics for item in finished.logs if "decode_error" in item.metrics]
    return all(log["decode_error"] <= promised or _is_cut_short(log) for log in logs)


def _collects(finished: Any, protocol: GradientCoding) -> bool:
    promised = _promised_error(finished, protocol)
    logs = [item.metrics for item in finished.logs if "arrivals" in item.metrics]
    least = min(protocol.collect or 0, finished.scenario.workers)
    return all(log["arrivals"] >= least or log["decode_error"] <= promised or _is_cut_short(log) for log in logs)


def _is_cut_short(log: Any) -> bool:
    """Tell whether crashes or a deadline may have closed a round."""
    return log["down"] > 0 or bool(log.get("overdue"))


def _promised_error(finished: Any, protocol: GradientCoding) -> float:
    """Return the error that closes a round: as much as a rule tolerates, or what is left with all answers."""
    code = protocol.code.build(finished.scenario.workers, finished.scenario.seed, protocol.collect)
    tolerated = getattr(code.stop_rule(), "tolerance", 0.0) * code.partitions
    return float(max(tolerated, code.decode(range(code.workers)).error)) + ROUNDING


def _answers_a_question(sent: Any) -> bool:
    if not isinstance(sent.message, Gradient):
        return True
    worker = sent.nodes[str(sent.sender)]
    return (sent.message.life, sent.message.round) <= tuple(worker.newest)


def _asks_for_the_open_round(sent: Any) -> bool:
    if not isinstance(sent.message, Parameters):
        return True
    server = sent.nodes[str(sent.sender)]
    return (sent.message.life, sent.message.round) == (sent.nodes.life(str(sent.sender)), server.round)


def _works_on_the_newest(worker: Any) -> bool:
    return worker.open is None or (worker.open.life, worker.open.round) == worker.newest


def _is_at_work(worker: Any) -> bool:
    if worker.newest[1] < 0 or worker.open is not None or worker.mailbox:
        return True
    return worker.answer is not None and (worker.answer.life, worker.answer.round) == tuple(worker.newest)


def _counts_what_was_asked(nodes: Any) -> bool:
    """Who gave an answer that counts, and still lives, said last what the server asks: nothing newer was asked."""
    server = nodes["server"]
    asked = nodes.life("server-0"), server.round
    living = (nodes[f"worker-{w}"].answer for w in server.answers if nodes.lives(f"worker-{w}"))
    return all(answer is None or (answer.life, answer.round) == asked for answer in living)


def _is_undecided(server: Any) -> bool:
    return server.closed or not server.tracker.closed

"""What a run of adaptive coding must keep: what gradient coding keeps, with the code that each round logged.

The choices are checked, too: a chooser that is told what the trace shows of each round chooses what was logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml.protocols.adaptive_coding.chooser import Chooser
from emuml.protocols.adaptive_coding.menu import Menu
from emuml.protocols.gradient_coding.codes.seam import ROUNDING
from emuml.protocols.gradient_coding.oracles import describe_interruption, describe_rounds, trained_with
from emuml.protocols.gradient_coding.pace import close_in_time, had_trouble

if TYPE_CHECKING:
    from emuml.protocols.adaptive_coding.protocol import AdaptiveCoding


def describe(run: Any, protocol: AdaptiveCoding) -> None:
    """State what holds after every step, for every message, at the end, and that the run ends.

    Parameters
    ----------
    run : emuml.testing.Description
    protocol : AdaptiveCoding
    """
    run.reference(
        lambda finished: trained_with(finished, lambda log: _code(_menu(finished), log)),
        name="parameters are those of the logged choices and decode sets",
    )
    run.at_end(_decodes_as_chosen, "a round is exact, closes at its count, or misses workers that are down")
    run.at_end(_chooses_from_arrivals, "without faults choices follow from the arrivals of the trace")
    describe_interruption(
        run, lambda finished: close_in_time(finished, lambda log: _code(_menu(finished), log).stop_rule())
    )
    describe_rounds(run)


def _menu(finished: Any) -> Menu:
    found: Menu = finished.protocol.menu(finished.scenario.workers, finished.scenario.seed)
    return found


def _code(menu: Menu, log: Mapping[str, Any]) -> Any:
    return menu[int(log["choice"])].code


def _logs(finished: Any) -> list[Mapping[str, Any]]:
    return [item.metrics for item in finished.logs if "choice" in item.metrics]


def _decodes_as_chosen(finished: Any) -> bool:
    return all(
        log["decode_error"] <= ROUNDING or log["down"] > 0 or log["arrivals"] >= log["collect"]
        for log in _logs(finished)
    )


def _chooses_from_arrivals(finished: Any) -> bool:
    """Follow the rounds of the server in the trace, and tell a chooser of nothing but arrivals."""
    rows = finished.trace.rows
    if had_trouble(rows):
        return True
    menu = _menu(finished)
    chooser = Chooser(menu, finished.protocol.settings, finished.scenario.seed)
    arrived: list[tuple[float, int, int]] = []  # time, worker, and the number of its question that it answers
    asked: dict[str, int] = {}
    answers: dict[str, list[int]] = {}
    for time_s, node, kind, *details in rows:
        if kind == "receive" and details[1] == "Parameters":
            asked[node] = asked.get(node, 0) + 1
        elif kind == "send" and details[1] == "Gradient":
            answers.setdefault(node, []).append(asked[node])
        elif kind == "receive" and details[1] == "Gradient":
            arrived.append((time_s, int(details[0].rpartition("-")[2]), answers[details[0]].pop(0)))
    opened_s = 0.0
    for item in finished.logs:
        log = item.metrics
        choice = chooser.choose()
        if (choice.candidate.index, choice.estimated_s) != (log["choice"], log.get("estimated_s")):
            return False
        times = np.full(finished.scenario.workers, item.time_s - opened_s)
        answered = np.zeros(times.size, np.bool_)
        those = [(at_s, worker) for at_s, worker, number in arrived if number == log["round"]][: int(log["arrivals"])]
        for at_s, worker in those:
            times[worker], answered[worker] = at_s - opened_s, True
        chooser.observe(choice, times, answered, np.ones(times.size, np.bool_))
        opened_s = item.time_s
    return True

"""What a forecast means in messages, bytes and decoded gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import EmumlError
from emuml.experiment.forecast import Forecast, dependence
from emuml.experiment.training import Range, Traffic, Training
from emuml.streams import generator
from emuml.theory import NoClosedForm, covered_fraction, expected_decode_error
from emuml.theory.decoding_error import is_exact
from emuml.theory.seams import GroupedCode
from emuml.theory.stragglers import answers_needed

_DECODED_MAX = 2_000
_ENTRIES_MAX, _DENSE_MAX = 20_000_000, 10_000_000_000
"""Decodings of codes by rows in all: their entries, and products of dense decompositions, a few seconds each."""


@dataclass(frozen=True)
class Messages:
    """Messages of one kind.

    Attributes
    ----------
    kind : {"questions", "answers"}
        Parameters from the server, gradients from the workers.
    count, total_bytes : Range
        With a 95 % interval. Bytes are those of messages, headers included; connections need a few more.
    least_bytes, most_bytes : int
        Of one message.
    basis : {"exact", "closed form", "simulation", "bound"}
        A bound: between the ends of the interval, and nothing is known of the middle.
    """

    kind: str
    count: Range
    total_bytes: Range
    least_bytes: int
    most_bytes: int
    basis: str


@dataclass(frozen=True)
class Decoding:
    """How well rounds are decoded, on average.

    Attributes
    ----------
    covered : float
        Share of the data whose gradients enter.
    error : float or None
        ``||a^T B - 1||^2``, in partitions; None if it is not known.
    basis : {"exact", "closed form", "simulation"}
    """

    covered: float
    error: float | None
    basis: str


def messages(training: Training, found: Forecast, is_real: bool) -> tuple[Messages, ...]:
    """Return what goes out and what comes back; ``is_real`` if messages take a time that nobody knows."""
    shape, asked, answers, basis = training.shape, found.questions, found.answers, found.answers_basis
    if is_real and shape.stragglers in ("cancel", "skip-stale"):
        # On real links some answers are under way when a round is closed.
        most = asked.count.high
        basis = "bound" if answers.count.low < most else basis
        answers = replace(answers, count=Range(answers.count.mean, answers.count.low, most))
    return (
        _messages("questions", shape.broadcast, training, asked, found.questions_basis),
        _messages("answers", shape.answer, training, answers, basis),
    )


def _messages(kind: str, first: int, training: Training, sent: Traffic, basis: str) -> Messages:
    known, count = len(sent.known), sent.count
    total = float(sent.known @ training.sizes_bytes(first, known))
    total += sent.later * training.bytes_between(first, known, training.rounds)
    # Where the number is uncertain, each of the messages more or less is of average size.
    ends = (total * end / count.mean if count.mean else 0.0 for end in (count.low, count.high))
    most = int(training.bytes_between(first, training.rounds - 1, training.rounds))
    return Messages(kind, count, Range(total, *ends), first, most, basis)


def built_code(training: Training) -> Any:
    """Return the code of a protocol that has one, else None."""
    protocol = training.protocol
    if not (hasattr(protocol, "code") and hasattr(protocol, "collect")):
        return None
    return protocol.code.build(training.workers, training.roster.seed, protocol.collect)


def decoding(training: Training, found: Forecast) -> Decoding | None:
    """Return how well rounds will be decoded, if the protocol has a code of groups, an exact one, or one of rows."""
    code = built_code(training)
    if not isinstance(code, GroupedCode):
        if is_exact(code) and not training.shape.deadline:
            return Decoding(1.0, 0.0, "exact")
        return _by_rows(code, training, found) if hasattr(code, "rows") else None
    if found.basis == "exact":
        return _decoded(code, found, "exact")
    protocol: Any = training.protocol
    any_set = not (dependence(training) or training.shape.deadline) and (
        training.shape.stragglers in ("cancel", "wait-all") or answers_needed(training.shape.stop_rule) is not None
    )
    if any_set:  # all sets of responders are equally likely
        asked = protocol.code, training.workers, protocol.collect
        return Decoding(covered_fraction(*asked), _or_none(lambda: expected_decode_error(*asked)), "closed form")
    return _decoded(code, found, "simulation")


def _by_rows(code: Any, training: Training, found: Forecast) -> Decoding | None:
    """Return how well a code that is given by its rows decodes some of the sets of answers to come."""
    sets = _sets(code, training, found)
    if not sets:
        return None
    try:
        decoded = [code.decode(received) for received in sets]
    except EmumlError:  # rounding drowns what some of these answers say
        return None
    reached = [
        np.count_nonzero(code.rows.combined(received, (one.weights != 0.0).astype(np.float64)))
        for received, one in zip(sets, decoded, strict=True)
    ]
    covered, error = float(np.mean(reached)) / code.partitions, float(np.mean([one.error for one in decoded]))
    is_all = found.answered is not None and len(sets) == len(found.answered)
    return Decoding(covered, error, "exact" if is_all and found.basis == "exact" else "simulation")


def _sets(code: Any, training: Training, found: Forecast) -> list[NDArray[np.int64]]:
    """Return sets of answers that close rounds: those of the forecast, or random ones if their number does."""
    most = min(_DECODED_MAX, 1 + _ENTRIES_MAX // max(code.rows.indices.size, 1))
    if not code.decoder.is_cheap:
        most = min(most, 1 + _DENSE_MAX // (training.workers**2 * code.partitions))
    if found.answered is not None:
        some = np.unique(np.linspace(0, len(found.answered) - 1, most).astype(int))
        return [np.flatnonzero(found.answered[i]) for i in some.tolist()]
    count = answers_needed(training.shape.stop_rule)
    if count is None or training.shape.deadline or dependence(training):
        return []
    draws = generator(training.roster.seed, "", "plan/decoding")
    return [np.sort(draws.permutation(training.workers)[:count]) for _ in range(most)]


def _or_none(ask: Callable[[], float]) -> float | None:
    try:
        return ask()
    except NoClosedForm:
        return None


def _decoded(code: Any, found: Forecast, basis: str) -> Decoding | None:
    if found.answered is None:
        return None
    some = np.unique(np.linspace(0, len(found.answered) - 1, _DECODED_MAX).astype(int))
    decoded = [code.decode_honest(np.flatnonzero(found.answered[i])) for i in some.tolist()]
    covered = float(np.mean([len(one.covered) for one in decoded])) / len(code.group_sizes)
    is_all = len(some) == len(found.answered)
    return Decoding(covered, float(np.mean([one.error for one in decoded])), basis if is_all else "simulation")

"""What the server saw of past rounds: who answered after how long, and who was cancelled before.

A worker that was cancelled did not answer *yet*: its time is known to be longer than the round. Such times are
*censored*. To forget them takes fast workers for the whole; to take them for arrivals makes everybody fast.

How long they would have taken is completed by a law that all of the window tells: beyond the shortest time, answers
come at a constant rate, the number of answers over the time that was waited for them (the censored maximum likelihood
estimate for shifted exponentials). Each worker has its own rate as far as the window shows that workers differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_S = 1e-12
"""Delays that differ by less are equal."""


class Observed(NamedTuple):
    """One round as the server saw it; arrays of shape (workers,).

    Attributes
    ----------
    load : float
        Mean work of a worker.
    times : ndarray of float64
        Seconds from the question to the answer, or to the end of the round.
    answered : ndarray of bool
        Whose time ends with an answer.
    known : ndarray of bool
        Whose time means anything: of workers that were down or asked again, it does not.
    drawn : ndarray of float64
        Exponential numbers of mean 1, with which unknown times are completed.
    """

    load: float
    times: Floats
    answered: Flags
    known: Flags
    drawn: Floats


def completed(times: Floats, answered: Flags, known: Flags, drawn: Floats) -> Floats:
    """Return times of all workers in all rounds, those that nobody saw drawn; arrays of shape (rounds, workers).

    Where no worker answered, times are returned as they are.

    Examples
    --------
    >>> times = np.array([[1.0, 2.0, 2.0]])
    >>> answered = np.array([[True, True, False]])
    >>> completed(times, answered, np.ones((1, 3), bool), np.full((1, 3), 3.0))
    array([[1., 2., 5.]])
    """
    seen = answered & known
    if not seen.any():
        return times
    shift = float(times[seen].min())
    waited = np.where(known, np.maximum(times - shift, 0.0), 0.0)
    mean_s = mean_beyond(seen.sum(axis=0), waited.sum(axis=0))
    begun = np.where(known, times, shift)
    return np.where(seen, times, begun + mean_s * drawn)


def mean_beyond(answers: NDArray[np.int64], waited_s: Floats) -> Floats:
    """Return for each worker the mean time between the shortest time and its answer, shape (workers,).

    Parameters
    ----------
    answers : ndarray of int, shape (workers,)
        How often each was seen to answer; at least one answer in all.
    waited_s : ndarray of float64, shape (workers,)
        How long each was waited for beyond the shortest time, in all, answers or not.

    Notes
    -----
    Answers of a worker are about Poisson with mean ``rate * waited_s``, the rates of workers gamma with a variance that
    is estimated from how much counts vary beyond Poisson: none if they do not (then all rates are equal), all if they
    do (then each worker has its own): empirical Bayes.
    """
    common = float(waited_s.sum()) / float(answers.sum())
    if common < LEAST_S:
        return np.zeros(answers.size)
    expected = waited_s / common
    beyond = float(np.sum((answers - expected) ** 2 - expected))
    variance = max(beyond, 0.0) / max(float(np.sum(expected**2)), 1e-300)
    own: Floats = (common + variance * waited_s) / (1.0 + variance * answers)
    return own
